//! `--weight-column` and `--weights`: rows that count more than once, once, or not at all.

#![allow(
    clippy::unwrap_used,
    clippy::format_push_string,
    reason = "what cannot go on in a test has failed; files are small"
)]

mod common;

use common::{Folder, csv, numbers};
use serde_json::Value;

/// Rows of `x.csv` with a weight in the second of six columns, and `repeated.csv` with each row as often as it counts.
fn folder() -> Folder {
    let folder = Folder::with_data();
    let text = folder.read("x.csv");
    let (mut weighted, mut repeated) = (String::new(), String::new());
    for (l, line) in text.lines().enumerate() {
        let (first, rest) = line.split_once(',').unwrap();
        if l == 0 {
            weighted += &format!("{first},w,{rest}\n");
            repeated += &format!("{line}\n");
        } else {
            let count = [2, 0, 1, 3][l % 4];
            weighted += &format!("{first},{count},{rest}\n");
            repeated += &format!("{line}\n").repeat(count);
        }
    }
    folder.write("weighted.csv", &weighted);
    folder.write("repeated.csv", &repeated);
    folder
}

fn assert_same(a: &Value, b: &Value) {
    assert_eq!(a["d"], b["d"]);
    for key in ["eigenvalues", "explained_variance", "explained_variance_ratio"] {
        for (x, y) in numbers(&a[key]).iter().zip(numbers(&b[key])) {
            assert!((x / y - 1.0).abs() < 1e-10, "{key}: {x} {y}");
        }
    }
}

#[test]
fn a_weight_column_is_taken_out_and_counts_rows() {
    let folder = folder();
    for choices in ["-k 3", "-k 2 --scale std", "-k 2 --no-center --solver krylov --tol 1e-12"] {
        let weighted = folder.run(&format!("fit weighted.csv --weight-column w --json -q {choices}")).json(0);
        assert_same(&weighted, &folder.run(&format!("fit repeated.csv --json -q {choices}")).json(0));
    }
}

#[test]
fn the_model_and_check_know_the_column() {
    let folder = folder();
    assert_eq!(folder.run("fit weighted.csv --weight-column w -k 2 -q -o m.safetensors").code(), 0);
    let info = folder.run("info m.safetensors").stdout();
    assert!(info.contains("300 rows of weight 450") && info.contains("(column `w`)"), "{info}");
    assert_eq!(folder.run("info m.safetensors --json").json(0)["weight_column"], "w");
    let check = folder.run("check m.safetensors weighted.csv");
    assert_eq!(check.code(), 0, "{}{}", check.stdout(), check.stderr());
    let missing = folder.run("check m.safetensors x.csv").refusal(3);
    assert!(missing.contains("there is no column `w`"), "{missing}");
    // Other weights are other data.
    let other = folder.read("weighted.csv").replacen(",3,", ",2,", 1).replacen(",1,", ",2,", 1);
    folder.write("other.csv", &other);
    assert_eq!(folder.run("check m.safetensors other.csv").code(), 1);
    // Scores of the data under the model are those of all rows, whatever they weigh.
    assert_eq!(folder.run("transform m.safetensors weighted.csv -o scores.csv").code(), 0);
    assert_eq!(folder.read("scores.csv").lines().count(), 301);
}

#[test]
fn weights_that_are_none_are_refused_with_their_place() {
    let folder = Folder::new();
    for (field, said) in [
        ("-1", "column `w`, row 2 (counted from 1) holds -1: a weight is finite and not negative"),
        ("", "column `w`, row 2 (counted from 1) holds nothing: a weight is a number"),
        ("nan", "column `w`, row 2 (counted from 1) holds `nan`: a weight is a number"),
        ("heavy", "column `w`, row 2 (counted from 1) holds `heavy`: a weight is a number"),
    ] {
        folder.write("x.csv", &format!("a,w,b\n1,1,2\n3,{field},5\n4,2,1\n"));
        let refusal = folder.run("fit x.csv --weight-column w").refusal(3);
        assert!(refusal.contains(said), "{refusal}");
    }
    folder.write("x.csv", "a,w,b\n1,0,2\n3,0,5\n");
    let refusal = folder.run("fit x.csv --weight-column w").refusal(2);
    assert!(refusal.contains("at least one row needs a positive weight"), "{refusal}");
    let refusal = folder.run("fit x.csv --weight-column v").refusal(3);
    assert!(refusal.contains("there is no column `v`"), "{refusal}");
    let refusal = folder.run("fit x.csv --weight-column w --columns a,w").refusal(3);
    assert!(refusal.contains("column 1 holds the weights and cannot be a feature too"), "{refusal}");
    folder.run("convert x.csv x.npy");
    let refusal = folder.run("fit x.npy --weight-column 1").refusal(3);
    assert!(refusal.contains("--weights"), "{refusal}");
}

#[test]
fn weights_of_one_or_less_say_that_there_is_no_n_minus_one() {
    let folder = Folder::new();
    folder.write("x.csv", "a,w,b\n1,0.2,2\n3,0.3,5\n4,0.1,1\n");
    let run = folder.run("fit x.csv -k 1 --weight-column w --json");
    assert!(run.stderr().contains("the rows weigh 0.6 in all, which leaves no n − 1"), "{}", run.stderr());
    assert_eq!(numbers(&run.json(0)["explained_variance"]), [0.0]);
}

#[test]
fn weights_of_rows_on_disk_give_what_they_give_in_memory() {
    let folder = Folder::new();
    // 40,000 × 100 numbers: 15.3 MiB as f32, which do not fit into 40 MiB beside the program.
    let table = csv(400, &[3.0, 2.0, 1.5, 1.0, 0.5]);
    let (mut text, mut weights) = (String::from("w,"), String::from("w\n"));
    let names: Vec<String> = (0..100).map(|j| format!("x{j}")).collect();
    text += &(names.join(",") + "\n");
    let lines: Vec<&str> = table.lines().skip(1).collect();
    for l in 0..40_000 {
        let weight = [1.0, 0.0, 2.5, 0.25][l % 4];
        let row: Vec<&str> = (0..20).map(|j| lines[(l * 7 + j * 13 + l / 400) % 400]).collect();
        text += &format!("{weight},{}\n", row.join(","));
        weights += &format!("{weight}\n");
    }
    folder.write("x.csv", &text);
    folder.write("w.csv", &weights);
    assert_eq!(folder.run("convert x.csv x.chunks -q --part-size 1").code(), 0);
    assert_eq!(folder.run("convert x.csv x.npy -q --exclude w").code(), 0);
    let choices = "-k 3 --tol 1e-10 --json -q";
    let memory = folder.run(&format!("fit x.csv --weight-column w {choices}")).json(0);
    for data in ["x.chunks --weight-column w", "x.npy --weights w.csv"] {
        let disk = folder.run(&format!("fit {data} {choices} --memory 40M -o m.safetensors")).json(0);
        assert!(disk["stream"].is_object() && memory["stream"].is_null());
        assert_same(&disk, &memory);
        let check = folder.run(&format!("check m.safetensors {data}"));
        assert_eq!(check.code(), 0, "{}{}", check.stdout(), check.stderr());
    }
    assert_eq!(folder.run("check m.safetensors x.npy").refusal(3).matches("--weight-column").count(), 1);
    // Chunks in memory, too.
    assert_same(&folder.run(&format!("fit x.chunks --weight-column w {choices}")).json(0), &memory);
}
