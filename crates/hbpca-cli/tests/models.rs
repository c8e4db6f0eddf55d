//! Models through files: transform and back, checks that hold and checks that do not, warm starts.
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

mod common;

use common::{Folder, numbers};

fn rows(text: &str) -> Vec<Vec<f64>> {
    let parse = |line: &str| line.split(',').map(|cell| cell.parse().unwrap()).collect();
    text.lines().skip(1).map(parse).collect()
}

#[test]
fn all_components_rebuild_the_data() {
    let folder = Folder::with_data();
    for scale in ["none", "std", "minmax"] {
        for whiten in ["", "--whiten"] {
            assert_eq!(folder.run(&format!("fit x.csv -k 5 --scale {scale} -o m.safetensors")).code(), 0);
            assert_eq!(folder.run(&format!("transform m.safetensors x.csv -o s.npy {whiten}")).code(), 0);
            assert_eq!(folder.run(&format!("inverse m.safetensors s.npy -o y.csv {whiten}")).code(), 0);
            let (x, y) = (rows(&folder.read("x.csv")), rows(&folder.read("y.csv")));
            assert_eq!(x.len(), y.len());
            // Values up to 9 go through 5 products each way.
            let off =
                x.iter().flatten().zip(y.iter().flatten()).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
            assert!(off < 9.0 * 100.0 * f64::EPSILON, "{scale} {whiten}: {off}");
        }
    }
}

#[test]
fn scores_have_the_eigenvalues_as_variances() {
    let folder = Folder::with_data();
    let object = folder.run("fit x.csv -k 2 -o m.safetensors --json").json(0);
    assert_eq!(folder.run("transform m.safetensors x.csv -o s.csv").code(), 0);
    let text = folder.read("s.csv");
    assert!(text.starts_with("component_1,component_2\n"), "{text}");
    let scores = rows(&text);
    for (i, eigenvalue) in numbers(&object["eigenvalues"]).iter().enumerate() {
        let mean_square = scores.iter().map(|row| row[i] * row[i]).sum::<f64>() / scores.len() as f64;
        assert!((mean_square / eigenvalue - 1.0).abs() < 1e-12, "{mean_square} {eigenvalue}");
    }
}

#[test]
fn a_model_checks_on_its_own_data() {
    let folder = Folder::with_data();
    for flags in
        ["-k 3", "--scale std", "--no-center", "--scale minmax --no-center -k 2", "--solver power --tol 1e-3"]
    {
        assert_eq!(folder.run(&format!("fit x.csv {flags} -o m.safetensors")).code(), 0);
        let object = folder.run("check m.safetensors x.csv --json").json(0);
        assert_eq!(
            (object["holds"].as_bool(), object["faults"].as_array().map(Vec::len)),
            (Some(true), Some(0))
        );
    }
    // The last one was fitted to 1e-3: that holds, and more does not.
    let run = folder.run("check m.safetensors x.csv --tol 1e-9");
    assert_eq!(run.code(), 1);
    assert!(
        run.stdout().contains("does not hold") && run.stdout().contains("fault: a residual is"),
        "{}",
        run.stdout()
    );
}

#[test]
fn a_model_does_not_check_on_other_data() {
    let folder = Folder::with_data();
    folder.write("other.csv", &common::csv(299, &[5.0, 3.0, 2.0, 1.0, 0.5]));
    assert_eq!(folder.run("fit x.csv --scale std -o m.safetensors").code(), 0);
    let object = folder.run("check m.safetensors other.csv --json").json(1);
    let faults = object["faults"].to_string();
    for fault in [
        "a residual is",
        "a stored eigenvalue is off",
        "the stored means change C",
        "the stored scales are off",
        "fitted on 300 rows, the data has 299",
    ] {
        assert!(faults.contains(fault), "{fault}: {faults}");
    }
}

#[test]
fn a_model_of_one_vector_twice_does_not_check() {
    // Both rows of `components` become the first: each is an eigenvector, together they are no basis.
    let folder = Folder::with_data();
    assert_eq!(folder.run("fit x.csv -k 2 -o m.safetensors").code(), 0);
    let mut bytes = std::fs::read(folder.path("m.safetensors")).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let text = String::from_utf8(bytes[8..8 + header].to_vec()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let start = 8 + header + json["components"]["data_offsets"][0].as_u64().unwrap() as usize;
    let row = 5 * 8;
    let first = bytes[start..start + row].to_vec();
    bytes[start + row..start + 2 * row].copy_from_slice(&first);
    std::fs::write(folder.path("m.safetensors"), bytes).unwrap();
    let object = folder.run("check m.safetensors x.csv --json").json(1);
    let faults = object["faults"].to_string();
    assert!(faults.contains("not orthonormal") && faults.contains("a stored eigenvalue is off"), "{faults}");
}

#[test]
fn an_altered_tolerance_is_refused_where_it_makes_no_sense() {
    let folder = Folder::with_data();
    assert_eq!(folder.run("fit x.csv -o m.safetensors").code(), 0);
    assert!(
        folder
            .run("check m.safetensors x.csv --tol 2")
            .refusal(2)
            .contains("--tol 2: the relative tolerance")
    );
}

#[test]
fn a_warm_start_saves_passes() {
    let folder = Folder::with_data();
    let cold = folder.run("fit x.csv --solver power --json -o m.safetensors").json(0);
    let warm = folder.run("fit x.csv --solver power --json --start m.safetensors").json(0);
    assert_eq!(warm["passes"].as_f64(), Some(1.0)); // it only looks
    assert!(cold["passes"].as_f64().unwrap() > 2.0);
}

#[test]
fn a_warm_start_may_ask_for_more_components_of_as_many_columns() {
    let folder = Folder::with_data();
    assert_eq!(folder.run("fit x.csv -k 2 -o m.safetensors").code(), 0);
    for solver in ["krylov", "anchored"] {
        let eigenvalues = |start: &str| {
            let fit =
                folder.run(&format!("fit x.csv -k 4 --solver {solver} --tol 1e-10 --json {start}")).json(0);
            let found = fit["eigenvalues"].as_array().unwrap().clone();
            found.iter().map(|x| x.as_f64().unwrap()).collect::<Vec<_>>()
        };
        let (cold, warm) = (eigenvalues(""), eigenvalues("--start m.safetensors"));
        assert_eq!((cold.len(), warm.len()), (4, 4));
        // Residuals of 1e-10·θ₁ bound the distance of each from an eigenvalue.
        let furthest = cold.iter().zip(&warm).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(furthest <= 2e-10 * cold[0], "{solver}: {cold:?} {warm:?}");
    }
    folder.write("narrow.csv", &common::csv(50, &[2.0, 1.0]));
    let message = folder.run("fit narrow.csv --solver krylov --start m.safetensors").refusal(3);
    assert!(message.contains("its columns are not those of the model given to --start"), "{message}");
    folder.write("bare.csv", "1.5,2\n3,4\n5,5\n");
    let message = folder.run("fit bare.csv --solver krylov --start m.safetensors").refusal(3);
    assert!(message.contains("start vector: 5 given where 2 are needed"), "{message}");
}

#[test]
fn a_model_describes_itself() {
    let folder = Folder::with_data();
    let fitted = folder.run("fit x.csv -k 3 --scale std --seed 5 --json -o m.safetensors").json(0);
    let object = folder.run("info m.safetensors --json").json(0);
    for key in [
        "n",
        "d",
        "k",
        "solver",
        "seed",
        "tol",
        "outcome",
        "eigenvalues",
        "total_variance",
        "certificate",
        "passes",
        "history",
    ] {
        assert_eq!(object[key], fitted[key], "{key}");
    }
    let text = folder.run("info m.safetensors").stdout();
    for words in
        ["fitted on       300 rows, centred, scaled to standard deviation 1", "seed 5", "converged", "█"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn labels_are_left_out_by_name_and_number_and_parts_add_up() {
    let folder = Folder::with_data();
    let total =
        |args: &str| folder.run(&format!("fit {args} --json")).json(0)["total_variance"].as_f64().unwrap();
    let named = total("x.csv --label-column e");
    assert_eq!(named.to_bits(), total("x.csv --label-column -1").to_bits());
    assert_eq!(named.to_bits(), total("x.csv --columns a,b,c,d").to_bits());
    assert!(named < total("x.csv"));
    let twice = folder.run("fit x.csv x.csv --json").json(0);
    assert_eq!(twice["n"], 600);
    std::fs::create_dir(folder.path("parts")).unwrap();
    for part in ["1.csv", "2.csv"] {
        std::fs::copy(folder.path("x.csv"), folder.path(&format!("parts/{part}"))).unwrap();
    }
    assert_eq!(folder.run("fit parts --json").json(0)["eigenvalues"], twice["eigenvalues"]);
}

#[test]
fn convert_keeps_every_bit() {
    let folder = Folder::with_data();
    let eigenvalues =
        |name: &str| folder.run(&format!("fit {name} -k 5 --json")).json(0)["eigenvalues"].to_string();
    let expected = eigenvalues("x.csv");
    for name in ["y.npy", "y.parquet", "y.tsv.gz", "y.csv.zst"] {
        let run = folder.run(&format!("convert x.csv {name} -v"));
        assert_eq!(run.code(), 0, "{}", run.stderr());
        assert!(run.stderr().contains("300 rows × 5 columns"), "{}", run.stderr());
        assert_eq!(eigenvalues(name), expected, "{name}");
    }
}
