//! Runs that are killed, stopped or short of disk, and taken up again by the real binary.
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]
#![cfg(unix)]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, Run, csv};
use hbpca_io::StoredModel;
use serde_json::Value;

/// A folder with `x.csv`: 200 rows of 24 columns whose deviations fall slowly, so that solvers have work.
fn slow_data() -> Folder {
    let folder = Folder::in_memory();
    let deviations: Vec<f64> = (0..24).map(|j| 5.0 * 0.97_f64.powi(j)).collect();
    folder.write("x.csv", &csv(200, &deviations));
    folder
}

fn start(folder: &Folder, args: &str) -> Child {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("hbpca"));
    command.current_dir(folder.root()).args(args.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The result without what depends on the clock.
fn timeless(mut object: Value) -> Value {
    for key in ["seconds", "read_seconds"] {
        object[key] = Value::Null;
    }
    for record in object["history"].as_array_mut().unwrap() {
        record["seconds"] = Value::Null;
    }
    object
}

/// All bytes of a model file, with seconds set to zero.
fn model_bytes(path: &Path) -> Vec<u8> {
    let mut stored = StoredModel::read(path).unwrap();
    stored.origin.seconds = 0.0;
    stored.origin.history.iter_mut().for_each(|record| record.seconds = 0.0);
    stored.to_bytes().unwrap()
}

/// The trace without its column of seconds.
fn trace(folder: &Folder, name: &str) -> Vec<String> {
    let without = |line: &str| {
        line.split(',').enumerate().filter(|(i, _)| *i != 2).map(|(_, x)| x.to_owned()).collect::<Vec<_>>()
    };
    folder.read(name).lines().map(|line| without(line).join(",")).collect()
}

/// A seeded generator of moments.
struct Moments(u64);

impl Moments {
    fn below(&mut self, most: Duration) -> Duration {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        most.mul_f64((self.0 >> 40) as f64 / f64::from(1 << 24))
    }
}

/// Each of these looks many times; the last one also finds out how many components it needs.
const RUNS: [&str; 5] = [
    "--solver power --tol 1e-14 --max-passes 300",
    "--solver vr-hb-power --batch 20 --epoch 5 --tol 1e-14 --max-passes 400",
    "--solver oja --batch 20 --epoch 5 --tol 1e-14 --max-passes 400",
    "--solver krylov -k 6 --tol 0 --scale std --max-passes 100",
    "--solver krylov -k 0.8 --tol 1e-9",
];
/// How often each of them is killed.
const KILLS: usize = 11;

/// Starts a run, kills it at a random moment and takes it up again, over and over until it ends by itself before it is killed;
/// returns its result and how often it was killed.
fn kill_and_resume(folder: &Folder, args: &str, moments: &mut Moments, window: Duration) -> (Value, usize) {
    let mut kills = 0;
    loop {
        let resume = if folder.path("c.ckpt").exists() { "--resume c.ckpt" } else { "" };
        let mut child = start(folder, &format!("{args} --checkpoint c.ckpt {resume}"));
        std::thread::sleep(moments.below(window));
        child.kill().unwrap();
        let run = Run(child.wait_with_output().unwrap());
        if run.0.status.code().is_some() {
            assert!(run.code() <= 1, "{args}: {}", run.stderr());
            return (run.json(run.code()), kills);
        }
        kills += 1;
    }
}

#[test]
fn killed_at_any_moment_and_resumed_the_result_has_the_same_bits() {
    let mut moments = Moments(2024);
    let mut all_kills = 0;
    for args in RUNS {
        let folder = slow_data();
        let args = format!("fit x.csv {args} --json -q --threads 1 --trace t.csv");
        let clock = Instant::now();
        let whole = folder.run(&format!("{args} -o whole.safetensors --checkpoint whole.ckpt"));
        // Moments from before the run begins to after its end.
        let window = clock.elapsed().mul_f64(1.2);
        let (whole, whole_trace) = (timeless(whole.json(whole.code())), trace(&folder, "t.csv"));
        let mut kills = 0;
        while kills < KILLS {
            let (result, more) =
                kill_and_resume(&folder, &format!("{args} -o m.safetensors"), &mut moments, window);
            kills += more;
            assert_eq!(timeless(result), whole, "{args}");
            let models = ["m.safetensors", "whole.safetensors"].map(|name| model_bytes(&folder.path(name)));
            assert!(models[0] == models[1], "{args}");
            assert_eq!(trace(&folder, "t.csv"), whole_trace, "{args}");
            // What was killed while it wrote has left nothing behind.
            let left = ["c.ckpt", "m.safetensors", "t.csv", "whole.ckpt", "whole.safetensors", "x.csv"];
            assert_eq!(folder.names(), left);
            std::fs::remove_file(folder.path("c.ckpt")).unwrap();
        }
        all_kills += kills;
    }
    println!("{all_kills} kills");
    assert!(all_kills >= 50, "{all_kills} kills");
}

#[test]
fn signals_keep_the_run_and_are_130_and_143() {
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let folder = slow_data();
        let args = "fit x.csv --solver oja --batch 20 --epoch 5 --tol 1e-15 --json -o m.safetensors";
        // Only the end is kept: nothing is due for a long time.
        let endless = format!("{args} --max-passes 1e12 --checkpoint c.ckpt --checkpoint-every 1000s -v");
        let mut child = start(&folder, &endless);
        let said = std::io::BufReader::new(child.stderr.take().unwrap());
        let mut lines = std::io::BufRead::lines(said).map(Result::unwrap);
        assert!(lines.any(|line| line.contains("oja started")));
        std::thread::sleep(Duration::from_millis(50));
        assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        let stopped: Value = serde_json::from_slice(&output.stdout).unwrap();
        let said: Vec<String> = lines.collect();
        let way_on = "hbpca: the same command with --resume c.ckpt goes on from here";
        assert!(said.iter().any(|line| line == way_on), "{said:?}");
        let passes = stopped["passes"].as_f64().unwrap() + 30.0;
        let limit = format!("--max-passes {passes}");
        let whole = folder.run(&format!("{args} {limit}")).json(1);
        let resumed = folder.run(&format!("{args} {limit} --resume c.ckpt")).json(1);
        assert_eq!(timeless(resumed), timeless(whole));
    }
}

#[test]
fn a_finished_run_returns_at_once_and_goes_on_with_other_limits() {
    let folder = slow_data();
    let args = "fit x.csv --solver power --json -q";
    let first =
        folder.run(&format!("{args} --tol 1e-3 --checkpoint c.ckpt --checkpoint-every 5passes")).json(0);
    let again = folder.run(&format!("{args} --tol 1e-3 --resume c.ckpt --checkpoint c.ckpt")).json(0);
    assert_eq!(timeless(again), timeless(first.clone()));
    let whole = folder.run(&format!("{args} --tol 1e-6")).json(0);
    let further = folder.run(&format!("{args} --tol 1e-6 --resume c.ckpt")).json(0);
    assert_eq!(timeless(further), timeless(whole.clone()));
    assert!(whole["passes"].as_f64() > first["passes"].as_f64());
}

#[test]
fn resuming_says_where_it_goes_on_and_where_it_keeps() {
    let folder = slow_data();
    let args = "fit x.csv --solver power --json";
    let budget = folder.run(&format!("{args} --max-passes 3 --checkpoint c.ckpt"));
    assert!(budget.stderr().ends_with("hbpca: the same command with --resume c.ckpt goes on from here\n"));
    let verbose =
        folder.run(&format!("{args} --max-passes 5 --resume c.ckpt --checkpoint d.ckpt -v")).stderr();
    for line in ["resumed after 3 passes", "kept in d.ckpt after 4 passes", "kept in d.ckpt after 5 passes"] {
        assert!(verbose.contains(line), "{verbose}");
    }
    let replaced = folder.run(&format!("{args} --max-passes 3 --checkpoint c.ckpt")).stderr();
    assert!(replaced.starts_with("warning: c.ckpt is the checkpoint of an earlier run"), "{replaced}");
}

#[test]
fn what_cannot_be_resumed_is_refused_with_the_reason() {
    let folder = slow_data();
    folder.write("y.csv", &csv(200, &[3.0; 24]));
    let args = "--solver vr-pca --batch 20 --epoch 5 --max-passes 9";
    assert_eq!(folder.run(&format!("fit x.csv {args} --checkpoint c.ckpt -q")).code(), 1);
    let refused = |args: &str| folder.run(args).refusal(3);
    assert!(refused(&format!("fit x.csv {args} --resume none")).starts_with("error: none: No such file"));
    let other = refused(&format!("fit y.csv {args} --resume c.ckpt"));
    assert!(
        other.contains("c.ckpt: the run cannot be resumed") && other.contains("other data (\"200 × 24"),
        "{other}"
    );
    for (more, name) in
        [("--seed 1", "seed"), ("--scale std", "scaling"), ("--no-center", "centering"), ("--eta 0.5", "eta")]
    {
        let said = refused(&format!("fit x.csv {args} --resume c.ckpt {more}"));
        assert!(said.contains(&format!("its {name} is ")), "{more}: {said}");
    }
    assert!(refused("fit x.csv --resume c.ckpt").contains("its "));
    // Damage of every kind.
    let bytes = std::fs::read(folder.path("c.ckpt")).unwrap();
    for (damage, reason) in [
        (bytes[..bytes.len() - 1].to_vec(), "its checksum does not fit its content"),
        (bytes[..100].to_vec(), "its checksum does not fit its content"),
        ([&bytes[..200], &[bytes[200] ^ 1], &bytes[201..]].concat(), "its checksum does not fit its content"),
        (Vec::new(), "it is no checkpoint: it has 0 bytes"),
        (std::fs::read(folder.path("x.csv")).unwrap(), "it is no checkpoint written by hbpca"),
    ] {
        std::fs::write(folder.path("bad.ckpt"), damage).unwrap();
        let said = refused(&format!("fit x.csv {args} --resume bad.ckpt"));
        assert!(said.starts_with("error: bad.ckpt: ") && said.contains(reason), "{said}");
    }
}

#[test]
fn checkpoints_that_cannot_be_written_are_refused_before_any_work() {
    let folder = slow_data();
    let refused = |args: &str| folder.run(args).refusal(2);
    assert!(refused("fit x.csv --checkpoint no/such/c.ckpt").contains("cannot write no/such/c.ckpt: "));
    assert!(refused("fit x.csv --checkpoint x.csv").contains("x.csv is read as data"));
    folder.write("notes", "not to be lost");
    assert!(refused("fit x.csv --checkpoint notes").contains("it exists and is no checkpoint"));
    std::fs::remove_file(folder.path("notes")).unwrap();
    assert!(refused("fit x.csv --checkpoint .").contains("it is a folder"));
    assert!(
        refused("fit x.csv --checkpoint m --output ./m").contains("--checkpoint and --output both name m")
    );
    assert!(
        refused("fit x.csv --checkpoint t.csv --trace t.csv").contains("--checkpoint and --trace both name")
    );
    assert!(refused("fit x.csv --checkpoint-every 5s").contains("--checkpoint <FILE>"));
    assert!(refused("fit x.csv --checkpoint c --checkpoint-every 5").contains("give passes such as 1pass"));
    std::fs::create_dir(folder.path("locked")).unwrap();
    std::fs::set_permissions(folder.path("locked"), PermissionsExt::from_mode(0o500)).unwrap();
    if std::fs::write(folder.path("locked/probe"), "").is_err() {
        assert!(refused("fit x.csv --checkpoint locked/c.ckpt").contains("cannot write locked/c.ckpt: "));
    } else {
        println!("skipped: this user may write everywhere");
    }
    assert_eq!(folder.names(), ["locked", "x.csv"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_costs_the_checkpoint_and_not_the_run() {
    let folder = slow_data();
    let run = folder.run("fit x.csv --solver power --json --tol 1e-3 --checkpoint /dev/full");
    assert_eq!(run.json(0)["outcome"], "converged");
    let said = run.stderr();
    assert!(said.starts_with("warning: cannot write the checkpoint /dev/full: "), "{said}");
    assert!(
        said.ends_with("; the run goes on, this run has none so far\n") && said.lines().count() == 1,
        "{said}"
    );
}

/// On a disk of its own, where that is allowed: the one that was written before the disk was full stays whole.
#[cfg(target_os = "linux")]
#[test]
fn the_last_checkpoint_survives_a_full_disk() {
    let folder = slow_data();
    let disk = folder.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&disk)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        println!("skipped: this user may not mount a disk");
        return;
    }
    let args = "fit x.csv --solver krylov -k 2 --tol 1e-9 --json";
    assert_eq!(folder.run(&format!("{args} --max-passes 2 --checkpoint disk/c.ckpt -q")).code(), 1);
    let before = std::fs::read(folder.path("disk/c.ckpt")).unwrap();
    std::fs::write(folder.path("disk/filler"), vec![0; 64 << 10]).unwrap_err();
    let run = folder.run(&format!("{args} --resume disk/c.ckpt --checkpoint disk/c.ckpt"));
    let after = std::fs::read(folder.path("disk/c.ckpt")).unwrap();
    let unmounted = Command::new("umount").arg(&disk).status().unwrap();
    assert!(unmounted.success());
    let whole = folder.run(args).json(0);
    assert_eq!(timeless(run.json(0)), timeless(whole));
    assert!(
        run.stderr().contains("cannot write the checkpoint disk/c.ckpt: No space left"),
        "{}",
        run.stderr()
    );
    assert!(before == after);
}

#[test]
fn a_model_of_fewer_rows_saves_passes_on_more() {
    let folder = Folder::in_memory();
    let deviations: Vec<f64> = (0..100).map(|j| 5.0 * 0.97_f64.powi(j)).collect();
    let with_names = csv(2000, &deviations);
    let (_, all) = with_names.split_once('\n').unwrap();
    let part: String = all.split_inclusive('\n').take(1960).collect();
    folder.write("part.csv", &part);
    folder.write("all.csv", all);
    for args in ["--solver power", "--solver krylov -k 5", "--solver anchored -k 5"] {
        let fit = |more: &str| folder.run(&format!("fit {args} --json {more}")).json(0);
        fit("part.csv --tol 1e-8 -o part.safetensors");
        let cold = fit("all.csv --tol 1e-4");
        let warm = fit("all.csv --tol 1e-4 --start part.safetensors");
        let passes = |run: &Value| run["passes"].as_f64().unwrap();
        println!("{args}: {} passes from nothing, {} from the model", passes(&cold), passes(&warm));
        // `krylov` gives random directions as many looks as they would need alone: what was given may lack the leading vectors.
        if !args.contains("krylov") {
            assert!(passes(&warm) < passes(&cold), "{args}: {} against {}", passes(&warm), passes(&cold));
        }
        // The same eigenvalue, as far as both certificates say.
        let value = |run: &Value| run["eigenvalues"][0].as_f64().unwrap();
        let room = |run: &Value| run["certificate"]["residuals"][0].as_f64().unwrap();
        assert!((value(&warm) - value(&cold)).abs() <= room(&warm) + room(&cold), "{args}");
    }
}
