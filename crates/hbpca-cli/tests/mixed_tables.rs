//! Tables with text, gaps and odd names.
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

mod common;

use common::Folder;

const FLOWERS: &str = "id,\"length, cm\",width,open,note,species\n\
    1,5.1,3.5,True,x,setosa\n2,4.9,3.0,False,y,setosa\n3,6.2,2.9,True,z,virginica\n4,5.9,3.2,False,w,virginica\n5,6.4,2.8,True,v,virginica\n";

fn flowers() -> Folder {
    let folder = Folder::new();
    folder.write("flowers.csv", FLOWERS);
    folder
}

#[test]
fn info_describes_every_column_and_suggests_a_fit_that_works() {
    let folder = flowers();
    let told = folder.run("info flowers.csv");
    assert_eq!(told.code(), 0, "{}", told.stderr());
    let told = told.stdout();
    for words in ["5 rows, 6 columns, 4 of them numbers", "true/false", "such as `setosa`", "4.9 … 6.4"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let object = folder.run("info flowers.csv --json").json(0);
    assert_eq!((object["n"].as_u64(), object["table"][5]["type"].as_str()), (Some(5), Some("text")));
    assert_eq!(object["table"][5]["distinct"], 2);
    let command = object["suggestion"].as_str().unwrap();
    assert_eq!(command, "hbpca fit flowers.csv --numeric --label-column species -k 4 --scale std");
    let fit = folder.run(command.strip_prefix("hbpca ").unwrap());
    assert_eq!(fit.code(), 0, "{}", fit.stderr());
}

#[test]
fn gaps_are_counted_and_the_suggestion_fills_them() {
    let folder = Folder::new();
    folder.write("gaps.csv", "a,b,c\n1,2,3\n4,,1\n2,NA,5\n");
    let object = folder.run("info gaps.csv --json").json(0);
    assert_eq!(object["table"][1]["missing"], 2);
    assert_eq!(object["suggestion"], "hbpca fit gaps.csv --missing mean -k 3 --scale std");
    assert_eq!(folder.run("fit gaps.csv --missing mean -k 2").code(), 0);
    // A table that is broken, not mixed, is still an error.
    folder.write("ragged.csv", "a,b\n1,2\n3\n");
    folder.run("info ragged.csv").refusal(3);
}

#[test]
fn columns_are_chosen_by_range_by_quoted_name_and_by_what_they_are_not() {
    let folder = flowers();
    let d = |flags: &str| {
        let mut command = folder.command("fit flowers.csv -k 1 --json");
        command.args(flags.split('|').filter(|flag| !flag.is_empty()));
        let output = command.output().unwrap();
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        object["d"].as_u64().unwrap_or_else(|| panic!("{flags}: {object}"))
    };
    assert_eq!(d("--numeric"), 4);
    assert_eq!(d("--numeric|--exclude|id,open"), 2);
    assert_eq!(d("--columns|\"length, cm\",width"), 2);
    assert_eq!(d("--columns|0..2"), 3);
    assert_eq!(d("--columns|width..open"), 2);
    assert_eq!(d("--exclude|note,species"), 4);
}

#[test]
fn a_name_that_nearly_fits_is_suggested() {
    let said = flowers().run("fit flowers.csv --numeric --label-column Spezies").refusal(3);
    assert!(said.contains("did you mean `species`?"), "{said}");
}

#[test]
fn kept_columns_travel_beside_the_scores_in_every_format() {
    let folder = flowers();
    assert_eq!(folder.run("fit flowers.csv --numeric --exclude id -k 2 -o m.safetensors -q").code(), 0);
    let run = folder.run("transform m.safetensors flowers.csv --keep id,species -o s.csv -q");
    assert_eq!(run.code(), 0, "{}", run.stderr());
    let scores = folder.read("s.csv");
    assert!(scores.starts_with("id,species,component_1,component_2\n1,setosa,"), "{scores}");
    assert_eq!(folder.run("transform m.safetensors flowers.csv --keep id,species -o s.parquet -q").code(), 0);
    // The parquet file holds the same scores, and the classes as labels.
    assert_eq!(
        folder
            .run("convert s.parquet back.csv --columns component_1,component_2 --label-column species")
            .code(),
        0
    );
    let numbers = |text: &str, from: usize| -> Vec<String> {
        text.lines()
            .skip(1)
            .map(|line| line.split(',').skip(from).take(2).collect::<Vec<_>>().join(","))
            .collect()
    };
    assert_eq!(numbers(&folder.read("back.csv"), 0), numbers(&scores, 2));
    assert_eq!(folder.run("transform m.safetensors flowers.csv --keep id -o s.npy -q").code(), 0);
    assert_eq!(folder.run("info s.npy --json").json(0)["d"], 3);
    let refused = folder.run("transform m.safetensors flowers.csv --keep species -o t.npy -q").refusal(2);
    assert!(refused.contains("column `species` holds texts"), "{refused}");
    // A feature can be kept as well, and scores do not change for it.
    assert_eq!(folder.run("transform m.safetensors flowers.csv --keep width,species -o w.csv -q").code(), 0);
    assert_eq!(numbers(&folder.read("w.csv"), 2), numbers(&scores, 2));
    assert!(folder.read("w.csv").contains("\n3.5,setosa,"));
}

#[test]
fn scores_go_to_standard_output_where_a_format_is_given() {
    let folder = flowers();
    assert_eq!(folder.run("fit flowers.csv --numeric -k 2 -o m.safetensors -q").code(), 0);
    let run = folder.run("transform m.safetensors flowers.csv --keep species -o - --output-format csv -q");
    assert_eq!((run.code(), run.stderr()), (0, String::new()));
    assert!(run.stdout().starts_with("species,component_1,component_2\nsetosa,"), "{}", run.stdout());
    assert_eq!(run.stdout().lines().count(), 6);
    assert!(folder.run("transform m.safetensors flowers.csv -o -").refusal(2).contains("--output-format"));
}

#[test]
fn every_kind_of_plot_is_drawn_with_names_and_shares() {
    let folder = Folder::new();
    folder.write("flowers.csv", FLOWERS);
    assert_eq!(folder.run("fit flowers.csv --columns 1..2 -k 2 -o m.safetensors -q").code(), 0);
    assert_eq!(folder.run("transform m.safetensors flowers.csv --keep species -o s.csv -q").code(), 0);
    for (what, words) in [
        ("m.safetensors --kind loadings", &["length, cm", "Component 1 (", "loading"][..]),
        ("m.safetensors flowers.csv --color species", &["species setosa", "% of the variance)"]),
        ("m.safetensors flowers.csv --color id --components 2,1", &["component 2 ("]),
        ("m.safetensors flowers.csv --label species", &["setosa", "virginica"]),
        ("m.safetensors flowers.csv --color species --label id", &["species setosa"]),
        ("m.safetensors flowers.csv --kind biplot", &["width", "arrows: 2 of 2 columns"]),
        ("m.safetensors --kind convergence", &["residual", "passes"]),
        ("s.csv --kind scores --color species", &["species virginica", "component 2"]),
    ] {
        let run = folder.run(&format!("plot {what} -o plot.svg"));
        assert_eq!(run.code(), 0, "{what}: {}", run.stderr());
        let svg = folder.read("plot.svg").replace('\u{a0}', " ");
        for word in words {
            assert!(svg.contains(word), "{what}: `{word}` is missing");
        }
    }
    assert!(
        folder.run("plot m.safetensors --kind scores -o p.svg").refusal(2).contains("a model has no rows")
    );
    assert!(
        folder
            .run("plot m.safetensors --components 1,9 --kind loadings -o p.svg")
            .refusal(2)
            .contains("component 9")
    );
    assert!(folder.run("plot m.safetensors --color species -o p.svg").refusal(2).contains("is about rows"));
}
