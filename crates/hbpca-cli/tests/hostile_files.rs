//! Pipes, full disks, names that speak to terminals, data that asks for more memory than there is: errors with their codes, never a signal.
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]
#![cfg(target_os = "linux")]

mod common;

use std::io::Write;
use std::process::{Command, Output, Stdio};

use common::{Folder, csv};

/// Runs a line of the shell in which `$HBPCA` is the binary.
fn shell(folder: &Folder, line: &str) -> Output {
    let mut command = Command::new("bash");
    command.current_dir(folder.root()).env("HBPCA", assert_cmd::cargo::cargo_bin("hbpca"));
    command.args(["-c", line]).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_pipe_by_name_is_read_once() {
    let folder = Folder::with_data();
    let direct = folder.run("fit x.csv -k 2 --json -q").json(0);
    let piped = shell(&folder, "\"$HBPCA\" fit <(cat x.csv) -k 2 --json -q");
    assert_eq!(piped.status.code(), Some(0), "{}", text(&piped.stderr));
    let piped: serde_json::Value = serde_json::from_slice(&piped.stdout).unwrap();
    assert_eq!(piped["eigenvalues"], direct["eigenvalues"]);

    let named = shell(&folder, "mkfifo p; cat x.csv > p & \"$HBPCA\" fit p -k 2 --json -q; wait");
    assert_eq!(named.status.code(), Some(0), "{}", text(&named.stderr));
    let parts = shell(&folder, "\"$HBPCA\" fit x.csv <(cat x.csv)");
    assert_eq!(parts.status.code(), Some(2), "{}", text(&parts.stderr));
    assert!(text(&parts.stderr).contains("cannot be one of several parts"), "{}", text(&parts.stderr));
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_not_a_signal() {
    let folder = Folder::new();
    folder.write("x.csv", &csv(50, &[3.0; 26]));
    // A block of 1024 bytes: neither a checkpoint nor a model fits.
    let run = shell(&folder, "ulimit -f 1; \"$HBPCA\" fit x.csv -k 9 -o m.safetensors --checkpoint c.ckpt");
    assert_eq!(run.status.code(), Some(4), "{}", text(&run.stderr));
    let said = text(&run.stderr);
    assert!(said.contains("warning: cannot write the checkpoint c.ckpt"), "{said}");
    assert!(said.contains("error: cannot write m.safetensors: "), "{said}");
    assert!(text(&run.stdout).contains("converged"), "the table is printed all the same");
    assert_eq!(folder.names(), ["x.csv"]);
}

#[test]
fn a_full_disk_costs_the_file_and_not_the_table() {
    let folder = Folder::with_data();
    let run = folder.run("fit x.csv -o /dev/full");
    assert_eq!(run.code(), 4, "{}", run.stderr());
    assert!(run.stdout().contains("converged") && run.stderr().contains("cannot write /dev/full"));
}

#[test]
fn names_cannot_speak_to_the_terminal() {
    let folder = Folder::new();
    let name = "a\u{1b}]0;owned\u{7}\u{9b}31m.csv";
    folder.write(name, "x\u{1b}[2J,y\n1,2\n3,5\n4,4\n");
    for args in
        [vec!["fit", name], vec!["info", name], vec!["fit", name, "--json"], vec!["check", name, name]]
    {
        let output = folder.command("").args(&args).output().unwrap();
        for shown in [text(&output.stdout), text(&output.stderr)] {
            let spoken = shown.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
            assert!(!spoken, "{args:?}: {shown:?}");
        }
    }
}

#[test]
fn columns_that_occur_beyond_any_memory_are_refused_with_4() {
    let folder = Folder::new();
    // Ten rows with the same 200,000 columns: none can be left out.
    let row: Vec<String> = (1..=200_000).map(|j| format!(" {j}:1")).collect();
    folder.write("wide.svm", &format!("1{}\n", row.concat()).repeat(10));
    let run = folder.run("fit wide.svm -k 3 --solver krylov --memory 40M");
    assert_eq!((run.code(), run.stdout().as_str()), (4, ""), "{}", run.stderr());
    assert!(run.stderr().contains("not enough memory: "), "{}", run.stderr());
}

#[test]
fn memory_holds_for_compressed_text() {
    let folder = Folder::new();
    // 60 MB of text that compresses to little: 10⁷ numbers are 40 MB in memory, and their text more.
    let file = std::fs::File::create(folder.path("x.csv.gz")).unwrap();
    let mut child = Command::new("gzip").args(["-1"]).stdin(Stdio::piped()).stdout(file).spawn().unwrap();
    let mut out = std::io::BufWriter::new(child.stdin.take().unwrap());
    for l in 0..400_000_u32 {
        let cells: Vec<String> = (0..25).map(|j| ((l * 7 + j * 13) % 97).to_string()).collect();
        writeln!(out, "{}", cells.join(",")).unwrap();
    }
    drop(out);
    assert!(child.wait().unwrap().success());
    std::fs::create_dir(folder.path("tmp")).unwrap();
    let fit = |args: &str| {
        let args = format!("fit x.csv.gz -k 2 --memory {args}");
        common::Run(folder.command(&args).env("TMPDIR", folder.path("tmp")).output().unwrap())
    };
    let left = || std::fs::read_dir(folder.path("tmp")).unwrap().count();
    let run = fit("60M -o m.safetensors --json");
    let object = run.json(0);
    assert!(run.stderr().contains("is read from a temporary copy, 38.1 MiB in "), "{}", run.stderr());
    assert!(object["stream"]["bytes_read"].as_u64().unwrap() > 0);
    assert_eq!(left(), 0);
    // The answer is that of the data in memory.
    let whole = fit("1G --json").json(0);
    for (a, b) in common::numbers(&object["eigenvalues"]).iter().zip(common::numbers(&whole["eigenvalues"])) {
        assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
    }
    // A failure takes the copy with it, and so does memory that does not suffice for anything.
    let refused = fit("8M");
    assert!(matches!(refused.code(), 2 | 4), "{}", refused.stderr());
    assert_eq!((refused.stdout().as_str(), left()), ("", 0));
}

#[test]
fn more_threads_than_the_machine_has_are_not_started() {
    let folder = Folder::with_data();
    let run = folder.run("fit x.csv --threads 100000 --json");
    let object = run.json(0);
    let most = std::thread::available_parallelism().unwrap().get() as u64;
    assert_eq!(object["threads"].as_u64(), Some(most));
    assert!(
        run.stderr().contains(&format!("--threads 100000: this machine runs {most} at once")),
        "{}",
        run.stderr()
    );
}

/// Refuses the n-th large block of memory, for every n until none is left.
#[cfg(debug_assertions)]
#[test]
fn memory_that_fails_at_any_point_is_an_error_and_leaves_nothing() {
    let folder = Folder::new();
    // 200,000 columns: every vector is a large block.
    let row = |l: usize| {
        let entry = |i: usize| format!(" {}:{}.5", 1 + i * 6_600 + l * 97, 1 + (l * i) % 7);
        (0..30).map(entry).collect::<Vec<_>>().concat()
    };
    let rows: Vec<String> = (0..60).map(|l| format!("1{}\n", row(l))).collect();
    folder.write("x.svm", &rows.concat());
    for n in 0..200 {
        let args = "fit x.svm -k 2 --max-passes 3 -o m.safetensors --checkpoint c.ckpt --trace t.csv";
        let output = folder.command(args).env("HBPCA_FAIL_ALLOCATION", n.to_string()).output().unwrap();
        if output.status.code() == Some(1) {
            assert!(n > 8, "only {n} points of failure");
            assert!(folder.path("m.safetensors").exists());
            return;
        }
        assert_eq!(output.status.code(), Some(4), "block {n}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("error: not enough memory: "), "{}", text(&output.stderr));
        let left = folder.names();
        assert!(left == ["x.svm"] || left == ["c.ckpt", "x.svm"], "block {n}: {left:?}");
    }
    panic!("more than 200 large blocks");
}
