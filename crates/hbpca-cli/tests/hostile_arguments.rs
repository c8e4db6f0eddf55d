//! Lines of arguments that nobody would type: every one ends with a code that means something, in bounded time, and without a panic.
#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "tests stop at surprises")]

mod common;

use std::time::Duration;

use common::{Folder, Run};

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "5",
    "6",
    "300",
    "301",
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "0.5",
    "0.9999999",
    "1.0",
    "nan",
    "inf",
    "-inf",
    "1e-320",
    "1e308",
    "1e400",
    "",
    "abc",
    "0x10",
    "٣",
    "+3",
    " 3",
    "1_000",
    "100%",
    "0%",
    "1e-9%",
    "auto",
];
const NAMES: &[&str] = &[
    "0",
    "0,1",
    "4,0",
    "0,0",
    "-1",
    "99",
    "a",
    "a,b",
    ",",
    "",
    "a..c",
    "c..a",
    "\"a,b\"",
    "a..",
    "\u{1b}[31m",
];
const FILES: &[&str] =
    &["x.csv", "m.safetensors", "s.csv", "bad.csv", "none", ".", "", "/dev/null", "x.csv/y", "é.csv"];

/// Options and what may follow them.
const OPTIONS: &[(&str, &[&str])] = &[
    ("-k", NUMBERS),
    (
        "--solver",
        &[
            "auto",
            "covariance",
            "krylov",
            "anchored",
            "power",
            "power-m",
            "oja",
            "vr-pca",
            "vr-power-m",
            "vr-hb-power",
            "vr-pca-projected",
            "shift-invert-svrg",
            "shift-invert-agd",
            "lazy-svd",
            "vr-riemannian",
            "coordinate-power",
            "x",
        ],
    ),
    ("--threads", &["0", "1", "2", "1000", "100000000", "-1"]),
    (
        "--memory",
        &["1M", "0", "1", "24M", "1T", "1.5TiB", "-1", "99999999999999999999G", "nan", "1e3M", "4 G"],
    ),
    ("--tol", NUMBERS),
    ("--angle", NUMBERS),
    ("--certify", NUMBERS),
    ("--max-passes", NUMBERS),
    ("--max-seconds", NUMBERS),
    ("--eta", NUMBERS),
    ("--momentum", &["oracle", "adaptive", "x"]),
    ("--lambda2", NUMBERS),
    ("--batch", NUMBERS),
    ("--epoch", NUMBERS),
    ("--seed", NUMBERS),
    ("--precision", &["f32", "f64", "mixed", "auto", "f16"]),
    ("--scale", &["none", "std", "minmax", "x"]),
    ("--columns", NAMES),
    ("--exclude", NAMES),
    ("--label-column", NAMES),
    ("--n-columns", &["0", "1", "5", "100", "99999999", "4294967296"]),
    ("--header", &["yes", "no", "maybe"]),
    ("--decimal", &[",", ".", "", "ab"]),
    ("--thousands", &[",", ".", "'", ""]),
    ("--encoding", &["latin1", "utf-16le", "x"]),
    ("--format", &["csv", "npy", "libsvm", "mtx", "idx", "parquet", "npz", "tsv", "chunks"]),
    ("--checkpoint-every", &["0s", "0pass", "1e9pass", "-1s", "x"]),
    ("--trace", &["t.csv", "t.jsonl", "t", "/nonexist/t.csv", "."]),
    ("--checkpoint", &["c.ckpt", "x.csv", "/nonexist/c"]),
    ("--resume", FILES),
    ("--start", FILES),
    ("-o", &["m2.safetensors", "o.csv", "/nonexist/m", ".", "", "-"]),
    ("--output-format", &["csv", "npy", "x"]),
    ("--keep", NAMES),
    ("--shuffle", NUMBERS),
    ("--part-size", NUMBERS),
    ("--disk", NUMBERS),
    ("--top", NUMBERS),
];
const FLAGS: &[&str] = &[
    "--center",
    "--no-center",
    "-q",
    "-v",
    "--json",
    "--numeric",
    "--tune",
    "--whiten",
    "--loadings",
    "--",
    "-h",
    "--frobnicate",
];
const COMMANDS: &[&str] = &[
    "fit",
    "fit",
    "fit",
    "fit",
    "transform",
    "inverse",
    "check",
    "info",
    "convert",
    "report",
    "plot",
    "theory",
    "completions",
    "",
    "x",
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n as u64) as usize
    }

    fn one_of<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }
}

fn line(dice: &mut Dice) -> Vec<String> {
    let mut words = vec![dice.one_of(COMMANDS).to_owned()];
    for _ in 0..dice.below(3) {
        words.push(dice.one_of(FILES).to_owned());
    }
    for _ in 0..dice.below(6) {
        let (option, values) = OPTIONS[dice.below(OPTIONS.len())];
        let value = dice.one_of(values);
        if dice.below(10) == 0 {
            words.push(format!("{option}={value}"));
        } else {
            words.extend([option.to_owned(), value.to_owned()]);
        }
    }
    for _ in 0..dice.below(3) {
        words.push(dice.one_of(FLAGS).to_owned());
    }
    if words[0] == "fit" && !words.iter().any(|word| word == "--max-passes") {
        words.extend(["--max-passes".to_owned(), "30".to_owned()]);
    }
    words
}

#[test]
fn no_line_of_arguments_ends_in_a_panic_or_a_hang() {
    let folder = Folder::with_data();
    folder.write("bad.csv", "a,b\n1,2\n3,x\n");
    assert_eq!(folder.run("fit x.csv -k 2 -q -o m.safetensors").code(), 0);
    assert_eq!(folder.run("transform m.safetensors x.csv -q -o s.csv").code(), 0);
    let lines = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(250).min(20_000);
    let mut dice = Dice(std::env::var("PROPTEST_RNG_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1));
    let mut codes = std::collections::BTreeMap::<i32, usize>::new();
    for _ in 0..lines {
        let words = line(&mut dice);
        let mut command = folder.command("");
        let output = command.args(&words).timeout(Duration::from_secs(60)).output().unwrap();
        let run = Run(output);
        let code = run.0.status.code();
        assert!(matches!(code, Some(0..=4)), "{words:?}: {code:?}: {}", run.stderr());
        assert!(!run.stderr().contains("panicked"), "{words:?}: {}", run.stderr());
        assert!(!run.stderr().contains('\u{1b}') && !run.stdout().contains('\u{1b}'), "{words:?}");
        *codes.entry(run.code()).or_default() += 1;
    }
    // The lines are not all refused by the grammar alone.
    assert!([0, 2, 3].iter().all(|code| codes.contains_key(code)), "{codes:?}");
    println!("{codes:?}");
}
