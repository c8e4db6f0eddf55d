//! The page about a model, loadings, and the sample they are tried on.
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

mod common;

use common::Folder;

/// The numbers behind the charts of a page.
fn chart_data(page: &str) -> serde_json::Value {
    let start = page.find("id=\"chart-data\">").unwrap() + "id=\"chart-data\">".len();
    let end = start + page[start..].find("</script>").unwrap();
    serde_json::from_str(&page[start..end]).unwrap()
}

#[test]
fn a_fit_writes_a_page_with_everything_in_it() {
    let folder = Folder::new();
    assert_eq!(folder.run("sample digits.csv").code(), 0);
    let run = folder
        .run("fit digits.csv --label-column digit -k 5 --solver krylov -o m.safetensors --report r.html");
    assert_eq!(run.code(), 0, "{}", run.stderr());
    let page = folder.read("r.html");
    for words in [
        "digits.csv",
        "How sure this is",
        "Converged to a tolerance",
        "Loadings of components 1 to 5",
        "pixel_",
        "Outliers",
    ] {
        assert!(page.contains(words), "{words}");
    }
    for fetched in ["src=", "@import", "http://", "https://"] {
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(fetched), "{fetched}");
    }
    let data = chart_data(&page);
    assert_eq!(data["rows"]["numbers"].as_array().unwrap().len(), 1797);
    assert_eq!(data["rows"]["colours"]["categories"].as_array().unwrap().len(), 10);
    assert_eq!(data["rows"]["colours"]["name"], "digit");
    // The scores are those that `transform` writes, to five digits.
    assert_eq!(folder.run("transform m.safetensors digits.csv --label-column digit -o s.csv").code(), 0);
    let scores = folder.read("s.csv");
    let first: Vec<f64> = scores.lines().nth(1).unwrap().split(',').map(|x| x.parse().unwrap()).collect();
    for (c, score) in first.iter().enumerate() {
        let shown = data["rows"]["scores"][c][0].as_f64().unwrap();
        assert!((shown - score).abs() <= 5e-5 * score.abs(), "{shown} {score}");
    }
    // The later page says the same.
    let later = folder.run("report m.safetensors digits.csv --label-column digit -o later.html");
    assert_eq!(later.code(), 0, "{}", later.stderr());
    assert!(later.stderr().contains("wrote later.html"));
    assert_eq!(chart_data(&folder.read("later.html"))["rows"], data["rows"]);
}

#[test]
fn a_page_without_data_leaves_scores_out_and_says_so() {
    let folder = Folder::with_data();
    assert_eq!(folder.run("fit x.csv -k 2 -o m.safetensors").code(), 0);
    assert_eq!(folder.run("report m.safetensors -o r.html").code(), 0);
    let page = folder.read("r.html");
    assert!(page.contains("scores and outliers are left out") && !page.contains("data-chart=\"scores\""));
    assert!(chart_data(&page)["rows"].is_null());
}

#[test]
fn text_that_looks_like_a_page_stays_text() {
    let folder = Folder::new();
    folder.write("x.csv", "<b>a</b>,</script>,kind\n1,2,<i>\n3,1,<i>\n5,9,</script>\n");
    let run = folder.run("fit x.csv --label-column kind -k 2 --report r.html");
    assert_eq!(run.code(), 0, "{}", run.stderr());
    let page = folder.read("r.html");
    assert!(!page.contains("<b>a</b>") && !page.contains("<i>"));
    assert_eq!(chart_data(&page)["loadings"]["features"][1], "</script>");
}

#[test]
fn pages_that_cannot_be_made_are_refused_and_nothing_is_left() {
    let folder = Folder::with_data();
    assert_eq!(folder.run("fit x.csv -k 2 -o m.safetensors").code(), 0);
    folder.write("narrow.csv", "a,b\n1,2\n3,4\n");
    let before = folder.names();
    assert!(folder.run("report m.safetensors x.csv -o r.pdf").refusal(2).contains("end the name in .html"));
    folder.run("report none.safetensors -o r.html").refusal(3);
    folder.run("report m.safetensors narrow.csv -o r.html").refusal(3);
    folder.run("report x.csv -o r.html").refusal(3);
    folder.run("fit x.csv --report none/r.html").refusal(2);
    assert_eq!(folder.names(), before);
}

#[test]
fn loadings_are_listed_by_name_and_written_as_a_table() {
    let folder = Folder::with_data();
    assert_eq!(folder.run("fit x.csv -k 2 -o m.safetensors").code(), 0);
    let list = folder.run("info m.safetensors --loadings --top 2").stdout();
    assert!(list.starts_with("component 1 (") && list.contains("… and 3 more columns"), "{list}");
    assert!(list.contains("\na ") && list.contains('█') && list.contains('│'), "{list}");
    let object = folder.run("info m.safetensors --loadings --json").json(0);
    let components = object["components"].as_array().unwrap();
    assert_eq!((components.len(), components[0].as_array().unwrap().len()), (2, 5));
    assert_eq!(object["columns"].as_array().unwrap().len(), 5);
    assert!(folder.run("info m.safetensors --json").json(0)["components"].is_null());
    assert_eq!(folder.run("convert m.safetensors loadings.csv").code(), 0);
    let table = folder.read("loadings.csv");
    assert!(table.starts_with("column,component_1,component_2\n") && table.lines().count() == 6, "{table}");
    // The entries are those of the components, exactly.
    let first: f64 = table.lines().nth(1).unwrap().split(',').nth(1).unwrap().parse().unwrap();
    assert_eq!(first.to_bits(), components[0][0].as_f64().unwrap().to_bits());
    assert!(folder.run("info x.csv --loadings").refusal(2).contains("is no model"));
}

#[test]
fn the_sample_is_written_once() {
    let folder = Folder::new();
    assert!(folder.run("sample digits.csv").stderr().contains("wrote digits.csv"));
    let text = folder.read("digits.csv");
    assert!(text.starts_with("pixel_0_0,pixel_0_1,") && text.lines().next().unwrap().ends_with(",digit"));
    assert_eq!(text.lines().count(), 1798);
    assert!(folder.run("sample digits.csv").refusal(2).contains("there already"));
    assert!(folder.run("sample iris.csv").refusal(2).contains("there is digits.csv"));
    assert_eq!(folder.run("sample digits.csv -o d.parquet").code(), 0);
    let info = folder.run("info d.parquet --label-column digit --json").json(0);
    assert_eq!((info["n"].as_u64(), info["d"].as_u64()), (Some(1797), Some(64)));
}
