//! The examples of the guide and of the README, as they are typed there, with the output that is printed there.
//!
//! `HBPCA_UPDATE_GUIDE=1 cargo test -p hbpca-cli --test guide` writes what was printed into the page.
#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "tests stop at surprises")]
#![cfg(unix)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::Folder;

fn page(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Runs a line in a shell, with the program in its path: both streams as they come, and how it ended.
fn typed(folder: &Folder, line: &str) -> (String, bool) {
    let program = assert_cmd::cargo::cargo_bin("hbpca");
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1\n{line}")])
        .current_dir(folder.root())
        .env("PATH", path)
        .env("LC_ALL", "C.UTF-8")
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.success())
}

/// A page in pieces: text, and commands with what they print.
enum Piece {
    Text(String),
    Example { line: String, output: String },
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) => {
                if let Some(command) = line.strip_prefix("$ ") {
                    pieces.push(Piece::Example { line: command.to_owned(), output: String::new() });
                } else if let Some(Piece::Example { output, .. }) = pieces.last_mut() {
                    *output += &format!("{line}\n");
                }
                continue;
            }
            _ => {}
        }
        pieces.push(Piece::Text(line.to_owned()));
    }
    pieces
}

/// What the text says apart from its numbers, and its numbers. Times, bounds and seeds are as they may be: `#`.
fn words_and_numbers(text: &str) -> (String, Vec<f64>) {
    let (mut words, mut numbers) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        words += &rest[..start];
        rest = &rest[start..];
        let mut end = rest.find(|c: char| !(c.is_ascii_digit() || ".,".contains(c))).unwrap_or(rest.len());
        let exponent = rest[end..].strip_prefix('e').map(|tail| tail.trim_start_matches('-'));
        let digits =
            exponent.map_or(0, |tail| tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len()));
        let is_bound = digits > 0;
        if is_bound {
            end = rest.len() - exponent.unwrap().len() + digits;
        }
        let number = rest[..end].trim_end_matches(['.', ',']);
        rest = &rest[number.len()..];
        let unit = [" µs", " ms", " s"].into_iter().find(|unit| {
            let after = rest.strip_prefix(unit);
            after.is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric()))
        });
        if let Some(unit) = unit {
            rest = &rest[unit.len()..];
        }
        match number.replace(',', "").parse() {
            // How many passes it takes may hang on last digits.
            Ok(value) if unit.is_none() && !is_bound && number.len() < 15 && !rest.starts_with(" passes") => {
                numbers.push(value);
            }
            _ => {}
        }
        words += "#";
    }
    words += rest;
    // Columns are as wide as their numbers.
    let lines: Vec<String> =
        words.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    (lines.join("\n"), numbers)
}

/// Whether two outputs say the same: other instruction sets differ in last digits.
fn agree(a: &str, b: &str) -> bool {
    let ((a, these), (b, those)) = (words_and_numbers(a), words_and_numbers(b));
    let close = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-5 * x.abs().max(y.abs());
    a == b && these.len() == those.len() && these.iter().zip(&those).all(close)
}

#[test]
fn only_numbers_that_may_differ_differ() {
    let fit = "1  2.52488952  1.7e-12  11.48 %\nin 33.4 ms, seed 9968747611744459805";
    assert!(agree(fit, "1   2.52488951   9.9e-13   11.48 %\nin 1.03 s, seed 14279229141866229267"));
    assert!(!agree(fit, &fit.replace("11.48", "11.52")));
    assert!(!agree(fit, &fit.replace("1  2.5", "2  2.5")));
    assert!(!agree(fit, &fit.replace("seed", "seeds")));
    assert!(!agree("91,701 rows", "91,801 rows") && agree("91,701 rows", "91,701 rows"));
}

/// Runs all examples of a page in one folder, in their order; `files` lie there under the names that the page has for them.
fn check_page(path: &str, files: &[(&str, &str)]) {
    let text = std::fs::read_to_string(page(path)).unwrap();
    let folder = Folder::new();
    for (name, file) in files {
        std::fs::copy(page(file), folder.path(name)).unwrap();
    }
    let update = std::env::var_os("HBPCA_UPDATE_GUIDE").is_some();
    let (mut written, mut differences) = (String::new(), Vec::new());
    let mut count = 0;
    for piece in pieces(&text) {
        match piece {
            Piece::Text(line) => written += &format!("{line}\n"),
            Piece::Example { line, output } => {
                count += 1;
                let (found, _) = typed(&folder, &line);
                if !agree(&output, &found) {
                    differences.push(format!("$ {line}\n--- {path} says\n{output}--- printed\n{found}"));
                }
                written += &format!("$ {line}\n{found}");
            }
        }
    }
    if update {
        std::fs::write(page(path), written).unwrap();
        return;
    }
    assert!(count > 0, "{path} has no examples");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn the_examples_of_the_guide_print_what_it_says() {
    check_page("docs/guide/command-line.md", &[]);
}

#[test]
fn the_examples_of_single_cells_print_what_the_page_says() {
    let cells = "crates/hbpca-io/tests/fixtures/h5ad/larger.h5ad";
    check_page("docs/guide/single-cell.md", &[("cells.h5ad", cells)]);
}

#[test]
fn the_examples_of_the_readme_work() {
    let text = std::fs::read_to_string(page("README.md")).unwrap();
    let section = text.split("\n## Five examples\n").nth(1).unwrap();
    let block = section.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let lines: Vec<&str> = block.lines().filter(|line| line.starts_with("hbpca ")).collect();
    assert!(lines.len() >= 6, "a sample and five examples: {block}");
    let folder = Folder::new();
    for line in lines {
        let (printed, success) = typed(&folder, line);
        assert!(success, "{line}\n{printed}");
    }
}
