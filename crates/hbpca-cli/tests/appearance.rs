//! What people see, as snapshots: help texts and tables with their numbers taken out.

mod common;

use common::Folder;

/// Runs of digits, with points and exponents, become `#`; widths of columns do not matter then.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let words = line.split_whitespace().map(|word| {
            let number = word.trim_start_matches('(').trim_end_matches([',', '.', ':', ')']);
            let is_number = number.starts_with(|c: char| c.is_ascii_digit())
                && number.chars().all(|c| c.is_ascii_digit() || ".e-,".contains(c));
            if is_number { word.replacen(number, "#", 1) } else { word.to_owned() }
        });
        out += &words.collect::<Vec<_>>().join(" ");
        out += "\n";
    }
    // Units of time depend on the machine.
    out.replace("# µs", "# s").replace("# ms", "# s")
}

#[test]
fn help() {
    let folder = Folder::new();
    let help = |args: &str| {
        let output = folder.command(args).env("COLUMNS", "100").output().unwrap();
        common::Run(output).stdout()
    };
    insta::assert_snapshot!("help", help("--help"));
    for command in [
        "fit",
        "transform",
        "inverse",
        "check",
        "info",
        "convert",
        "plot",
        "report",
        "compare",
        "reproduce",
        "theory",
        "completions",
        "man",
        "demo",
        "sample",
        "plan",
    ] {
        insta::assert_snapshot!(format!("help-{command}"), help(&format!("{command} --help")));
    }
}

#[test]
fn tables() {
    let folder = Folder::with_data();
    let shown = |args: &str| without_numbers(&folder.run(args).stdout());
    insta::assert_snapshot!("fit", shown("fit x.csv -k 3 --scale std -o m.safetensors"));
    insta::assert_snapshot!("fit-budget", shown("fit x.csv --solver power --max-passes 2"));
    insta::assert_snapshot!("check", shown("check m.safetensors x.csv"));
    insta::assert_snapshot!("info-data", shown("info x.csv"));
    insta::assert_snapshot!("info-model", shown("info m.safetensors"));
    insta::assert_snapshot!("theory", shown("theory --lambda1 2.5 --lambda2 2.4 --variance 0.1 --eta 0.1"));
    insta::assert_snapshot!("demo", shown("demo"));
}

#[test]
fn columns_line_up() {
    let text = Folder::with_data().run("fit x.csv -k 5").stdout();
    let table: Vec<&str> =
        text.lines().filter(|line| line.contains('%') || line.contains("component")).collect();
    let ends: Vec<usize> = table.iter().map(|line| line.chars().count()).collect();
    assert_eq!(table.len(), 6);
    assert!(ends.iter().all(|end| *end == ends[0]), "{text}");
}

#[test]
fn colours_only_where_they_are_wanted() {
    let folder = Folder::new();
    for (key, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let output = folder.command("fit none.csv").env(key, value).output().unwrap();
        assert!(!common::Run(output).stderr().contains('\u{1b}'));
    }
    let output = folder.command("fit none.csv").env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(common::Run(output).stderr().contains("\u{1b}["));
}

#[test]
fn the_demo_writes_its_page() {
    let folder = Folder::new();
    let run = folder.run("demo");
    assert_eq!(run.code(), 0);
    let page = folder.read("hbpca-demo.html");
    let table = run.stdout();
    let rows: Vec<&str> =
        table.lines().filter(|line| line.ends_with("yes") || line.ends_with("no")).collect();
    assert_eq!(rows.len(), hbpca::SolverKind::ALL.len(), "{table}");
    for solver in hbpca::SolverKind::ALL {
        assert!(rows.iter().any(|row| row.split_whitespace().next() == Some(solver.name())), "{solver}");
        assert!(page.contains(&format!("<th scope=\"row\">{solver}</th>")), "{solver}");
    }
    // What converged has the right vector: sin²∠ is below (tol·θ₁/gap)², here below 1e-9.
    for row in rows.iter().filter(|row| row.ends_with("yes")) {
        let error: f64 = row.split_whitespace().nth(3).unwrap().parse().unwrap();
        assert!(error < 1e-9, "{row}");
    }
    assert!(page.contains("CC BY 4.0") && page.contains("prefers-color-scheme: dark"));
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.run(&format!("completions {shell}")).stdout();
        assert!(script.contains("transform") && script.contains("lambda2"), "{shell}");
    }
    assert!(folder.run("man").stdout().contains("hbpca\\-fit(1)"));
    assert_eq!(folder.run("man --folder man").code(), 0);
    let page = folder.read("man/hbpca-fit.1");
    assert!(page.contains("max\\-passes"), "{page}");
    assert!(folder.path("man/hbpca.1").exists() && folder.path("man/hbpca-demo.1").exists());
}
