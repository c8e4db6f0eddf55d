//! Sparse data with column numbers far beyond those that occur: a fit of the columns that occur, under their own numbers.
#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "tests stop at surprises")]

mod common;

use common::{Folder, numbers};
use hbpca_io::StoredModel;

/// Column numbers of `big.svm`, and what they become in `small.svm`.
const NUMBERS: [u64; 6] = [3, 5, 7, 1 << 20, (1 << 31) - 5, 1 << 31];

/// The same 40 rows with columns from all over 2³¹, and numbered from 1 to 6.
fn with_data() -> Folder {
    let folder = Folder::new();
    let mut state = 11_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24)
    };
    let (mut big, mut small) = (String::new(), String::new());
    for l in 0..40 {
        let mut row = [String::new(), String::new()];
        for (j, number) in NUMBERS.iter().enumerate() {
            let value = (draw() * 6.0 - 2.0) * (j + 1) as f64;
            if draw() < 0.6 || l == 0 {
                row[0] += &format!(" {number}:{value:.3}");
                row[1] += &format!(" {}:{value:.3}", j + 1);
            }
        }
        big += &format!("1{}\n", row[0]);
        small += &format!("1{}\n", row[1]);
    }
    folder.write("big.svm", &big);
    folder.write("small.svm", &small);
    folder
}

#[test]
fn the_answer_is_that_of_the_columns_that_occur() {
    let folder = with_data();
    for flags in
        ["--no-center", "", "--scale std", "--scale minmax", "--solver krylov", "--solver power-m -k 1"]
    {
        let k = if flags.contains("-k") { "" } else { "-k 3" };
        let run = folder.run(&format!("fit big.svm {k} {flags} --memory 1G --json -o big.safetensors"));
        let big = run.json(0);
        let small = folder.run(&format!("fit small.svm {k} {flags} --json -o small.safetensors")).json(0);
        assert_eq!((big["d"].as_u64(), big["all_columns"].as_u64()), (Some(6), Some(1 << 31)));
        assert_eq!((small["d"].as_u64(), small.get("all_columns")), (Some(6), None));
        for key in ["eigenvalues", "total_variance", "nnz", "n", "k"] {
            assert_eq!(big[key], small[key], "{flags}: {key}");
        }
        let said = run.stderr();
        let announced = "big.svm: vectors of 2,147,483,648 numbers do not fit into 1.0 GiB of memory; the 6 columns that occur are used";
        assert!(said.contains(announced), "{said}");
        let read = |name: &str| StoredModel::read(&folder.path(name)).unwrap();
        let (of_big, of_small) = (read("big.safetensors"), read("small.safetensors"));
        assert_eq!(of_big.model.components(), of_small.model.components(), "{flags}");
        let columns = of_big.origin.reading.columns.unwrap();
        assert_eq!(columns.numbers.iter().map(|j| u64::from(*j) + 1).collect::<Vec<_>>(), NUMBERS);
        assert_eq!(of_small.origin.reading.columns, None);
        assert_eq!(folder.run("check big.safetensors big.svm --json").json(0)["holds"], true, "{flags}");
    }
}

#[test]
fn two_rows_of_four_columns_give_the_answer_of_a_calculation_by_hand() {
    let folder = Folder::new();
    folder.write("big.svm", "1 5:2 2147483648:1\n0 3:1 7:2\n");
    // Without centring the rows (2, 1) and (1, 2) are orthogonal: both eigenvalues are 5/2.
    let run = folder.run("fit big.svm --no-center --memory 1G --json");
    let object = run.json(0);
    for value in numbers(&object["eigenvalues"]) {
        assert!((value - 2.5).abs() < 1e-12, "{value}");
    }
    assert_eq!(object["total_variance"].as_f64(), Some(5.0));
    let table = folder.run("fit big.svm --no-center --memory 1G");
    assert!(
        table.stdout().contains("2 rows × 4 columns that occur of 2,147,483,648, sparse"),
        "{}",
        table.stdout()
    );
    // The largest number there is, with and without a limit that was asked for: without, it is the machine's.
    folder.write("bigger.svm", "1 5:2 4294967295:1\n0 3:1 7:2\n");
    assert_eq!(folder.run("info bigger.svm --json").json(0)["d"].as_u64(), Some(4_294_967_295));
    assert_eq!(folder.run("fit bigger.svm --json").json(0)["total_variance"].as_f64(), Some(2.5));
    assert_eq!(folder.run("fit big.svm --json").json(0)["d"].as_u64(), Some(4));
}

#[test]
fn ordinary_data_keeps_all_of_its_columns() {
    let folder = Folder::new();
    folder.write("x.svm", "1 5:2 1000:1\n0 3:1 7:2\n1 5:1\n");
    let run = folder.run("fit x.svm -k 1 --json -o m.safetensors");
    let object = run.json(0);
    assert_eq!((object["d"].as_u64(), object.get("all_columns")), (Some(1000), None));
    assert!(!run.stderr().contains("occur"), "{}", run.stderr());
    let stored = StoredModel::read(&folder.path("m.safetensors")).unwrap();
    assert_eq!((stored.origin.reading.columns, stored.model.feature_names()), (None, None));
}

#[test]
fn new_rows_are_matched_by_the_numbers_of_their_columns() {
    let folder = with_data();
    folder.run("fit big.svm -k 2 --memory 1G -o big.safetensors -q");
    folder.run("fit small.svm -k 2 -o small.safetensors -q");
    // Column 3 is missing altogether, and 9 and 4,000,000,000 are new.
    folder.write("new.svm", "1 5:2 7:1\n1 7:3 9:4 1048576:1\n1 4000000000:5\n");
    folder.write("same.svm", "1 2:2 3:1\n1 3:3 4:1\n1\n");
    let run = folder.run("transform big.safetensors new.svm -o new.csv");
    assert_eq!(run.code(), 0, "{}", run.stderr());
    let note =
        "new.svm: 2 columns have entries, and had none where the model was fitted: they have no loadings";
    assert!(run.stderr().contains(note), "{}", run.stderr());
    assert_eq!(folder.run("transform small.safetensors same.svm --n-columns 6 -o same.csv").code(), 0);
    assert_eq!(folder.read("new.csv"), folder.read("same.csv"));
    // The rows that it was fitted on have the same scores.
    folder.run("transform big.safetensors big.svm -o a.csv");
    folder.run("transform small.safetensors small.svm -o b.csv");
    assert_eq!(folder.read("a.csv"), folder.read("b.csv"));
    let dense = folder.run("transform big.safetensors a.csv -o c.csv");
    assert!(
        dense
            .refusal(3)
            .contains("it is dense, and the model knows 6 columns of sparse data by their numbers")
    );
}

#[test]
fn check_does_not_accept_entries_in_columns_that_the_model_says_are_empty() {
    let folder = with_data();
    folder.run("fit big.svm -k 2 --memory 1G -o big.safetensors -q");
    assert_eq!(folder.run("check big.safetensors big.svm").code(), 0);
    let text = folder.read("big.svm").replacen("1 3:", "1 2:900 3:", 1);
    folder.write("more.svm", &text);
    let run = folder.run("check big.safetensors more.svm --json");
    let object = run.json(1);
    let faults = object["faults"].to_string();
    assert!(
        faults.contains("columns: 1 column has entries, and the model says that there are none"),
        "{faults}"
    );
    // A model with the numbers of other columns and a digest that fits.
    let mut stored = StoredModel::read(&folder.path("big.safetensors")).unwrap();
    stored.origin.reading.columns.as_mut().unwrap().numbers[0] = 1;
    std::fs::write(folder.path("changed.safetensors"), stored.to_bytes().unwrap()).unwrap();
    assert_eq!(folder.run("check changed.safetensors big.svm").code(), 1);
    stored.origin.reading.columns.as_mut().unwrap().numbers[0] = 6;
    std::fs::write(folder.path("changed.safetensors"), stored.to_bytes().unwrap()).unwrap();
    let said = folder.run("check changed.safetensors big.svm").refusal(3);
    assert!(said.contains("`columns` does not name 6 of 2147483648 columns in ascending order"), "{said}");
}

#[test]
fn info_and_loadings_show_the_numbers_of_the_file() {
    let folder = with_data();
    folder.run("fit big.svm -k 2 --memory 1G -o big.safetensors -q");
    let object = folder.run("info big.safetensors --json").json(0);
    assert_eq!((object["d"].as_u64(), object["all_columns"].as_u64()), (Some(6), Some(1 << 31)));
    assert_eq!(object["feature_names"][3].as_str(), Some("column 1048576"));
    let text = folder.run("info big.safetensors").stdout();
    assert!(text.contains("2 of 6 columns that occur of 2,147,483,648"), "{text}");
    assert!(folder.run("info big.safetensors --loadings").stdout().contains("column 2147483648"));
    let data = folder.run("info big.svm --json").json(0);
    assert_eq!(data["d"].as_u64(), Some(1 << 31));
    assert!(data["columns"]["constant"].as_u64().unwrap() >= (1 << 31) - 6);
    assert_eq!(data["columns"]["mean"][0].as_f64().map(|x| x <= 0.0), Some(true));
    assert!(folder.run("plot big.safetensors big.svm --kind biplot -o plot.svg").code() == 0);
    assert!(folder.read("plot.svg").contains("column 2147483648"));
    let inverse = {
        folder.run("transform big.safetensors big.svm -o scores.csv -q");
        folder.run("inverse big.safetensors scores.csv -o back.csv")
    };
    assert!(inverse.stderr().contains("back.csv: its columns are the 6 that occur of 2147483648"));
    assert!(
        folder.read("back.csv").starts_with("column 3,column 5,column 7,column 1048576,"),
        "{}",
        folder.read("back.csv")
    );
}

#[test]
fn rows_that_could_be_streamed_are_read_where_only_their_vectors_are_too_long() {
    let folder = with_data();
    let market: String = {
        let rows = folder.read("big.svm");
        let entries: Vec<String> = rows
            .lines()
            .enumerate()
            .flat_map(|(l, row)| {
                row.split(' ')
                    .skip(1)
                    .map(move |pair| format!("{} {}", l + 1, pair.replace(':', " ")))
                    .collect::<Vec<_>>()
            })
            .collect();
        format!(
            "%%MatrixMarket matrix coordinate real general\n40 2147483648 {}\n{}\n",
            entries.len(),
            entries.join("\n")
        )
    };
    folder.write("big.mtx", &market);
    assert_eq!(folder.run("convert big.mtx big.npz").code(), 0);
    let small = folder.run("fit small.svm -k 3 --json").json(0);
    for (file, flags) in [("big.mtx", ""), ("big.npz", ""), ("big.npz", "--solver covariance")] {
        let run = folder.run(&format!("fit {file} -k 3 {flags} --memory 200M --json -o m.safetensors"));
        let found = run.json(0);
        for (a, b) in numbers(&found["eigenvalues"]).iter().zip(numbers(&small["eigenvalues"])) {
            assert!((a / b - 1.0).abs() < 1e-9, "{file}: {a} {b}");
        }
        assert_eq!(found["all_columns"].as_u64(), Some(1 << 31), "{file}");
        assert_eq!(folder.run(&format!("check m.safetensors {file}")).code(), 0, "{file}");
        assert_eq!(folder.run("check m.safetensors big.svm").code(), 0, "{file}");
    }
}

#[test]
fn a_checkpoint_and_a_start_go_with_the_columns_that_occur() {
    let folder = with_data();
    let fit = "fit big.svm -k 2 --solver krylov --memory 1G";
    folder.run(&format!("{fit} --max-passes 2 --tol 1e-14 --checkpoint c.ckpt -o part.safetensors -q"));
    let resumed = folder.run(&format!("{fit} --resume c.ckpt --json"));
    assert!(matches!(resumed.code(), 0 | 1), "{}", resumed.stderr());
    let started = folder.run(&format!("{fit} --start part.safetensors --json"));
    assert_eq!(started.code(), 0, "{}", started.stderr());
    folder.write("other.svm", "1 4:2 2147483648:1\n0 3:1 7:2\n1 3:4 4:1\n");
    let refused = folder.run("fit other.svm -k 2 --memory 1G --start part.safetensors");
    assert!(refused.refusal(3).contains("its columns are not those of the model given to --start"));
}
