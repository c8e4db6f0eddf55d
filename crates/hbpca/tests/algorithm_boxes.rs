//! The boxes of `docs/paper/algorithms.md` are those of the solvers, and their line numbers stand in the code.
#![allow(clippy::unwrap_used, reason = "tests stop at surprises")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use hbpca::SolverKind;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Texts of `src/solver/*.rs` by file name.
fn solver_files() -> BTreeMap<String, String> {
    let files = fs::read_dir(here("src/solver")).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.is_file());
    let text = |path: &PathBuf| fs::read_to_string(path).unwrap().replace("\r\n", "\n");
    files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), text(&path))).collect()
}

/// The first box of the module documentation.
fn box_of_module(text: &str) -> Option<String> {
    let module = text.lines().map_while(|line| line.strip_prefix("//!"));
    let lines: Vec<&str> = module.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    boxes(&lines).into_iter().next().map(|(_, text)| text)
}

/// What stands between fences, and the line of each opening one.
fn boxes(lines: &[&str]) -> Vec<(usize, String)> {
    let fences: Vec<usize> = (0..lines.len()).filter(|i| lines[*i].starts_with("```")).collect();
    assert_eq!(fences.len() % 2, 0, "a box is not closed");
    fences.chunks_exact(2).map(|pair| (pair[0], lines[pair[0] + 1..pair[1]].join("\n"))).collect()
}

/// Boxes of the document by the file that is named before them, `None` for formulas of no solver.
fn boxes_of_document(text: &str) -> Vec<(Option<String>, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut from = 0;
    let mut found = Vec::new();
    for (at, text) in boxes(&lines) {
        let between = lines[from..at].join("\n");
        let name = between.rsplit_once("· `").and_then(|(_, rest)| rest.split_once('`'));
        let name = name.and_then(|(path, _)| path.strip_prefix("solver/")).map(str::to_owned);
        from = at + 1 + text.lines().count();
        found.push((name, text));
    }
    found
}

/// Numbers that lines of a box begin with.
fn numbers_of_box(text: &str) -> Vec<usize> {
    text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

/// Numbers in comments like `// 3` and `// 4, 5` of what is neither documentation nor a test.
fn numbers_of_code(text: &str) -> BTreeSet<usize> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    let is_documentation = |line: &str| ["//!", "///"].iter().any(|mark| line.trim_start().starts_with(mark));
    let comments = code.lines().filter(|line| !is_documentation(line));
    let comments = comments.filter_map(|line| Some(line.rsplit_once("// ")?.1));
    let numbers =
        |comment: &str| comment.split(", ").map(|number| number.parse().ok()).collect::<Option<Vec<_>>>();
    comments.filter_map(numbers).flatten().collect()
}

#[test]
fn the_document_shows_the_box_of_every_solver_character_for_character() {
    let document = fs::read_to_string(here("../../docs/paper/algorithms.md")).unwrap().replace("\r\n", "\n");
    let files = solver_files();
    let mut seen = BTreeSet::new();
    for (name, shown) in boxes_of_document(&document) {
        let Some(name) = name else {
            assert!(numbers_of_box(&shown).is_empty(), "lines with numbers, but of which file?\n{shown}");
            continue;
        };
        let text = files.get(&name).unwrap_or_else(|| panic!("there is no solver/{name}"));
        let written = box_of_module(text).unwrap_or_else(|| panic!("solver/{name} has no box"));
        assert!(shown == written, "solver/{name} has\n{written}\n\nand the document\n{shown}");
        assert!(seen.insert(name.clone()), "solver/{name} has two boxes");
    }
    let solvers = files.iter().filter(|(_, text)| text.contains("\nimpl Solver for "));
    let solvers: BTreeSet<String> = solvers.map(|(name, _)| name.clone()).collect();
    assert_eq!(seen, solvers);
    for kind in SolverKind::ALL {
        assert!(solvers.contains(&format!("{}.rs", kind.name().replace('-', "_"))), "{}", kind.name());
    }
}

#[test]
fn numbers_of_boxes_are_those_of_the_comments() {
    let mut counted = 0;
    for (name, text) in solver_files() {
        let numbers = numbers_of_box(&box_of_module(&text).unwrap_or_default());
        assert!(numbers.iter().copied().eq(1..=numbers.len()), "solver/{name}: lines {numbers:?}");
        let (of_box, of_code) = (numbers.into_iter().collect::<BTreeSet<_>>(), numbers_of_code(&text));
        assert_eq!(of_box, of_code, "solver/{name}: numbers of its box, and of its comments");
        counted += of_box.len();
    }
    assert!(counted > 50, "{counted} lines");
}

#[test]
fn differences_are_seen() {
    let text = "//! ```text\n//! 1  a\n//!    repeat\n//! 2      b\n//! ```\n\nfn f() {\n    a; // 1\n    // 2, 3\n}\n";
    let written = box_of_module(text).unwrap();
    assert_eq!(written, "1  a\n   repeat\n2      b");
    assert_eq!(numbers_of_box(&written), [1, 2]);
    assert_eq!(numbers_of_code(text), BTreeSet::from([1, 2, 3]));
    assert_eq!(numbers_of_code("//! // 1\n    /// 2\n// 3 rows\n#[cfg(test)]\n// 4\n"), BTreeSet::new());
    let document = "**F** · `solver/f.rs` — x\n\n```text\n1  a\n```\n\n**M** · `policy/m.rs`\n```\nc\n```\n";
    let expected = [(Some("f.rs".to_owned()), "1  a".to_owned()), (None, "c".to_owned())];
    assert_eq!(boxes_of_document(document), expected);
}
