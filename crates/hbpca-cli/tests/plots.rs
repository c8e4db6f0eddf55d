//! Plots of models, traces and scores.
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

mod common;

use common::Folder;

/// A folder with a model, its traces and its scores.
fn fitted() -> Folder {
    let folder = Folder::with_data();
    let fit = "fit x.csv -k 2 --solver krylov";
    assert_eq!(folder.run(&format!("{fit} -o m.safetensors --trace t.csv")).code(), 0);
    assert_eq!(folder.run(&format!("{fit} --trace t.jsonl")).code(), 0);
    assert_eq!(folder.run("transform m.safetensors x.csv -o scores.npy").code(), 0);
    folder
}

#[test]
fn every_plot_comes_in_every_format() {
    let folder = fitted();
    for (what, words) in [
        ("m.safetensors", ["omponent", "ariance"]),
        ("t.csv", ["passes", "seconds"]),
        ("t.jsonl", ["passes", "seconds"]),
        ("scores.npy --kind scores", ["omponent 1", "omponent 2"]),
    ] {
        for extension in ["svg", "png", "html"] {
            let output = format!("plot.{extension}");
            let run = folder.run(&format!("plot {what} -o {output}"));
            assert_eq!(run.code(), 0, "{what} {extension}: {}", run.stderr());
            let content = std::fs::read(folder.path(&output)).unwrap();
            if extension == "png" {
                assert!(content.starts_with(b"\x89PNG\r\n"), "{what}");
            } else {
                let text = String::from_utf8(content).unwrap();
                assert!(text.contains(&format!("<{extension}")), "{what} {extension}");
                for word in words {
                    assert!(text.contains(word), "{what} {extension}: `{word}` is missing");
                }
            }
            std::fs::remove_file(folder.path(&output)).unwrap();
        }
    }
}

#[test]
fn what_cannot_be_plotted_is_refused_and_nothing_is_left() {
    let folder = fitted();
    let before = folder.names();
    folder.run("plot m.safetensors -o plot.gif").refusal(2);
    folder.run("plot m.safetensors -o none/plot.svg").refusal(2);
    folder.run("plot m.safetensors").refusal(2);
    folder.run("plot none.safetensors -o plot.svg").refusal(3);
    folder.run("plot x.csv -o plot.svg").refusal(3); // no trace
    assert_eq!(folder.names(), before);
}
