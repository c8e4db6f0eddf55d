//! Names are part of a model: data with names is matched by them, and parts of one matrix agree.
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

mod common;

use common::{Folder, csv, numbers};

const DEVIATIONS: [f64; 5] = [5.0, 3.0, 2.0, 1.0, 0.5];

/// A table with the columns at `order` of another, and a column of text `note` at the end where `with_note`.
fn reordered(text: &str, order: &[usize], with_note: bool) -> String {
    let line = |(l, line): (usize, &str)| {
        let cells: Vec<&str> = line.split(',').collect();
        let mut picked: Vec<String> = order.iter().map(|&j| cells[j].to_owned()).collect();
        if with_note {
            picked.push(if l == 0 { "note".into() } else { format!("row {l}") });
        }
        picked.join(",") + "\n"
    };
    text.lines().enumerate().map(line).collect()
}

/// `x.csv`, the same columns backwards in `back.csv`, and a model of three components.
fn with_model() -> Folder {
    let folder = Folder::with_data();
    let text = folder.read("x.csv");
    folder.write("back.csv", &reordered(&text, &[4, 3, 2, 1, 0], false));
    assert_eq!(folder.run("fit x.csv -k 3 -o m.safetensors").code(), 0);
    folder
}

fn scores(folder: &Folder, data: &str) -> (String, String) {
    let run = folder.run(&format!("transform m.safetensors {data} -o s.csv"));
    assert_eq!(run.code(), 0, "{}", run.stderr());
    (folder.read("s.csv"), run.stderr())
}

#[test]
fn a_model_has_the_names_of_its_data_in_their_order() {
    let folder = with_model();
    let object = folder.run("info m.safetensors --json").json(0);
    assert_eq!(object["feature_names"], serde_json::json!(["a", "b", "c", "d", "e"]));
    assert_eq!(folder.run("fit x.csv --columns d,a -o two.safetensors").code(), 0);
    let object = folder.run("info two.safetensors --json").json(0);
    assert_eq!(object["feature_names"], serde_json::json!(["d", "a"]));
    assert_eq!(folder.run("convert x.csv x.npy").code(), 0);
    assert_eq!(folder.run("fit x.npy -o bare.safetensors").code(), 0);
    assert!(folder.run("info bare.safetensors --json").json(0)["feature_names"].is_null());
}

#[test]
fn columns_in_another_order_are_found_by_name_in_every_format_that_has_names() {
    let folder = with_model();
    let (expected, said) = scores(&folder, "x.csv");
    assert_eq!(said, "");
    for format in ["csv", "tsv", "parquet", "csv.gz", "chunks"] {
        if format != "csv" {
            assert_eq!(folder.run(&format!("convert back.csv back.{format}")).code(), 0);
        }
        let (found, said) = scores(&folder, &format!("back.{format}"));
        assert_eq!((found == expected, said.as_str()), (true, ""), "{format}");
        assert_eq!(folder.run(&format!("check m.safetensors back.{format}")).code(), 0, "{format}");
    }
}

#[test]
fn standard_input_is_matched_too() {
    let folder = with_model();
    let (expected, _) = scores(&folder, "x.csv");
    let mut command = folder.command("transform m.safetensors - -o s.csv");
    assert!(command.write_stdin(folder.read("back.csv")).output().unwrap().status.success());
    assert!(folder.read("s.csv") == expected);
}

#[test]
fn columns_beside_those_of_the_model_are_left_out_and_named_even_text() {
    let folder = with_model();
    let (expected, _) = scores(&folder, "x.csv");
    let text = folder.read("x.csv");
    folder.write("more.csv", &reordered(&text, &[2, 0, 1, 4, 3], true));
    let (found, said) = scores(&folder, "more.csv");
    assert!(found == expected);
    assert!(said.contains("warning: more.csv: column `note` not in the model: left out"), "{said}");
    assert_eq!(folder.run("transform m.safetensors more.csv -o s.csv -q").stderr(), "");
    // A model of two columns takes these two.
    assert_eq!(folder.run("fit x.csv --columns d,a -o m.safetensors").code(), 0);
    let (expected, said) = scores(&folder, "x.csv");
    assert!(said.contains("columns `b`, `c`, `e` not in the model: left out"), "{said}");
    assert!(scores(&folder, "back.csv").0 == expected);
    assert_eq!(folder.run("check m.safetensors back.csv").code(), 0);
}

#[test]
fn renamed_columns_are_refused_by_name() {
    let folder = with_model();
    let text = folder.read("x.csv");
    folder.write("renamed.csv", &text.replacen("a,b,c", "a,B,c", 1));
    folder.write("few.csv", &reordered(&text, &[0, 1, 2], false));
    folder.write("twice.csv", &reordered(&text, &[1, 0, 0, 2, 3, 4], false));
    for (args, words) in [
        ("transform m.safetensors renamed.csv -o s.csv", "renamed.csv: column `b` of the model is not there"),
        ("check m.safetensors renamed.csv", "the columns are `a`, `B`, `c`, `d`, `e`"),
        ("transform m.safetensors few.csv -o s.csv", "few.csv: columns `d`, `e` of the model are not there"),
        ("transform m.safetensors twice.csv -o s.csv", "it has two columns `a`"),
    ] {
        let said = folder.run(args).refusal(3);
        assert!(said.contains(words), "{args}: {said}");
    }
    assert!(!folder.names().contains(&"s.csv".to_owned()));
}

#[test]
fn where_one_side_has_no_names_columns_go_by_position_with_a_warning() {
    let folder = with_model();
    let (expected, _) = scores(&folder, "x.csv");
    assert_eq!(folder.run("convert x.csv x.npy").code(), 0);
    let (found, said) = scores(&folder, "x.npy");
    assert!(found == expected);
    assert!(
        said.contains("warning: x.npy has no column names: its columns are taken in the order"),
        "{said}"
    );
    assert_eq!(folder.run("fit x.npy -k 3 -o m.safetensors").code(), 0);
    let (found, said) = scores(&folder, "x.csv");
    assert!(found == expected);
    assert!(said.contains("warning: the model has no column names"), "{said}");
    assert_eq!(scores(&folder, "x.npy").1, "");
}

#[test]
fn scores_are_found_by_name_and_the_data_gets_its_names_back() {
    let folder = with_model();
    let (text, _) = scores(&folder, "x.csv");
    assert_eq!(folder.run("inverse m.safetensors s.csv -o y.csv").code(), 0);
    let expected = folder.read("y.csv");
    assert!(expected.starts_with("a,b,c,d,e\n"), "{expected}");
    folder.write("t.csv", &reordered(&text, &[2, 0, 1], true));
    let run = folder.run("inverse m.safetensors t.csv -o y.csv");
    assert_eq!(run.code(), 0, "{}", run.stderr());
    assert!(run.stderr().contains("column `note` not in the model's scores"), "{}", run.stderr());
    assert!(folder.read("y.csv") == expected);
}

#[test]
fn a_start_is_put_into_the_order_of_the_data() {
    let folder = with_model();
    assert_eq!(folder.run("fit x.csv --solver power --tol 1e-9 -o first.safetensors").code(), 0);
    let passes = |data: &str| {
        let args = format!("fit {data} --solver power --tol 1e-6 --start first.safetensors --json");
        folder.run(&args).json(0)["passes"].as_f64().unwrap()
    };
    assert!(passes("back.csv") <= passes("x.csv"));
    folder.write("other.csv", &csv(300, &DEVIATIONS).replacen("a,b", "a,z", 1));
    let said = folder.run("fit other.csv --solver power --start first.safetensors").refusal(3);
    assert!(said.contains("its columns are not those of the model given to --start"), "{said}");
}

#[test]
fn parts_of_one_matrix_are_aligned_by_name() {
    let folder = Folder::with_data();
    let text = folder.read("x.csv");
    let (head, rows) = text.split_once('\n').unwrap();
    let (top, bottom): (Vec<&str>, Vec<&str>) =
        (rows.lines().take(150).collect(), rows.lines().skip(150).collect());
    folder.write("part1.csv", &format!("{head}\n{}\n", top.join("\n")));
    let part2 = format!("{head}\n{}\n", bottom.join("\n"));
    folder.write("part2.csv", &reordered(&part2, &[4, 2, 0, 1, 3], false));
    let whole = numbers(&folder.run("fit x.csv -k 2 --json").json(0)["eigenvalues"]);
    for parts in ["part1.csv part2.csv", "part2.csv part1.csv"] {
        let object = folder.run(&format!("fit {parts} -k 2 --json")).json(0);
        let found = numbers(&object["eigenvalues"]);
        // The same rows in another order: the last digits of sums differ.
        for (found, whole) in found.iter().zip(&whole) {
            assert!((found - whole).abs() < 1e-12 * whole, "{parts}: {found} {whole}");
        }
        assert_eq!(folder.run(&format!("convert {parts} all.chunks")).code(), 0);
        let object = folder.run("fit all.chunks -k 2 --json").json(0);
        assert!((numbers(&object["eigenvalues"])[0] - whole[0]).abs() < 1e-12 * whole[0]);
    }
    folder.write("part3.csv", &part2.replacen("d,e", "d,z", 1));
    let said = folder.run("fit part1.csv part3.csv").refusal(3);
    assert!(said.contains("part3.csv: column `e` of part1.csv is not there"), "{said}");
    folder.write("part4.csv", &reordered(&part2, &[4, 2, 0, 1, 3], true));
    let said = folder.run("convert part1.csv part4.csv y.npy").refusal(3);
    assert!(said.contains("part4.csv: column `note` not in part1.csv"), "{said}");
    folder.write("part5.csv", &format!("a,b,c,d,e\n1,2,x,4,5\n{}\n", bottom.join("\n")));
    let said = folder.run("fit part1.csv part5.csv").refusal(3);
    assert!(said.contains("part5.csv: column `c` holds text such as `x`"), "{said}");
    // A part that was cut off a file, without its header, goes on where the part before it ended.
    folder.write("part6.csv", &(bottom.join("\n") + "\n"));
    let run = folder.run("fit part1.csv part6.csv -k 2 --json");
    assert!((numbers(&run.json(0)["eigenvalues"])[0] - whole[0]).abs() < 1e-12 * whole[0]);
    assert!(run.stderr().contains("part6.csv has no column names"), "{}", run.stderr());
}

#[test]
fn chunk_folders_are_parts_like_any_other() {
    let folder = with_model();
    assert_eq!(folder.run("convert x.csv x.chunks").code(), 0);
    assert_eq!(folder.run("convert back.csv back.chunks").code(), 0);
    let eigenvalues =
        |parts: &str| numbers(&folder.run(&format!("fit {parts} --json")).json(0)["eigenvalues"]);
    let (once, twice) = (eigenvalues("x.csv"), eigenvalues("x.chunks back.chunks"));
    assert!((once[0] - twice[0]).abs() < 1e-12 * once[0], "{once:?} {twice:?}");
}

/// Rows that stay on disk have names, too.
#[test]
fn a_model_of_a_chunk_folder_on_disk_has_its_names() {
    let folder = Folder::new();
    folder.write("x.csv", &csv(40_000, &DEVIATIONS));
    assert_eq!(folder.run("convert x.csv x.chunks --part-size 1").code(), 0);
    let run = folder.run("fit x.chunks --memory 64M --solver krylov -o m.safetensors");
    assert_eq!(run.code(), 0, "{}", run.stderr());
    let object = folder.run("info m.safetensors --json").json(0);
    assert_eq!(object["feature_names"], serde_json::json!(["a", "b", "c", "d", "e"]));
}
