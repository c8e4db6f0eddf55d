//! Disks that fail: the n-th call on a file is refused, for every n. Each ends with an error or the right answer, and never with a
//! panic, a hang or half a file.
#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "tests stop at surprises")]
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::{Folder, Run};

/// The library that makes calls fail; nothing where there is no C compiler.
fn library(folder: &Folder) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/fail_file.c");
    let library = folder.path("fail_file.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl")
        .status();
    if built.is_ok_and(|status| status.success()) {
        return Some(library);
    }
    eprintln!("skipped: there is no C compiler");
    None
}

fn files(folder: &Folder) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.root().to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder.root()).unwrap().display().to_string();
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn restore(folder: &Folder, files: &BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder.root()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
    }
    for (name, bytes) in files {
        let path = folder.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// Runs `args` with its n-th call refused, for every n, and returns how many there are. `whole` tells whether an output is whole.
fn every_call(folder: &Folder, library: &Path, args: &str, outputs: &[&str]) -> usize {
    let before = files(folder);
    for n in 1.. {
        restore(folder, &before);
        let mut command = folder.command(args);
        command.env("LD_PRELOAD", library).env("HBPCA_FAIL_FILE", n.to_string());
        command.env("HBPCA_FAIL_BELOW", folder.root()).timeout(Duration::from_secs(120));
        let run = Run(command.output().unwrap());
        let said = run.stderr();
        let code = run.0.status.code();
        assert!(matches!(code, Some(0..=4)), "{args}: call {n}: {code:?}: {said}");
        assert!(!said.contains("panicked"), "{args}: call {n}: {said}");
        assert_eq!(code == Some(0), !said.contains("error:"), "{args}: call {n}: {said}");
        let after = files(folder);
        let changed = after.iter().filter(|(name, bytes)| before.get(*name) != Some(*bytes));
        let changed: Vec<&String> = changed.map(|(name, _)| name).collect();
        let is_output = |name: &&String| outputs.iter().any(|output| name.starts_with(output));
        assert!(changed.iter().all(is_output), "{args}: call {n} leaves {changed:?}: {said}");
        // What was there and was not replaced is there still.
        assert!(before.keys().all(|name| after.contains_key(name) || is_output(&name)), "{args}: call {n}");
        for output in outputs.iter().filter(|output| folder.path(output).exists()) {
            let intact = folder.path(output).is_file() && before.get(*output) == after.get(*output);
            assert!(intact || is_whole(folder, output), "{args}: call {n}: {output} is not whole: {said}");
            assert!(code != Some(0) || !intact, "{args}: call {n}: {output} was not written");
        }
        if !said.contains("injected fault") {
            assert_eq!(code, Some(0), "{args}: {said}");
            return n - 1;
        }
    }
    unreachable!()
}

/// Whether a file is what its name says, from its first byte to its last.
fn is_whole(folder: &Folder, name: &str) -> bool {
    let text = || String::from_utf8(std::fs::read(folder.path(name)).unwrap()).unwrap();
    match name.rsplit('.').next().unwrap() {
        "html" => text().trim_end().ends_with("</html>"),
        "ckpt" => folder.run(&format!("fit x.csv --solver krylov -k 2 --resume {name} -q")).code() == 0,
        "safetensors" => folder.run(&format!("info {name}")).code() == 0,
        _ => {
            folder.run(&format!("info {name} --json")).json(0)["n"].as_u64() == Some(300)
                || text().starts_with("passes,")
        }
    }
}

#[test]
fn every_call_on_a_file_may_fail() {
    let tools = Folder::new();
    let Some(library) = library(&tools) else { return };
    // /tmp may be a link: calls see where files really are.
    let folder = Folder::with_data();
    let prepare = [
        "fit x.csv -k 2 --solver krylov -q -o m.safetensors",
        "transform m.safetensors x.csv -q -o scores.csv",
        "convert x.csv x.chunks",
        "fit x.csv -k 2 --solver krylov -q --tol 1e-2 --checkpoint earlier.ckpt",
    ];
    prepare.iter().for_each(|args| assert_eq!(folder.run(args).code(), 0, "{args}"));
    // An output of that name is there already: it stays, or is replaced by a whole one.
    std::fs::copy(folder.path("m.safetensors"), folder.path("old.safetensors")).unwrap();
    let mut calls = Vec::new();
    for (args, outputs) in [
        (
            "fit x.csv -k 2 --solver krylov -q -o new.safetensors --trace t.csv --report r.html",
            &["new.safetensors", "t.csv", "r.html"][..],
        ),
        ("fit x.csv -k 3 -q -o old.safetensors", &["old.safetensors"]),
        ("fit x.chunks -k 2 -q -o new.safetensors", &["new.safetensors"]),
        ("fit x.csv -k 2 --solver krylov -q --resume earlier.ckpt -o new.safetensors", &["new.safetensors"]),
        ("transform m.safetensors x.csv -q -o s.csv", &["s.csv"]),
        ("transform m.safetensors x.csv -q -o s.parquet", &["s.parquet"]),
        ("inverse m.safetensors scores.csv -q -o back.npy", &["back.npy"]),
        ("convert x.csv y.npy -q", &["y.npy"]),
        ("convert x.csv y.npz -q", &["y.npz"]),
        ("convert x.csv y.csv.gz -q", &["y.csv.gz"]),
        ("convert x.csv y.chunks -q --shuffle 3", &["y.chunks"]),
        ("check m.safetensors x.csv -q", &[]),
        ("info x.chunks", &[]),
    ] {
        calls.push((args, every_call(&folder, &library, args, outputs)));
    }
    // Each of them has calls that may fail: the library was loaded, and knew the folder.
    assert!(calls.iter().all(|(_, calls)| *calls >= 3), "{calls:?}");
    println!("{calls:?}");
}

/// A checkpoint that cannot be written is a warning: the run goes on, and the last one stays.
#[test]
fn checkpoints_may_fail_and_the_run_goes_on() {
    let tools = Folder::new();
    let Some(library) = library(&tools) else { return };
    let folder = Folder::with_data();
    for n in 1..40 {
        let _ = std::fs::remove_file(folder.path("c.ckpt"));
        let mut command = folder.command("fit x.csv --solver power -k 1 --checkpoint c.ckpt");
        command.env("LD_PRELOAD", &library).env("HBPCA_FAIL_FILE", n.to_string());
        command.env("HBPCA_FAIL_BELOW", folder.root()).timeout(Duration::from_secs(60));
        let run = Run(command.output().unwrap());
        assert!(matches!(run.code(), 0 | 2 | 3 | 4), "{n}: {}", run.stderr());
        if run.code() == 0 && folder.path("c.ckpt").exists() {
            let resumed = folder.run("fit x.csv --solver power -k 1 --resume c.ckpt -q");
            assert_eq!(resumed.code(), 0, "{n}: {}", resumed.stderr());
        }
        assert!(
            folder.names().iter().all(|name| name == "x.csv" || name == "c.ckpt"),
            "{n}: {:?}",
            folder.names()
        );
    }
}
