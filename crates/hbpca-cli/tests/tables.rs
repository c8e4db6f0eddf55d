//! Tables as people have them: wide, from other programs and other countries. What cannot be told is asked for.
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

mod common;

use std::fmt::Write;

use common::Folder;
use serde_json::{Value, json};

/// Two rows of `d` columns under a header, which together take more than the first chunk that is read.
fn wide(d: usize, delimiter: char) -> String {
    let mut text = String::new();
    for j in 0..d {
        write!(text, "{}gene_{j}", if j > 0 { delimiter.to_string() } else { String::new() }).unwrap();
    }
    for l in 0..3 {
        text.push('\n');
        for j in 0..d {
            let value = (j * 7 + l * l * 3 + l * j) % 23;
            write!(text, "{}{value}.5", if j > 0 { delimiter.to_string() } else { String::new() }).unwrap();
        }
    }
    text + "\n"
}

fn shape(object: &Value) -> (u64, u64, Value) {
    (object["n"].as_u64().unwrap(), object["d"].as_u64().unwrap(), object["columns"]["names"][7].clone())
}

#[test]
fn wide_tables_are_read_in_every_way() {
    let folder = Folder::new();
    let d = 30_000;
    folder.write("x.csv", &wide(d, ','));
    folder.write("x.tsv", &wide(d, '\t'));
    assert_eq!(folder.run("convert x.csv x.csv.gz").code(), 0);
    let expected = (3, d as u64, json!("gene_7"));
    for name in ["x.csv", "x.tsv", "x.csv.gz"] {
        assert_eq!(shape(&folder.run(&format!("info {name} --json")).json(0)), expected, "{name}");
    }
    let output = folder.command("info - --json").write_stdin(wide(d, ',')).output().unwrap();
    assert_eq!(shape(&common::Run(output).json(0)), expected);
    // Names go through a model of many columns and back.
    assert_eq!(folder.run("fit x.csv -k 2 -o m.safetensors").code(), 0);
    assert_eq!(folder.run("check m.safetensors x.tsv").code(), 0);
    let message = folder.run("info x.csv --columns gene_0,gene_x").refusal(3);
    assert!(message.contains("no column `gene_x`"), "{message}");
}

#[test]
fn a_million_columns_are_read() {
    let folder = Folder::in_memory();
    folder.write("x.csv", &wide(1_000_000, ','));
    let object = folder.run("info x.csv --json").json(0);
    assert_eq!(shape(&object), (3, 1_000_000, json!("gene_7")));
}

#[test]
fn a_header_without_rows_is_still_refused() {
    let folder = Folder::new();
    let text = wide(30_000, ',');
    folder.write("x.csv", text.lines().next().unwrap());
    let message = folder.run("info x.csv").refusal(3);
    assert!(message.contains("there is a header, but there are no rows"), "{message}");
}

/// The first quote comes after the first chunk, and hides a line end and a comma.
#[test]
fn a_quoted_field_far_below_is_one_field() {
    let folder = Folder::new();
    let mut text = String::from("x,y,note\n");
    for l in 0..60_000 {
        writeln!(text, "{}.25,{},plain", l % 97, l % 31).unwrap();
    }
    text += "1,2,\"two\nlines, and \"\"quotes\"\"\"\n3,4,end\n";
    folder.write("x.csv", &text);
    let object = folder.run("info x.csv --label-column note --json").json(0);
    assert_eq!((object["n"].as_u64(), object["d"].as_u64()), (Some(60_002), Some(2)));
    assert_eq!(folder.run("convert x.csv y.csv --label-column note").code(), 0);
    assert!(folder.read("y.csv").ends_with("\"two\nlines, and \"\"quotes\"\"\"\n3,4,end\n"));
}

#[test]
fn marks_of_thousands_and_decimals_are_asked_for_and_read() {
    let folder = Folder::new();
    folder.write("us.csv", "a,b\n\"1,000\",2.5\n\"12,345.5\",1\n3,4\n");
    folder.write("de.csv", "a;b\n1.000;2,5\n12.345,5;1\n3;4\n");
    folder.write("plain.csv", "a,b\n1000,2.5\n12345.5,1\n3,4\n");
    folder.write("one.csv", "a\n1,5\n2,5\n4\n");
    let message = folder.run("fit us.csv").refusal(3);
    assert!(!message.contains("write a decimal point"), "{message}");
    assert!(
        message.contains(
            "us.csv:2:1: column `a`: expected a number, found `1,000`: give --thousands , if the comma groups"
        ) && message.contains("or --decimal , if it is a decimal comma"),
        "{message}"
    );
    let message = folder.run("fit de.csv --columns b").refusal(3);
    assert!(message.contains("found `2,5`: give --decimal ,"), "{message}");
    assert_eq!(folder.run("convert plain.csv expected.csv").code(), 0);
    for args in ["--thousands , us.csv", "--decimal , --thousands . de.csv"] {
        let run = folder.run(&format!("convert {args} y.csv"));
        assert_eq!(run.code(), 0, "{}", run.stderr());
        assert_eq!(folder.read("y.csv"), folder.read("expected.csv"), "{args}");
    }
    // A decimal comma is no delimiter.
    let object = folder.run("info one.csv --decimal , --json").json(0);
    assert_eq!((object["d"].as_u64(), object["columns"]["max"][0].as_f64()), (Some(1), Some(4.0)));
    let message = folder.run("fit us.csv --thousands .").refusal(3);
    assert!(message.contains("`.` cannot be the decimal mark and that of thousands"), "{message}");
    let message = folder.run("fit de.csv --decimal ,").refusal(3);
    assert!(message.contains("found `1.000`: give --thousands ."), "{message}");
}

#[test]
fn a_header_of_numbers_is_asked_about() {
    let folder = Folder::new();
    folder.write("years.csv", "2019,2020,2021\n5,6.5,1\n2,8,3\n4,4,9.25\n");
    folder.write("pandas.csv", "0,1,2,3\n0.5,0.25,3.5,1.5\n1.5,2.5,0.5,1.25\n2.5,0.5,1.5,0.5\n");
    for name in ["years.csv", "pandas.csv"] {
        let message = folder.run(&format!("fit {name}")).refusal(3);
        assert!(
            message.contains("may be names or data: say so with --header yes or --header no"),
            "{message}"
        );
        let n =
            |header: &str| folder.run(&format!("info {name} --header {header} --json")).json(0)["n"].clone();
        assert_eq!((n("yes"), n("no")), (json!(3), json!(4)), "{name}");
    }
    // Once a model has these names, they show the header.
    assert_eq!(folder.run("fit years.csv --header yes -o m.safetensors").code(), 0);
    assert_eq!(folder.run("check m.safetensors years.csv").code(), 0);
    // Whole numbers that ascend in other rows, too, are data.
    folder.write("data.csv", "1,2,3\n4,5,6\n9,1,2\n");
    assert_eq!(folder.run("info data.csv --json").json(0)["n"], 3);
}

#[test]
fn an_index_without_a_name_is_left_out_and_said_so() {
    let folder = Folder::new();
    folder.write("x.csv", ",a,b\n0,5,1.5\n1,2,2.5\n2,9,0.5\n");
    folder.write("r.csv", "\"\",\"a\",\"b\"\n\"1\",5,1.5\n\"x\",2,2.5\n\"z\",9,0.5\n");
    folder.write("again.csv", "Unnamed: 0,a,b\n12,5,1.5\n3,2,2.5\n7,9,0.5\n");
    for name in ["x.csv", "r.csv", "again.csv"] {
        let run = folder.run(&format!("info {name} --json"));
        let object = run.json(0);
        assert_eq!(object["columns"]["names"], json!(["a", "b"]), "{name}");
        let said = run.stderr();
        assert!(
            said.contains("the first column has no name and is left out as an index; --columns 0,…"),
            "{said}"
        );
    }
    let object = folder.run("info x.csv --columns 0,1 --json").json(0);
    assert_eq!(object["columns"]["names"], json!(["", "a"]));
}

#[test]
fn other_encodings_are_recognised_or_told() {
    let folder = Folder::new();
    let text = "größe,höhe\r\n1,2\r\n3,5\r\n4,4\r\n";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> =
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    std::fs::write(folder.path("bare.csv"), &little).unwrap();
    std::fs::write(folder.path("marked.csv"), [&[0xFF, 0xFE][..], &little].concat()).unwrap();
    std::fs::write(folder.path("big.txt"), &big).unwrap();
    std::fs::write(folder.path("latin.csv"), &latin).unwrap();
    for args in
        ["bare.csv", "marked.csv", "big.txt", "bare.csv --encoding utf-16le", "latin.csv --encoding latin1"]
    {
        let object = folder.run(&format!("info {args} --columns größe --json")).json(0);
        assert_eq!(
            (object["n"].clone(), object["columns"]["names"].clone()),
            (json!(3), json!(["größe"])),
            "{args}"
        );
    }
    let message = folder.run("fit latin.csv").refusal(3);
    assert!(message.contains("of a column is not UTF-8: give its --encoding, such as latin1"), "{message}");
    assert_eq!(folder.run("convert bare.csv x.npy").code(), 0);
    for (flag, words) in [
        ("--encoding latin1", "an encoding can be given for texts only"),
        ("--decimal ,", "marks of decimals and thousands can be given for CSV and TSV only"),
        ("--header no", "a header can be told of for CSV and TSV only"),
    ] {
        let message = folder.run(&format!("info x.npy {flag}")).refusal(3);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn data_without_variance_has_no_components() {
    let folder = Folder::new();
    folder.write("one.csv", "a,b,c\n1,2,4\n");
    folder.write("constant.csv", "a,b\n0.1,7\n0.1,7\n0.1,7\n0.1,7\n");
    folder.write("zero.csv", "a,b\n0,0\n0,0\n");
    for (args, words) in [
        (
            "fit one.csv",
            "one.csv: one row has no variance once its mean is subtracted: give more rows, or --no-center",
        ),
        ("fit one.csv --scale std", "one row has no variance"),
        (
            "fit constant.csv -k 2",
            "constant.csv: every column is constant: there is no variance to find components of",
        ),
        ("fit constant.csv --solver krylov", "every column is constant"),
        ("fit zero.csv --no-center", "every entry is zero"),
    ] {
        let said = folder.run(&format!("{args} -o m.safetensors")).refusal(3);
        assert!(said.contains(words) && !said.contains("converged"), "{args}: {said}");
    }
    assert!(!folder.names().contains(&"m.safetensors".to_owned()));
    // The plain second moment of one row is something.
    assert_eq!(folder.run("fit one.csv --no-center").code(), 0);
}
