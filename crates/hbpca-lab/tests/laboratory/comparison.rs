//! A race on a file of the user's.

use std::fs;

use clap::Parser;
use hbpca_lab::LabError;
use hbpca_lab::cli::{CompareArgs, PlotArgs};

use crate::generated_csv;

#[derive(Debug, Parser)]
enum Command {
    Compare(CompareArgs),
    Plot(PlotArgs),
}

fn run(words: &[&str]) -> Result<String, LabError> {
    match Command::try_parse_from(std::iter::once(&"hbpca").chain(words)).unwrap() {
        Command::Compare(args) => args.run(words.join(" ")).map(|compared| compared.to_string()),
        Command::Plot(args) => args.run().map(|_| String::new()),
    }
}

#[test]
fn a_race_ends_with_advice_and_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("mine.csv"), generated_csv(500, 6, 0.8)).unwrap();
    let advice = run(&[
        "compare",
        &path("mine.csv"),
        "--seeds",
        "2",
        "--passes",
        "10",
        "--batch",
        "10%",
        "--epoch",
        "10",
        "--solvers",
        "krylov,power,vr-hb-power",
        "-q",
        "-o",
        &path("report.html"),
    ])
    .unwrap();
    // d = 6 is less than a block: Krylov is exact after one pass.
    assert!(advice.contains("--solver krylov") && advice.contains("because"), "{advice}");
    let report = fs::read_to_string(path("report.html")).unwrap();
    assert!(report.contains("Which solver for mine.csv?") && report.contains("report-files&#x2f;race.csv"));
    assert!(fs::metadata(folder.path().join("report-files/race.png")).unwrap().len() > 0);
}

#[test]
fn a_race_for_several_components_has_only_solvers_that_find_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("mine.csv"), generated_csv(400, 12, 0.8)).unwrap();
    let (data, report) = (path("mine.csv"), path("r.html"));
    let words = ["compare", &data, "-k", "3", "--seeds", "1", "--passes", "20", "-q", "-o", &report];
    let advice = run(&words).unwrap();
    assert!(advice.contains("-k 3 --solver "), "{advice}");
    assert!(["covariance", "krylov", "anchored"].iter().any(|name| advice.contains(name)), "{advice}");
    assert!(
        !["power", "oja", "vr-"].iter().any(|name| advice.contains(&format!("--solver {name}"))),
        "{advice}"
    );
    // Everything that was written is named.
    let written = fs::read_dir(folder.path().join("r-files")).unwrap();
    for name in written.map(|entry| entry.unwrap().file_name().into_string().unwrap()) {
        let is_named = advice.contains(&name) || name.starts_with("mine-csv-");
        assert!(is_named, "{name} is not in: {advice}");
    }
    let page = fs::read_to_string(&report).unwrap();
    assert!(page.contains("‖(I − UUᵀ)W̃‖²") && page.contains("3 components") && !page.contains("Power+M"));
    let refused = run(&[&words[..], &["--solvers", "krylov,oja"]].concat()).unwrap_err().to_string();
    assert!(refused.starts_with("-k 3: oja finds one component only"), "{refused}");
    assert!(run(&[&words[..], &["--study"]].concat()).unwrap_err().to_string().contains("--study"));
}

#[test]
fn a_race_that_nobody_finishes_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("close.csv"), generated_csv(400, 6, 0.99)).unwrap();
    let words = [
        "compare",
        &path("close.csv"),
        "--seeds",
        "1",
        "--passes",
        "3",
        "--solvers",
        "power",
        "-q",
        "-o",
        &path("r.html"),
    ];
    let advice = run(&words).unwrap();
    assert!(advice.contains("No solver reached") && advice.contains("larger --passes"), "{advice}");
    let mut nonsense = words.to_vec();
    nonsense[5] = "1";
    assert!(run(&nonsense).unwrap_err().to_string().contains("passes = 1: a race needs"));
}

#[test]
fn plots_are_written_by_extension() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("trace.csv"), "passes,seconds,theta,residual\n1,0.1,2,1e-1\n2,0.2,2,1e-4\n3,0.3,2,1e-7\n")
        .unwrap();
    for (name, start) in [("p.svg", &b"<svg"[..]), ("p.png", b"\x89PNG"), ("p.html", b"\n<!doctype")] {
        run(&["plot", &path("trace.csv"), "-o", &path(name)]).unwrap();
        let bytes = fs::read(path(name)).unwrap();
        let from = bytes.iter().position(|b| *b == start[0]).unwrap();
        assert!(bytes[from..].starts_with(start), "{name}");
    }
    fs::write(path("scores.csv"), "a,b\n1,2\n3,4\n0,1\n").unwrap();
    run(&["plot", &path("scores.csv"), "--kind", "scores", "-o", &path("s.svg")]).unwrap();
    let refused = run(&["plot", &path("trace.csv"), "-o", &path("p.pdf")]).unwrap_err().to_string();
    assert!(refused.contains("`pdf` is no kind of plot"), "{refused}");
}
