//! `--missing`, `hbpca impute` and `--one-hot`.

#![allow(
    clippy::unwrap_used,
    clippy::format_push_string,
    reason = "what cannot go on in a test has failed; files are small"
)]

mod common;

use common::{Folder, csv, numbers};
use hbpca_io::{Input, ReadOptions, read};

/// A table of 60 rows whose columns a to d belong together, with an id and holes written in every way.
fn folder() -> Folder {
    let folder = Folder::new();
    let table = csv(60, &[3.0, 2.0, 0.3, 0.2]);
    let (mut holes, mut whole, mut complete) =
        (String::from("id,a,b,c,d\n"), String::from("a,b,c,d\n"), String::from("a,b,c,d\n"));
    for (l, line) in table.lines().skip(1).enumerate() {
        let v: Vec<f64> = line.split(',').map(|x| x.parse().unwrap()).collect();
        let row = [v[0] + v[2], 2.0 * v[0] + v[1] + 5.0, v[1] - v[0] + v[3], v[0] + v[1] - 3.0];
        let mut fields: Vec<String> = row.iter().map(|x| format!("{x:.6}")).collect();
        whole += &(fields.join(",") + "\n");
        if l % 5 == 2 {
            fields[l % 4] = ["", "NA", "NaN", "null", "n/a", "?"][l % 6].into();
        } else {
            complete += &(fields.join(",") + "\n");
        }
        holes += &format!("r{l},{}\n", fields.join(","));
    }
    folder.write("x.csv", &holes);
    folder.write("whole.csv", &whole);
    folder.write("complete.csv", &complete);
    folder
}

fn matrix(folder: &Folder, name: &str) -> Vec<f64> {
    let data = read(Input::path(folder.path(name)), &ReadOptions::default()).unwrap();
    let mut values = vec![0.0; data.matrix.n_rows() * data.matrix.n_cols()];
    let d = data.matrix.n_cols();
    for l in 0..data.matrix.n_rows() {
        data.matrix.for_each_in_row(l, |j, x| values[l * d + j] = x);
    }
    values
}

#[test]
fn the_default_is_an_error_that_names_the_others() {
    let folder = folder();
    let refusal = folder.run("fit x.csv --exclude id").refusal(3);
    assert!(refusal.contains("x.csv:4:") && refusal.contains("--missing drop-rows, mean or em"), "{refusal}");
    assert_eq!(folder.run("fit x.csv --exclude id --missing error").refusal(3), refusal);
    let refusal = folder.run("fit x.csv --exclude id --em-ridge 1").refusal(2);
    assert!(refusal.contains("--em-ridge goes with --missing em only"), "{refusal}");
    folder.run("fit x.csv --exclude id --missing em --em-tol 2").refusal(2);
}

#[test]
fn dropped_rows_are_left_out_of_the_fit_and_keep_their_place_among_the_scores() {
    let folder = folder();
    let dropped =
        folder.run("fit x.csv --exclude id --missing drop-rows -k 2 --json -q -o m.safetensors").json(0);
    let complete = folder.run("fit complete.csv -k 2 --json -q").json(0);
    assert_eq!((&dropped["n"], &dropped["missing"]["dropped"]), (&48.into(), &12.into()));
    assert_eq!(dropped["eigenvalues"], complete["eigenvalues"]);
    assert_eq!(dropped["explained_variance"], complete["explained_variance"]);
    let check = folder.run("check m.safetensors x.csv");
    assert_eq!(check.code(), 0, "{}{}", check.stdout(), check.stderr());
    assert_eq!(folder.run("transform m.safetensors x.csv --keep id -o scores.csv -q").code(), 0);
    let scores = folder.read("scores.csv");
    let lines: Vec<&str> = scores.lines().skip(1).collect();
    assert_eq!(lines.len(), 60);
    for (l, line) in lines.iter().enumerate() {
        assert!(line.starts_with(&format!("r{l},")), "{line}");
        assert_eq!(line.ends_with(",NaN,NaN"), l % 5 == 2, "{line}");
    }
}

#[test]
fn the_mean_is_the_matrix_completed_by_hand() {
    let folder = folder();
    assert_eq!(folder.run("impute x.csv -k 1 --missing mean --keep id -o full.csv -q").code(), 0);
    let full = folder.read("full.csv");
    let (mut sums, mut counts) = ([0.0; 4], [0.0; 4]);
    for line in folder.read("x.csv").lines().skip(1) {
        for (j, field) in line.split(',').skip(1).enumerate() {
            if let Some(x) = field.parse::<f64>().ok().filter(|x| x.is_finite()) {
                sums[j] += x;
                counts[j] += 1.0;
            }
        }
    }
    let held = folder.read("x.csv");
    for (ours, theirs) in full.lines().zip(held.lines()).skip(1) {
        for (j, (x, y)) in ours.split(',').zip(theirs.split(',')).enumerate().skip(1) {
            let x: f64 = x.parse().unwrap();
            let want = y.parse::<f64>().ok().filter(|y| y.is_finite()).unwrap_or(sums[j - 1] / counts[j - 1]);
            assert!((x - want).abs() < 1e-12, "{ours} {theirs}");
        }
    }
    for choices in ["-k 3", "-k 2 --scale std", "-k 2 --solver krylov --tol 1e-10"] {
        let mean = folder
            .run(&format!("fit x.csv --exclude id --missing mean --json -q -o m.safetensors {choices}"))
            .json(0);
        let by_hand = folder.run(&format!("fit full.csv --exclude id --json -q {choices}")).json(0);
        for (x, y) in numbers(&mean["explained_variance"]).iter().zip(numbers(&by_hand["explained_variance"]))
        {
            assert!((x / y - 1.0).abs() < 1e-9, "{choices}: {x} {y}");
        }
        let check = folder.run("check m.safetensors x.csv");
        assert_eq!(check.code(), 0, "{}{}", check.stdout(), check.stderr());
    }
    // New rows have the mean in their holes, too.
    folder.run("transform m.safetensors x.csv -o a.npy -q");
    folder.run("transform m.safetensors full.csv -o b.npy -q");
    assert!(
        matrix(&folder, "a.npy").iter().zip(matrix(&folder, "b.npy")).all(|(a, b)| (a - b).abs() < 1e-12)
    );
}

#[test]
fn em_says_what_it_is_and_impute_writes_the_matrix_it_speaks_of() {
    let folder = folder();
    let fit = folder.run("fit x.csv --exclude id --missing em -k 2 -o m.safetensors");
    assert_eq!(fit.code(), 0, "{}", fit.stderr());
    let said = fit.stdout();
    assert!(said.contains("12 missing values in 12 rows: em ended at a stationary point after"), "{said}");
    let info = folder.run("info m.safetensors").stdout();
    assert!(info.contains("em ended at a stationary point"), "{info}");
    let impute = folder.run("impute x.csv --exclude id -k 2 -o full.npy");
    assert!(impute.code() == 0 && impute.stderr().contains("stationary point"), "{}", impute.stderr());
    // The model's claims are about that matrix, to the last bit of it.
    let check = folder.run("check m.safetensors full.npy");
    assert_eq!(check.code(), 0, "{}{}", check.stdout(), check.stderr());
    let refusal = folder.run("check m.safetensors x.csv").refusal(3);
    assert!(refusal.contains("hbpca impute"), "{refusal}");
    // Least squares on what a row has are the scores of the completed row; and going back gives what was filled in.
    folder.run("transform m.safetensors x.csv -o a.csv -q");
    folder.run("transform m.safetensors full.npy -o b.csv -q");
    assert!(matrix(&folder, "a.csv").iter().zip(matrix(&folder, "b.csv")).all(|(a, b)| (a - b).abs() < 1e-4));
    folder.run("inverse m.safetensors a.csv -o back.npy -q");
    let (full, back, whole) =
        (matrix(&folder, "full.npy"), matrix(&folder, "back.npy"), matrix(&folder, "whole.csv"));
    for l in (0..60).filter(|l| l % 5 == 2) {
        let at = l * 4 + l % 4;
        assert!((full[at] - back[at]).abs() < 1e-4, "{} {}", full[at], back[at]);
        // Noise of 0.3 and 0.2 in columns of spread 3 and more.
        assert!((full[at] - whole[at]).abs() < 2.0, "{} {}", full[at], whole[at]);
    }
    let stopped = folder.run("fit x.csv --exclude id --missing em -k 2 --em-max-rounds 1");
    assert_eq!(stopped.code(), 1);
    assert!(stopped.stderr().contains("--em-max-rounds"), "{}", stopped.stderr());
}

#[test]
fn nan_and_null_are_missing_in_every_format() {
    let folder = folder();
    // NaN in .npy through the scores of dropped rows; null in Parquet is the same table.
    folder.run("fit whole.csv -k 3 -q -o w.safetensors");
    let run = folder.run("transform w.safetensors x.csv --missing drop-rows -o s.npy -q");
    assert_eq!(run.code(), 0, "{}", run.stderr());
    folder.run("transform w.safetensors x.csv --missing drop-rows -o s.parquet -q");
    folder.run("transform w.safetensors complete.csv -o c.npy -q");
    for file in ["s.npy", "s.parquet"] {
        let refusal = folder.run(&format!("fit {file}")).refusal(3);
        assert!(refusal.contains("row 3, column 1 holds NaN") && refusal.contains("--missing"), "{refusal}");
        let fit = folder.run(&format!("fit {file} --missing drop-rows -k 2 --json -q")).json(0);
        assert_eq!(fit["eigenvalues"], folder.run("fit c.npy -k 2 --json -q").json(0)["eigenvalues"]);
        let info = folder.run(&format!("info {file} --json")).json(0);
        assert_eq!(info["table"][1]["missing"], 12);
        let text = folder.run(&format!("info {file}")).stdout();
        assert!(text.contains("missing") && text.contains("--missing mean"), "{text}");
    }
    let refusal = folder.run("transform w.safetensors x.csv -o t.npy").refusal(3);
    assert!(refusal.contains("--missing"), "{refusal}");
    let em = folder.run("transform w.safetensors x.csv --missing em -o t.npy -q");
    assert_eq!(em.code(), 0, "{}", em.stderr());
    assert!(matrix(&folder, "t.npy").iter().all(|x| x.is_finite()));
}

#[test]
fn columns_and_rows_with_nothing_in_them_have_a_defined_end() {
    let folder = Folder::new();
    folder.write("x.csv", "a,b,c\n1,,2\n3,,1\n2,,5\n");
    for missing in ["mean", "em"] {
        let refusal = folder.run(&format!("fit x.csv --missing {missing}")).refusal(3);
        assert!(refusal.contains("every value of column 1 (counted from 0) is missing"), "{refusal}");
    }
    let refusal = folder.run("fit x.csv --missing drop-rows").refusal(2);
    assert!(refusal.contains("every row has a missing value"), "{refusal}");
    folder.write("x.csv", "a,b,c\n1,4,2\n3,1,1\n,,\n2,3,5\n4,4,1\n");
    assert_eq!(folder.run("fit x.csv -k 1 --missing mean -q -o m.safetensors").code(), 0);
    assert_eq!(folder.run("transform m.safetensors x.csv -q -o s.csv").code(), 0);
    let row: f64 = folder.read("s.csv").lines().nth(3).unwrap().parse().unwrap();
    assert!(row.abs() < 1e-14, "{row}");
}

#[test]
fn streamed_rows_take_the_mean_are_dropped_or_are_completed_by_em() {
    let folder = Folder::new();
    let table = csv(500, &[3.0, 2.0, 1.5, 1.0, 0.5]);
    let lines: Vec<&str> = table.lines().skip(1).collect();
    let mut text = (0..100).map(|j| format!("x{j}")).collect::<Vec<_>>().join(",") + "\n";
    for l in 0..40_000 {
        let row: Vec<&str> = (0..20).map(|j| lines[(l * 7 + j * 13 + l / 500) % 500]).collect();
        let mut fields: Vec<&str> = row.iter().flat_map(|row| row.split(',')).collect();
        if l % 50 == 7 {
            fields[l % 100] = "NA";
        }
        text += &(fields.join(",") + "\n");
    }
    folder.write("x.csv", &text);
    let holding = hbpca_io::ReadOptions { missing: hbpca_io::MissingFields::Nan, ..ReadOptions::default() };
    let data = read(Input::path(folder.path("x.csv")), &holding).unwrap();
    hbpca_io::write(&folder.path("x.npy"), &data.matrix, &hbpca_io::WriteOptions::default()).unwrap();
    for missing in ["mean", "drop-rows"] {
        let choices = format!("--missing {missing} -k 3 --tol 1e-9 --json -q");
        let disk = folder.run(&format!("fit x.npy {choices} --memory 40M -o m.safetensors")).json(0);
        let memory = folder.run(&format!("fit x.csv {choices}")).json(0);
        assert!(disk["stream"].is_object());
        assert_eq!((&disk["n"], &disk["missing"]), (&memory["n"], &memory["missing"]));
        for (x, y) in numbers(&disk["eigenvalues"]).iter().zip(numbers(&memory["eigenvalues"])) {
            assert!((x / y - 1.0).abs() < 1e-8, "{x} {y}");
        }
        let check = folder.run("check m.safetensors x.npy");
        assert_eq!(check.code(), 0, "{}{}", check.stdout(), check.stderr());
    }
    let choices = "--missing em --em-tol 1e-8 -k 3 --tol 1e-9 --json -q";
    let disk = folder.run(&format!("fit x.npy {choices} --memory 48M")).json(0);
    let memory = folder.run(&format!("fit x.csv {choices}")).json(0);
    assert!(disk["stream"].is_object() && !memory["stream"].is_object());
    let point = &disk["missing"]["stationary_point"];
    assert!(point["distance"].as_f64().unwrap() <= 1e-8, "{point}");
    for (x, y) in numbers(&disk["eigenvalues"]).iter().zip(numbers(&memory["eigenvalues"])) {
        assert!((x / y - 1.0).abs() < 1e-7, "{x} {y}");
    }
}

#[test]
fn categories_become_columns_that_the_model_knows() {
    let folder = Folder::new();
    folder.write("x.csv", "a,kind,b,size\n1,cat,2,10\n3,dog,1,9\n2,cat,5,9\n4,owl,4,10\n0,dog,3,9\n");
    folder.write(
        "coded.csv",
        "a,b,kind=cat,kind=dog,kind=owl,size=9,size=10\n1,2,1,0,0,0,1\n3,1,0,1,0,1,0\n2,5,1,0,0,1,0\n4,4,0,0,1,0,1\n0,3,0,1,0,1,0\n",
    );
    let ours =
        folder.run("fit x.csv --one-hot kind,size -k 3 --scale std --json -q -o m.safetensors").json(0);
    let by_hand = folder.run("fit coded.csv -k 3 --scale std --json -q -o h.safetensors").json(0);
    assert_eq!((&ours["d"], &ours["eigenvalues"]), (&7.into(), &by_hand["eigenvalues"]));
    let names = &folder.run("info m.safetensors --json").json(0)["feature_names"];
    assert_eq!(names, &folder.run("info h.safetensors --json").json(0)["feature_names"]);
    assert_eq!(folder.run("check m.safetensors x.csv").code(), 0);
    // Other rows, other order, fewer categories: the same columns.
    folder.write("new.csv", "size,b,kind,a\n10,2,cat,1\n9,3,dog,0\n");
    for (data, out) in [("new.csv", "new.npy"), ("x.csv", "all.npy")] {
        let run = folder.run(&format!("transform m.safetensors {data} -o {out} -q"));
        assert_eq!(run.code(), 0, "{}", run.stderr());
    }
    let (new, all) = (matrix(&folder, "new.npy"), matrix(&folder, "all.npy"));
    assert!(
        new[..3]
            .iter()
            .zip(&all[..3])
            .chain(new[3..].iter().zip(&all[12..]))
            .all(|(a, b)| (a - b).abs() < 1e-13)
    );
    folder.write("new.csv", "size,b,kind,a\n10,2,cat,1\n9,3,emu,0\n");
    let refusal = folder.run("transform m.safetensors new.csv -o new.npy").refusal(3);
    assert!(
        refusal.contains(
            "column `kind`, row 2 (counted from 1) holds the category `emu`, which the model does not know"
        ) && refusal.contains("`cat`, `dog`, `owl`"),
        "{refusal}"
    );
    let refusal = folder.run("fit x.csv").refusal(3);
    assert!(refusal.contains("--one-hot"), "{refusal}");
}

#[test]
fn dates_are_refused_by_name() {
    let folder = Folder::new();
    folder.write("x.csv", "day,a\n2024-01-31,1\n2024-02-01,2\n");
    let refusal = folder.run("fit x.csv").refusal(3);
    assert!(refusal.contains("column `day` holds dates such as `2024-01-31`"), "{refusal}");
    folder.write("x.csv", "day,a\n20240131,1\n2024-02-01,2\n");
    let refusal = folder.run("fit x.csv").refusal(3);
    assert!(
        refusal.contains("x.csv:3:1: column `day`: expected a number, found the date `2024-02-01`"),
        "{refusal}"
    );
}
