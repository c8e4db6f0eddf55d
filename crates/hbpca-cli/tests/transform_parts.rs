//! `hbpca transform` into a folder: a file of scores for each file of the data.
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

mod common;

use common::{Folder, csv};

/// A model of `x.csv`, and its rows in the three parts `parts/0.csv`, `parts/1.csv` and `parts/2.csv`.
fn with_parts() -> Folder {
    let folder = Folder::with_data();
    assert_eq!(folder.run("fit x.csv -k 2 -o model.safetensors -q").code(), 0);
    std::fs::create_dir(folder.path("parts")).unwrap();
    let text = folder.read("x.csv");
    let (header, rows) = text.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    for (i, part) in rows.chunks(120).enumerate() {
        folder.write(&format!("parts/{i}.csv"), &format!("{header}\n{}\n", part.join("\n")));
    }
    folder
}

#[test]
fn parts_in_and_parts_out_are_the_scores_of_all() {
    let folder = with_parts();
    assert_eq!(folder.run("transform model.safetensors x.csv -o all.csv -q").code(), 0);
    let said = folder.run("transform model.safetensors parts -o scores/ --json -q").json(0);
    assert_eq!((said["n"].as_u64(), said["d"].as_u64()), (Some(300), Some(2)));
    assert_eq!(said["output"], "scores/");
    let all = folder.read("all.csv");
    let (header, want) = all.split_once('\n').unwrap();
    let found: String = (0..3)
        .map(|i| {
            let part = folder.read(&format!("scores/{i}.csv"));
            let (own, rows) = part.split_once('\n').unwrap();
            assert_eq!(own, header);
            rows.to_owned()
        })
        .collect();
    assert_eq!(found, want);
    // A folder that is there needs no slash, a pattern names the parts, and the format may be another.
    let said = folder.run("transform model.safetensors parts/*.csv -o scores --output-format npy -q");
    assert_eq!(said.code(), 0);
    assert!((0..3).all(|i| folder.path(&format!("scores/{i}.npy")).exists()));
}

#[test]
fn what_has_no_place_among_parts_is_refused() {
    let folder = with_parts();
    std::fs::create_dir(folder.path("more")).unwrap();
    folder.write("more/0.csv", &csv(10, &[1.0; 5]));
    folder.write("parts.dat", "1 2 3 4 5\n");
    for (line, code, words) in [
        ("parts more -o scores/", 2, "both name scores/0.csv"),
        ("parts -o parts/", 2, "would be replaced"),
        ("- -o scores/", 2, "name a file for those of a stream"),
        ("parts.dat -o scores/", 2, "the name shows no format"),
        ("nowhere.csv -o scores/", 3, "nowhere.csv"),
        ("parts -o x.csv/", 2, "x.csv/"),
    ] {
        let said = folder.run(&format!("transform model.safetensors {line}")).refusal(code);
        assert!(said.contains(words), "{line}: {said}");
    }
    // A part that cannot be read is named; what came before it is written.
    folder.write("parts/1.csv", "a,b,c,d,e\n1,2,3,4,x\n");
    let said = folder.run("transform model.safetensors parts -o scores/").refusal(3);
    assert!(said.contains("1.csv"), "{said}");
    assert!(folder.path("scores/0.csv").exists() && !folder.path("scores/1.csv").exists());
}
