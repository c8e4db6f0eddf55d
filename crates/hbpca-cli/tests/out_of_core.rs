//! `hbpca fit --memory`: data that does not fit is streamed, says so, stays within its memory, and gives the same answer.

#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

mod common;

use common::{Folder, Run, numbers};
use serde_json::Value;

/// n rows of d f32 values as `.npy`: a mean, a common part and columns of falling deviation.
fn npy(folder: &Folder, name: &str, n: usize, d: usize) {
    use std::io::Write;
    let mut state = 1_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let weights: Vec<f32> = (0..d).map(|j| 2.0 / (1.0 + j as f32).sqrt()).collect();
    let mut text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({n}, {d}), }}");
    text += &" ".repeat(117_usize.saturating_sub(text.len()));
    text.push('\n');
    let file = std::fs::File::create(folder.path(name)).unwrap();
    let mut file = std::io::BufWriter::with_capacity(1 << 20, file);
    file.write_all(b"\x93NUMPY\x01\x00").unwrap();
    file.write_all(&(text.len() as u16).to_le_bytes()).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let mut row = Vec::with_capacity(d * 4);
    for _ in 0..n {
        row.clear();
        let common = uniform();
        for weight in &weights {
            row.extend((1.0 + common + weight * uniform()).to_le_bytes());
        }
        file.write_all(&row).unwrap();
    }
}

/// Both answers lie within their certificates of the truth.
fn agree(a: &Value, b: &Value) {
    let (ours, theirs) = (numbers(&a["eigenvalues"]), numbers(&b["eigenvalues"]));
    let residuals = |x: &Value| numbers(&x["certificate"]["residuals"]);
    for (i, (x, y)) in ours.iter().zip(&theirs).enumerate() {
        assert!((x - y).abs() <= residuals(a)[i] + residuals(b)[i], "{x} {y}");
    }
    let total = |x: &Value| x["total_variance"].as_f64().unwrap();
    assert!((total(a) / total(b) - 1.0).abs() < 1e-12);
}

#[test]
fn streamed_and_loaded_answers_agree_for_every_solver_and_preparation() {
    let folder = Folder::new();
    npy(&folder, "x.npy", 60_000, 256); // 58.6 MiB, which need 73.2 MiB to be loaded
    let solvers = [
        "auto",
        "covariance -k 3",
        "anchored -k 3",
        "krylov -k 3",
        "power",
        "power-m",
        "oja",
        "vr-pca",
        "vr-hb-power",
        "shift-invert-svrg",
        "shift-invert-agd",
        "lazy-svd",
        "vr-riemannian",
        "coordinate-power",
    ];
    for (i, solver) in solvers.iter().enumerate() {
        let preparation = ["--scale std", "--center", "--no-center", "--scale minmax"][i % 4];
        let arguments =
            format!("fit x.npy --solver {solver} {preparation} --json --max-passes 20 --tol 1e-5 -q");
        let streamed = folder.run(&format!("{arguments} --memory 64M"));
        let loaded = folder.run(&format!("{arguments} --memory 1G"));
        let code = loaded.code();
        assert!(code == 0 || !solver.contains("-k"), "{solver}: {}", loaded.stderr());
        let (streamed, loaded) = (streamed.json(code), loaded.json(code));
        assert!(streamed["stream"].is_object() && loaded["stream"].is_null());
        agree(&streamed, &loaded);
    }
}

#[test]
fn the_choice_is_announced_before_the_work_and_not_when_quiet() {
    let folder = Folder::new();
    npy(&folder, "x.npy", 60_000, 256);
    let run = folder.run("fit x.npy --memory 64M --json --scale std");
    let (text, object) = (run.stderr(), run.json(0));
    let announced =
        "x.npy: 58.6 MiB do not fit into 64.0 MiB of memory and are read from disk in every pass: ";
    assert!(text.contains(announced), "{text}");
    assert!(text.contains(" to read, in chunks of ") && text.contains(" pass"), "{text}");
    let stream = &object["stream"];
    assert_eq!(stream["memory"], 64 << 20);
    assert!(stream["planned_memory"].as_u64().unwrap() <= 64 << 20);
    let read = stream["bytes_read"].as_u64().unwrap();
    let per_pass = 60_000 * 256 * 4;
    let full = object["full_passes"].as_u64().unwrap() + object["statistics_passes"].as_f64().unwrap() as u64;
    assert!(read >= full * per_pass && read < full * per_pass + per_pass / 4, "{read} {full}");
    assert_eq!(folder.run("fit x.npy --memory 64M --json --scale std -q").stderr(), "");
}

#[test]
fn a_budget_too_small_for_anything_names_one_that_works() {
    let folder = Folder::new();
    npy(&folder, "x.npy", 3000, 2000);
    let refusal = folder.run("fit x.npy -k 20 --memory 20M --threads 2").refusal(2);
    let least = refusal.split("need ").nth(1).and_then(|x| x.split('M').next()).unwrap().to_owned();
    assert!(refusal.contains("memory = 20.0 MiB: 20 components of 2000 columns"), "{refusal}");
    let again =
        folder.run(&format!("fit x.npy -k 20 --memory {least}M --threads 2 --json -q --max-passes 3"));
    assert!([0, 1].contains(&again.code()), "{}", again.stderr());
    let refusal = folder.run("fit x.npy --memory 4X").refusal(2);
    assert!(refusal.contains("give bytes or a size such as 512M"), "{refusal}");
}

#[test]
fn what_cannot_be_streamed_and_does_not_fit_names_the_way_out() {
    let folder = Folder::with_data();
    assert_eq!(folder.run("convert x.csv x.mtx").code(), 0);
    let refusal = folder.run("fit x.mtx --memory 5K").refusal(4);
    assert!(refusal.contains("cannot be read in pieces because mtx files"), "{refusal}");
    assert!(refusal.contains("convert it once with hbpca convert to a chunk folder"), "{refusal}");
}

#[test]
fn threads_do_not_change_the_bits_of_a_streamed_fit() {
    let folder = Folder::new();
    npy(&folder, "x.npy", 60_000, 256);
    let run = |threads: usize| {
        let model = format!("m{threads}.safetensors");
        let arguments = "fit x.npy -k 2 --memory 64M --solver anchored --scale std -q";
        let run = folder.run(&format!("{arguments} --threads {threads} -o {model}"));
        assert_eq!(run.code(), 0, "{}", run.stderr());
        run.stdout().lines().filter(|line| !line.contains(" in ")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(run(1), run(2));
}

#[test]
fn nan_is_found_with_its_row_and_column() {
    let folder = Folder::new();
    npy(&folder, "x.npy", 60_000, 256);
    let mut bytes = std::fs::read(folder.path("x.npy")).unwrap();
    let at = 128 + (4321 * 256 + 17) * 4;
    bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(folder.path("x.npy"), bytes).unwrap();
    let refusal = folder.run("fit x.npy --memory 64M -q").refusal(3);
    assert!(refusal.contains("row 4321, column 17 (counted from 0) holds NaN"), "{refusal}");
}

/// Peak resident bytes of a run, watched from outside.
#[cfg(target_os = "linux")]
fn peak_memory(folder: &Folder, arguments: &str) -> (u64, Run) {
    use std::process::{Command, Stdio};
    let binary = assert_cmd::cargo::cargo_bin("hbpca");
    let mut child = Command::new(binary)
        .current_dir(folder.root())
        .args(arguments.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        if let Some(line) = text.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
            let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
            peak = peak.max(kibibytes << 10);
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    (peak, Run(child.wait_with_output().unwrap()))
}

#[cfg(target_os = "linux")]
fn stays_within(megabytes: u64, rows: usize, columns: usize) {
    let folder = Folder::new();
    npy(&folder, "x.npy", rows, columns);
    for solver in ["auto", "anchored", "krylov", "covariance"] {
        let arguments =
            format!("fit x.npy -k 1 --solver {solver} --scale std --memory {megabytes}M --json -q");
        let (peak, run) = peak_memory(&folder, &arguments);
        let object = run.json(0);
        assert!(peak <= megabytes << 20, "{solver}: {} MiB", peak >> 20);
        assert!(peak > 4 << 20, "{solver}: was the run watched at all?");
        let passes = object["full_passes"].as_f64().unwrap() + object["statistics_passes"].as_f64().unwrap();
        assert!(solver == "krylov" || passes <= 3.0, "{solver}: {passes}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn resident_memory_stays_within_the_budget() {
    stays_within(64, 160_000, 256); // 156 MiB
}

/// `cargo test --release -p hbpca-cli --test out_of_core -- --ignored`
#[test]
#[ignore = "writes half a gibibyte"]
#[cfg(target_os = "linux")]
fn resident_memory_stays_within_the_budget_for_half_a_gibibyte() {
    stays_within(64, 524_288, 256);
}

#[test]
fn chunk_folders_are_streamed_kept_and_checked() {
    let folder = Folder::new();
    npy(&folder, "x.npy", 60_000, 256);
    assert_eq!(folder.run("convert x.npy x.chunks --part-size 4 -q").code(), 0);
    let arguments = "--solver krylov -k 2 --json -q";
    let streamed = folder.run(&format!("fit x.chunks {arguments} --memory 64M --checkpoint c")).json(0);
    let loaded = folder.run(&format!("fit x.npy {arguments} --memory 1G")).json(0);
    assert!(streamed["stream"].is_object());
    agree(&streamed, &loaded);
    // A finished run resumes to what it found.
    let resumed = folder.run(&format!("fit x.chunks {arguments} --memory 64M --resume c")).json(0);
    assert_eq!(resumed["eigenvalues"], streamed["eigenvalues"]);
    // A flipped bit in a part is found by its checksum.
    let part = folder.path("x.chunks/part-000001.npy");
    let mut bytes = std::fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    let refusal = folder.run("fit x.chunks --solver krylov -k 2 -q --memory 64M").refusal(3);
    assert!(refusal.contains("part-000001.npy") && refusal.contains("checksum"), "{refusal}");
}

#[test]
fn streams_killed_at_any_moment_are_resumed_to_the_same_bits() {
    use std::process::Stdio;
    use std::time::{Duration, Instant};
    let folder = Folder::new();
    npy(&folder, "x.npy", 60_000, 256);
    for solver in ["anchored -k 3", "krylov -k 3"] {
        let args = format!("fit x.npy --solver {solver} --tol 1e-9 --max-passes 8 --memory 64M --json -q");
        let clock = Instant::now();
        let whole = folder.run(&args);
        let window = clock.elapsed();
        let whole = whole.json(whole.code());
        assert!(whole["stream"].is_object());
        // From before the first checkpoint to shortly before the end; every run begins from the last checkpoint.
        for moment in 1..=4 {
            let resume = if folder.path("c").exists() { "--resume c" } else { "" };
            let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("hbpca"))
                .current_dir(folder.root())
                .args(format!("{args} --checkpoint c {resume}").split_whitespace())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_secs_f64(window.as_secs_f64() * 0.2 * f64::from(moment)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let resumed = folder.run(&format!("{args} --resume c"));
        let resumed = resumed.json(resumed.code());
        for name in ["eigenvalues", "certificate", "passes", "outcome"] {
            assert_eq!(resumed[name], whole[name], "{solver}: {name}");
        }
        std::fs::remove_file(folder.path("c")).unwrap();
    }
}

/// Replaces one number of a row in place, and sets the time of the file.
fn edit(path: &std::path::Path, row: u64, d: u64, time: std::time::SystemTime) {
    use std::io::{Seek, SeekFrom, Write};
    let mut file = std::fs::File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(128 + 4 * d * row + 8)).unwrap();
    file.write_all(&1e4_f32.to_le_bytes()).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn a_streamed_resume_of_data_that_changed_is_refused() {
    let folder = Folder::new();
    for solver in ["krylov", "anchored", "power", "covariance"] {
        npy(&folder, "x.npy", 60_000, 256);
        let path = folder.path("x.npy");
        let args = format!("fit x.npy --solver {solver} --memory 64M --json -q --tol 1e-12");
        let begun = folder.run(&format!("{args} --max-passes 3 --checkpoint c"));
        assert!(begun.code() <= 1, "{solver}: {}", begun.stderr());

        // A later time alone only makes it look.
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(2);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        let resumed = folder.run(&format!("{args} --max-passes 6 --resume c"));
        assert!(resumed.code() <= 1, "{solver}: {}", resumed.stderr());

        // Row 1000 is none of those that the fingerprint samples. A run that is finished reads nothing more, unless the time says that it should.
        let before = std::fs::metadata(&path).unwrap().modified().unwrap();
        let again = later + std::time::Duration::from_secs(2);
        edit(&path, 1000, 256, if solver == "covariance" { again } else { before });
        let args = args.replace("--json ", "");
        let refusal = folder.run(&format!("{args} --max-passes 6 --resume c")).refusal(3);
        assert!(
            refusal.contains("c: the run cannot be resumed from this checkpoint: chunk "),
            "{solver}: {refusal}"
        );
        assert!(refusal.contains("have changed since it was written"), "{solver}: {refusal}");
        std::fs::remove_file(folder.path("c")).unwrap();
    }
}

/// Starts a fit, waits until `said` is on its standard error, cuts `file` to half its length, and returns how the run ended.
fn cut_during(folder: &Folder, arguments: &str, said: &str, file: &str) -> (Option<i32>, String) {
    use std::io::{BufRead, BufReader};
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("hbpca"))
        .args(arguments.split(' '))
        .current_dir(folder.root())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut all = String::new();
    while !all.contains(said) {
        let Some(line) = lines.next() else { panic!("{arguments}: {all}") };
        all += &(line.unwrap() + "\n");
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    let cut = std::fs::OpenOptions::new().write(true).open(folder.path(file)).unwrap();
    cut.set_len(cut.metadata().unwrap().len() / 2).unwrap();
    for line in lines {
        all += &(line.unwrap() + "\n");
    }
    (child.wait().unwrap().code(), all)
}

#[test]
fn a_file_that_is_cut_during_a_fit_is_an_error_that_names_it() {
    let folder = Folder::new();
    npy(&folder, "x.npy", 60_000, 256);
    std::fs::copy(folder.path("x.npy"), folder.path("y.npy")).unwrap();
    assert_eq!(folder.run("convert x.npy x.chunks --part-size 4").code(), 0);
    // Oja's steps get smaller and smaller: it never ends by itself, however fast the machine is.
    let long = "--solver oja --tol 1e-15 --max-passes 100000 --max-seconds 60";
    let streamed = "are read from disk in every pass";
    for (data, file) in [("x.npy", "x.npy"), ("x.chunks", "x.chunks/part-000003.npy")] {
        let (code, said) = cut_during(&folder, &format!("fit {data} {long} --memory 64M"), streamed, file);
        assert_eq!(code, Some(3), "{data}: {said}");
        let error = said.lines().find(|line| line.starts_with("error: ")).unwrap();
        assert!(error.contains(file), "{said}");
    }
    // What was read into memory needs the file no more: nothing is mapped.
    let short = "--solver power --tol 1e-15 --max-passes 400";
    let (code, said) =
        cut_during(&folder, &format!("fit y.npy -v {short} --memory 1G"), "read y.npy", "y.npy");
    assert_eq!(code, Some(1), "{said}");
    assert!(!said.contains("error: "), "{said}");
}
