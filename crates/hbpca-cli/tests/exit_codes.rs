//! Scripts rely on the exit codes: each is reached, with a message that names the place and the way out.

mod common;

use common::Folder;

#[test]
fn converged_is_0() {
    let folder = Folder::with_data();
    let run = folder.run("fit x.csv -k 2");
    assert_eq!((run.code(), run.stderr().as_str()), (0, ""));
    assert!(run.stdout().contains("converged: 2 eigenvalues each lie within"), "{}", run.stdout());
    assert_eq!(folder.names(), ["x.csv"]); // nothing is written that was not asked for
}

#[test]
fn a_result_that_did_not_converge_is_written_and_1() {
    let folder = Folder::with_data();
    let run = folder.run("fit x.csv --solver power --max-passes 2 -o m.safetensors");
    assert_eq!(run.code(), 1);
    assert!(run.stdout().contains("budget: 1 eigenvalue lies within"), "{}", run.stdout());
    assert!(run.stderr().contains("warning: stopped after 2 passes"), "{}", run.stderr());
    assert!(run.stderr().contains("try --solver power-m"), "{}", run.stderr());
    assert_eq!(folder.names(), ["m.safetensors", "x.csv"]);
}

#[test]
fn stagnation_is_1_and_says_which_tolerance_can_be_had() {
    let run = Folder::with_data().run("fit x.csv --solver power --tol 0");
    assert_eq!(run.code(), 1);
    assert!(run.stderr().contains("stagnated") && run.stderr().contains("try --tol"), "{}", run.stderr());
    // The suggestion works.
    let tol = run.stderr().trim().rsplit(' ').next().unwrap_or_default().to_owned();
    assert_eq!(Folder::with_data().run(&format!("fit x.csv --solver power --tol {tol}")).code(), 0);
}

#[test]
fn wrong_usage_is_2() {
    let folder = Folder::with_data();
    let refused = |args: &str| folder.run(args).refusal(2);
    for (args, text) in [
        ("", "Usage: hbpca <COMMAND>"),
        ("frobnicate", "unrecognized subcommand"),
        ("fit", "<DATA>"),
        ("fit x.csv --solver magic", "[possible values: auto, covariance, krylov, anchored, power,"),
        ("fit x.csv -k 0", "k = 0: ask for at least 1 component"),
        ("fit x.csv -k 6", "k = 6: 300 rows × 5 columns have from 1 to 5 components"),
        ("fit x.csv -k 2 --solver power", "solver power finds one component; choose auto, covariance"),
        ("fit x.csv --tol 1", "tol = 1: the relative tolerance must lie from 0 up to below 1"),
        ("fit x.csv --max-passes 0", "max-passes = 0: a certificate takes at least 1 pass"),
        ("fit x.csv --max-seconds=-1", "max-seconds = -1"),
        (
            "fit x.csv --solver vr-hb-power --eta 2",
            "eta = 2: the step size must lie above 0 and at most at 1",
        ),
        ("fit x.csv --solver oja --eta -1", "eta = -1"),
        ("fit x.csv --solver oja --batch 0", "batch = 0 rows: give at least 1, or a share such as 1%"),
        ("fit x.csv --solver oja --batch 301", "batch = 301 rows: the data has only 300 rows"),
        (
            "fit x.csv --solver oja --batch 120%",
            "batch = 120%: a share must lie above 0% and at most at 100%",
        ),
        ("fit x.csv --solver oja --batch many", "give a number of rows such as 256, or a share such as 1%"),
        ("fit x.csv --solver oja --epoch 1", "epoch = 1: an epoch has at least 2 steps"),
        ("fit x.csv --solver power-m --momentum oracle", "give --lambda2 X, or use --momentum adaptive"),
        ("fit x.csv --momentum adaptive --lambda2 1", "--lambda2 1 has no place in --momentum adaptive"),
        ("fit x.csv --momentum dynamic --lambda2 1", "--lambda2 1 has no place in --momentum dynamic"),
        ("fit x.csv --solver power-m --lambda2 -1", "lambda2 = -1: give a finite number of at least 0"),
        ("fit x.csv --trace t.txt", "--trace t.txt: name it .csv for a table or .jsonl"),
        ("fit x.csv -q -v", "cannot be used with"),
        ("fit - x.csv", "cannot be one of several parts"),
        ("convert x.csv y.unknown", "y.unknown: the name shows no format; end it in one of .libsvm"),
        ("theory --lambda1 1 --lambda2 2 --variance 0", "lambda2 = 2: must be below lambda1 = 1"),
        ("theory --lambda1 1 --lambda2 0.5 --variance 0 --eta 2", "eta = 2: must lie in (0, 1]"),
    ] {
        let message = refused(args);
        assert!(message.contains(text), "hbpca {args}\n{message}");
    }
}

#[test]
fn a_covariance_that_no_machine_holds_is_refused() {
    let folder = Folder::new();
    folder.write("x.svm", "1 1:2\n1 1:1 60000:4\n1 2:1\n");
    let message = folder.run("fit x.svm --solver covariance").refusal(2);
    assert!(
        message.contains("would need 80 GiB for the 60,000 columns") && message.contains("--solver krylov"),
        "{message}"
    );
    assert_eq!(folder.run("fit x.svm --solver krylov").code(), 0);
    // What is refused by name is never chosen.
    let chosen = folder.run("fit x.svm --json").json(0);
    assert_eq!(chosen["solver"], "krylov", "{}", chosen["chosen_because"]);
}

#[test]
fn an_output_that_cannot_be_written_is_found_before_any_work() {
    let folder = Folder::new();
    folder.write("bad.csv", "a,b\n1,2\n3,x\n"); // never looked at: the output is refused first
    folder.write("good.csv", "a,b\n1,2\n3,5\n4,4\n");
    assert_eq!(folder.run("fit good.csv -o m.safetensors").code(), 0);
    for args in [
        "fit bad.csv -o none/m.safetensors",
        "fit bad.csv --trace none/t.csv",
        "transform m.safetensors bad.csv -o none/s.csv",
        "inverse m.safetensors bad.csv -o none/s.csv",
        "convert bad.csv none/y.csv",
        "demo -o none/demo.html",
    ] {
        let message = folder.run(args).refusal(2);
        assert!(message.starts_with("error: cannot write none/"), "{args}: {message}");
    }
    std::fs::create_dir(folder.path("d.csv")).unwrap();
    let message = folder.run("transform m.safetensors bad.csv -o d.csv").refusal(2);
    assert_eq!(message, "error: cannot write d.csv: it is a folder; name a file\n");
    assert_eq!(folder.names(), ["bad.csv", "d.csv", "good.csv", "m.safetensors"]);
}

#[test]
fn bad_input_is_3_and_the_place_is_named() {
    let folder = Folder::with_data();
    folder.write("word.csv", "a,b\n1,2\n3,x\n");
    folder.write("nan.csv", "a,b\n1,2\n3,nan\n");
    folder.write("empty.csv", "");
    folder.write("short.svm", "1 1:2 0:\n");
    folder.write("wide.csv", "1,2\n3,4\n5,5\n");
    folder.write("no.safetensors", "not a model");
    assert_eq!(folder.run("fit x.csv -k 2 -o m.safetensors").code(), 0);
    for (args, text) in [
        ("fit none.csv", "none.csv: No such file"),
        ("fit word.csv", "word.csv:3:3: "),
        ("fit nan.csv", "nan.csv:3:3: "),
        ("fit empty.csv", "empty.csv: "),
        ("fit short.svm", "short.svm:1:9: "),
        ("fit x.csv --label-column z", "no column `z`"),
        ("fit x.csv --start no.safetensors", "no.safetensors: it is not a whole safetensors file"),
        ("fit wide.csv --solver power --start m.safetensors", "5 given where 2 are needed"),
        ("transform none m.csv -o s.csv", "none: No such file"),
        (
            "transform m.safetensors wide.csv -o s.csv",
            "columns of the data to transform: 2 given where 5 are needed",
        ),
        (
            "inverse m.safetensors x.csv -o s.csv",
            "columns of scores, one for each component: 5 given where 2 are needed",
        ),
        ("check m.safetensors wide.csv", "columns, as the model has: 2 given where 5 are needed"),
        ("check no.safetensors x.csv", "no.safetensors: it is not a whole safetensors file"),
        ("convert word.csv y.npy", "word.csv:3:3: "),
    ] {
        let message = folder.run(args).refusal(3);
        assert!(message.contains(text), "hbpca {args}\n{message}");
    }
}

#[test]
fn nothing_is_left_behind_by_a_run_that_fails() {
    let folder = Folder::new();
    folder.write("word.csv", "a,b\n1,2\n3,x\n");
    assert_eq!(folder.run("fit word.csv -o m.safetensors --trace t.jsonl").code(), 3);
    assert_eq!(folder.run("convert word.csv y.npy").code(), 3);
    assert_eq!(folder.names(), ["word.csv"]);
}

#[test]
fn flags_without_effect_are_named() {
    let run = Folder::with_data().run("fit x.csv --eta 0.5 --batch 10");
    assert_eq!(run.code(), 0);
    assert!(
        run.stderr().contains("--eta and --batch have no effect on solver covariance"),
        "{}",
        run.stderr()
    );
    let folder = Folder::with_data();
    assert_eq!(folder.run("fit x.csv -o m.safetensors").code(), 0);
    let said = folder.run("fit x.csv --start m.safetensors").stderr();
    assert!(said.contains("--start has no effect on solver covariance"), "auto chose it: {said}");
    assert_eq!(folder.run("fit x.csv --start m.safetensors --solver krylov").stderr(), "");
}

#[test]
fn quiet_says_nothing_but_errors() {
    let folder = Folder::with_data();
    let run = folder.run("fit x.csv -q --eta 0.5 --solver power --max-passes 2");
    assert_eq!((run.code(), run.stdout().as_str(), run.stderr().as_str()), (1, "", ""));
    assert_eq!(folder.run("fit x.csv -q --json").json(0)["n"], 300);
    assert_eq!(folder.run("fit x.csv -q -o m.safetensors").code(), 0);
    let run = folder.run("check m.safetensors x.csv -q");
    assert_eq!((run.code(), run.stdout().as_str(), run.stderr().as_str()), (0, "", ""));
    assert!(folder.run("fit none.csv -q").refusal(3).starts_with("error: none.csv"));
}

#[test]
fn verbose_says_what_is_being_done() {
    let run = Folder::with_data().run("fit x.csv -v");
    let said = run.stderr();
    assert!(said.contains("hbpca: read x.csv (csv, dense "), "{said}");
    assert!(said.contains("hbpca: covariance started on 300 rows × 5 columns, k = 5"), "{said}");
}

#[test]
fn one_column_in_another_unit_is_pointed_out() {
    let folder = Folder::new();
    folder.write("x.csv", &common::csv(100, &[1.0, 1000.0, 1.0]));
    let said = folder.run("fit x.csv").stderr();
    assert!(
        said.contains("component 1 is almost only column `b`") && said.contains("Try --scale std"),
        "{said}"
    );
    assert_eq!(folder.run("fit x.csv --scale std").stderr(), "");
}
