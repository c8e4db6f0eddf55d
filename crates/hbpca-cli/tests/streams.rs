//! Standard input, closed pipes, signals.
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::Folder;

#[test]
fn standard_input_is_read() {
    let folder = Folder::with_data();
    let from_file = folder.run("fit x.csv --json").json(0);
    let output = folder.command("fit - --json").write_stdin(folder.read("x.csv")).output().unwrap();
    let from_stdin = common::Run(output).json(0);
    assert_eq!(from_stdin["eigenvalues"], from_file["eigenvalues"]);
    let output = folder.command("fit - --format csv").write_stdin("a,b\n1,2\n3,x\n").output().unwrap();
    assert!(common::Run(output).refusal(3).contains("standard input:3:3"));
}

#[test]
fn convert_reads_standard_input_too() {
    let folder = Folder::with_data();
    let output = folder.command("convert - y.npy").write_stdin(folder.read("x.csv")).output().unwrap();
    assert_eq!(common::Run(output).code(), 0);
    assert_eq!(folder.run("info y.npy --json").json(0)["n"], 300);
}

#[test]
fn a_pipe_closed_early_is_no_failure_and_the_model_is_kept() {
    let folder = Folder::with_data();
    for args in [
        "fit x.csv -k 5 -o m.safetensors",
        "fit x.csv --json -o m.safetensors",
        "info x.csv",
        "man",
        "completions bash",
        "--help",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = process(&folder, args).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
            (Some(0), ""),
            "{args}"
        );
    }
    assert_eq!(folder.run("check m.safetensors x.csv").code(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_and_2() {
    let folder = Folder::with_data();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = process(&folder, "fit x.csv").stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.starts_with("error: cannot write standard output: "), "{said}");
}

fn process(folder: &Folder, args: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("hbpca"));
    command.current_dir(folder.root()).args(args.split_whitespace()).stdin(Stdio::null());
    command
}

/// Oja's residual is noise: at this tolerance it goes on until it is stopped.
const ENDLESS: &str = "fit x.csv --solver oja --tol 1e-15 --max-passes 1e12 --batch 10 -v --json -o m.safetensors --trace t.csv";

/// Starts a run that does not end, and returns once its solver is at work.
fn endless(folder: &Folder) -> (Child, BufReader<std::process::ChildStderr>) {
    let mut child = process(folder, ENDLESS).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    wait_for(&mut said, "oja started");
    (child, said)
}

fn wait_for(said: &mut impl BufRead, words: &str) {
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "ended without saying `{words}`");
    }
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

fn wait(child: &mut Child) -> Option<i32> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(start.elapsed() < Duration::from_secs(60), "did not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_was_reached_and_is_130_and_termination_143() {
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let folder = Folder::with_data();
        let (mut child, mut said) = endless(&folder);
        signal(&child, name);
        assert_eq!(wait(&mut child), Some(code));
        let mut text = String::new();
        said.read_to_string(&mut text).unwrap();
        assert!(
            text.contains("press Ctrl-C again")
                && text.contains("warning: interrupted: the largest residual is"),
            "{text}"
        );
        let mut json = String::new();
        child.stdout.take().unwrap().read_to_string(&mut json).unwrap();
        let object: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(object["outcome"], "interrupted");
        assert_eq!(folder.names(), ["m.safetensors", "t.csv", "x.csv"]);
        assert_eq!(folder.run("info m.safetensors --json").json(0)["outcome"], "interrupted");
    }
}

#[cfg(unix)]
#[test]
fn signals_while_reading_end_at_once_and_leave_nothing() {
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        ends_at_once(name, code);
    }
}

#[cfg(unix)]
fn ends_at_once(name: &str, code: i32) {
    let folder = Folder::new();
    let mut command = process(&folder, "fit - --format csv -o m.safetensors");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while folder.names().is_empty() {
        assert!(start.elapsed() < Duration::from_secs(60), "no output was begun");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, name);
    assert_eq!(wait(&mut child), Some(code));
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

#[cfg(unix)]
#[test]
fn quiet_is_silent_even_when_it_is_stopped() {
    let folder = Folder::with_data();
    let args =
        "fit x.csv --solver oja --tol 1e-15 --max-passes 1e12 --batch 10 -q -o m.safetensors --checkpoint c";
    let mut child = process(&folder, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while !folder.names().contains(&"c".to_owned()) {
        assert!(start.elapsed() < Duration::from_secs(60), "no checkpoint was written");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "-TERM");
    assert_eq!(wait(&mut child), Some(143));
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b""[..], &b""[..]));
    assert!(folder.names().contains(&"m.safetensors".to_owned()));
}
