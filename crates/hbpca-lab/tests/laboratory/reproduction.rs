//! A tiny experiment described in TOML, run, interrupted and continued.

use std::fs;
use std::path::{Path, PathBuf};

use hbpca_lab::progress::Progress;
use hbpca_lab::reproduce::{Plan, Target, write_figures, write_findings};

use crate::generated_csv;

const EXPERIMENT: &str = r#"
name = "figure1"
title = "Tiny"
batch = "5%"
epoch = 20
datasets = ["tiny"]
solvers = ["power", "power-m:oracle", "vr-pca", "vr-power-m:oracle", "vr-hb-power:oracle", "vr-hb-power:adaptive"]
extended = ["krylov", "a-solver-of-tomorrow"]
seeds = 2
target = 1e-6
floor = 1e-12
grid = { smallest = 0.3, largest = 3.0, points = 2 }
quick = { rows = 300, seeds = 1, points = 1 }

[[dataset]]
id = "tiny"
title = "Tiny"
files = ["tiny.csv"]
preprocessing = "center"
passes = 12
"#;

fn plan(folder: &Path, out: &str, quick: bool) -> Plan {
    fs::write(folder.join("tiny.csv"), generated_csv(600, 5, 0.9)).unwrap();
    fs::write(folder.join("tiny.toml"), EXPERIMENT).unwrap();
    Plan {
        target: Target::All,
        data: folder.to_owned(),
        out: folder.join(out),
        quick,
        experiment: Some(folder.join("tiny.toml")),
        command: "hbpca reproduce".into(),
    }
}

fn reproduce(plan: &Plan) -> String {
    let progress = Progress::quiet();
    let results = plan.measure(&progress).unwrap();
    write_figures(&results, &plan.out).unwrap();
    write_findings(&results, plan, &progress).unwrap().to_string()
}

fn runs(out: &Path) -> Vec<PathBuf> {
    let mut runs: Vec<PathBuf> = fs::read_dir(out.join("runs")).unwrap().map(|x| x.unwrap().path()).collect();
    runs.sort();
    runs
}

#[test]
fn everything_is_written_and_the_paper_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path(), "out", false);
    let summary = reproduce(&plan);
    assert!(summary.contains("VR HB Power OM consistently outperforms") && summary.contains("report.html"));
    for file in [
        "figure1.csv",
        "figure1-seconds.csv",
        "figure1-step-sizes.csv",
        "figure1.svg",
        "figure1.png",
        "figure1-seconds.svg",
        "figure1-extended.svg",
        "table1.md",
        "table2.csv",
        "table3.md",
        "claims.md",
        "report.html",
    ] {
        let size = fs::metadata(plan.out.join(file)).unwrap_or_else(|_| panic!("{file} is missing")).len();
        assert!(size > 0, "{file} is empty");
    }
    let report = fs::read_to_string(plan.out.join("report.html")).unwrap();
    // The chart library, the first script, carries addresses in its texts; that it fetches none is the browser test's part.
    let (_, page) = report.split_once("</script>").unwrap();
    assert!(
        !page.contains("src=\"http") && !page.contains("href=\"http"),
        "the report must not need a network"
    );
    assert!(!fs::read_to_string(plan.out.join("figure1.svg")).unwrap().contains("quick run"));
    let text = fs::read_to_string(plan.out.join("reproduction.md")).unwrap();
    let figures: Vec<&str> =
        text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(file, _)| file).collect();
    assert!(figures.contains(&"figure1-extended.svg"), "{figures:?}");
    for file in figures.iter().filter(|file| file.contains(".svg")) {
        assert!(plan.out.join(file).is_file(), "{file} is linked and not there");
    }
    assert!(
        text.contains("VR HB Power OM consistently outperforms") && text.contains("| command |"),
        "{text}"
    );
}

#[test]
fn same_seeds_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (plan(folder.path(), "a", false), plan(folder.path(), "b", false));
    reproduce(&a);
    reproduce(&b);
    for file in
        ["figure1.csv", "figure1-step-sizes.csv", "figure1.svg", "table1.csv", "table2.csv", "claims.md"]
    {
        let read = |plan: &Plan| fs::read(plan.out.join(file)).unwrap();
        assert!(read(&a) == read(&b), "{file} differs between two runs with the same seeds");
    }
}

#[test]
fn finished_runs_are_not_repeated_and_broken_ones_are() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path(), "out", false);
    reproduce(&plan);
    let files = runs(&plan.out);
    // Seven solvers × 2 seeds, and every step size tried once.
    let tried = fs::read_to_string(plan.out.join("figure1-step-sizes.csv")).unwrap().lines().count() - 1;
    assert!(tried >= 2 + 3, "two points for VR-PCA, two and the full step for VR HB Power");
    assert_eq!(files.len(), 7 * 2 + tried);
    let first = fs::read_to_string(plan.out.join("figure1.csv")).unwrap();
    let times = fs::read_to_string(plan.out.join("figure1-seconds.csv")).unwrap();
    // Interrupted: one run lost, one cut off.
    fs::remove_file(&files[0]).unwrap();
    fs::write(&files[1], "{\"seed\":").unwrap();
    let kept = fs::metadata(&files[2]).unwrap().modified().unwrap();
    reproduce(&plan);
    assert_eq!(runs(&plan.out), files);
    assert_eq!(fs::metadata(&files[2]).unwrap().modified().unwrap(), kept);
    assert_eq!(fs::read_to_string(plan.out.join("figure1.csv")).unwrap(), first);
    // Of the times only those of the two runs made anew may differ.
    let again = fs::read_to_string(plan.out.join("figure1-seconds.csv")).unwrap();
    assert_eq!(again.lines().count(), times.lines().count());
}

#[test]
fn quick_runs_say_so_on_every_figure() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path(), "out", true);
    reproduce(&plan);
    for figure in ["figure1.svg", "figure1-seconds.svg", "figure1-extended.svg"] {
        let text = fs::read_to_string(plan.out.join(figure)).unwrap();
        assert!(text.contains("quick run: at most 300 rows"), "{figure}");
    }
    assert!(fs::read_to_string(plan.out.join("report.html")).unwrap().contains("quick run"));
}

#[test]
fn data_that_is_not_there_or_not_the_same_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path(), "out", false);
    let refused = |plan: &Plan| plan.measure(&Progress::quiet()).unwrap_err().to_string();
    let elsewhere = Plan { data: folder.path().join("nowhere"), ..plan.clone() };
    assert!(refused(&elsewhere).contains("at least one of tiny.csv is needed"));
    let strict = EXPERIMENT.replace("preprocessing", "sha256 = [\"00\"]\npreprocessing");
    fs::write(folder.path().join("tiny.toml"), strict).unwrap();
    let text = refused(&plan);
    assert!(text.contains("tiny.csv: its sha256 is") && text.contains("the experiment names 00"), "{text}");
}
