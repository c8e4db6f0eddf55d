//! The page about missing values: its commands run, and print what it says.
//!
//! `HBPCA_UPDATE_GUIDE=1 cargo test -p hbpca-cli --test missing_guide` writes what was printed into the page.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

mod common;

use std::path::Path;
use std::process::Command;

use common::Folder;

/// Both streams of a line in a shell, with the program in its path.
fn typed(folder: &Folder, line: &str) -> String {
    let program = assert_cmd::cargo::cargo_bin("hbpca");
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.args(["-c", &format!("exec 2>&1\n{line}")]).current_dir(folder.root());
    let output = command.env("PATH", path).env("LC_ALL", "C.UTF-8").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Words, with the digits of numbers left aside: times and last digits differ between machines.
fn words(text: &str) -> String {
    let without: String =
        text.chars().filter(|c| !c.is_ascii_digit() && !"+-.,e µms%".contains(*c)).collect();
    without.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_examples_print_what_the_page_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/missing-values.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let folder = Folder::new();
    let (mut written, mut differences, mut count) = (String::new(), Vec::new(), 0);
    let mut lines = text.lines().peekable();
    let mut inside = false;
    while let Some(line) = lines.next() {
        written += &format!("{line}\n");
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ => {}
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| inside) else { continue };
        let mut said = String::new();
        while let Some(more) = lines.next_if(|line| *line != "```" && !line.starts_with("$ ")) {
            said += &format!("{more}\n");
        }
        let printed = typed(&folder, command);
        count += 1;
        if words(&said) != words(&printed) {
            differences.push(format!("$ {command}\n--- the page says\n{said}--- printed\n{printed}"));
        }
        written += &printed;
    }
    if std::env::var_os("HBPCA_UPDATE_GUIDE").is_some() {
        return std::fs::write(&page, written).unwrap();
    }
    assert!(count > 10 && differences.is_empty(), "{}", differences.join("\n"));
}
