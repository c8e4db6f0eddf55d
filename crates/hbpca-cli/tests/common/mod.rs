//! A folder with data, and the real binary in it.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

/// A temporary folder in which the binary runs.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A folder that lies in memory, where there is such a place: syncing costs nothing there.
    pub fn in_memory() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    /// A folder with `x.csv`: 300 rows of 5 columns `a` to `e` with deviations near 5, 3, 2, 1 and 0.5.
    pub fn with_data() -> Self {
        let folder = Self::new();
        folder.write("x.csv", &csv(300, &[5.0, 3.0, 2.0, 1.0, 0.5]));
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Names of everything in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.root()).unwrap();
        let mut names: Vec<String> = entries.map(|x| x.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn command(&self, args: &str) -> Command {
        let mut command = Command::cargo_bin("hbpca").unwrap();
        command.current_dir(self.root()).args(args.split_whitespace());
        command
    }

    /// Runs `hbpca ARGS`.
    pub fn run(&self, args: &str) -> Run {
        Run(self.command(args).output().unwrap())
    }
}

/// How a run ended.
pub struct Run(pub Output);

impl Run {
    pub fn code(&self) -> i32 {
        self.0.status.code().unwrap()
    }

    pub fn stdout(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }

    /// Standard output as JSON, after a run that must have ended with `code`.
    pub fn json(&self, code: i32) -> Value {
        assert_eq!(self.code(), code, "{}", self.stderr());
        serde_json::from_str(&self.stdout()).unwrap()
    }

    /// Standard error of a run that must have ended with `code`.
    #[track_caller]
    pub fn refusal(&self, code: i32) -> String {
        assert_eq!((self.code(), self.stdout().as_str()), (code, ""), "{}", self.stderr());
        self.stderr()
    }
}

/// Numbers of a JSON array.
pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// A table of pseudo-random numbers, uniform with the given deviations, under the names `a`, `b`, …
pub fn csv(rows: usize, deviations: &[f64]) -> String {
    let mut state = 7_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24) * 2.0 - 1.0
    };
    let names: Vec<String> = (b'a'..).take(deviations.len()).map(|c| char::from(c).to_string()).collect();
    let mut text = names.join(",") + "\n";
    for _ in 0..rows {
        let cells: Vec<String> =
            deviations.iter().map(|s| format!("{:.4}", uniform() * s * 3.0_f64.sqrt())).collect();
        text += &(cells.join(",") + "\n");
    }
    text
}
