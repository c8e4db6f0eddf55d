//! `convert` into a folder of parts, and the folder as data.
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

mod common;

use common::{Folder, numbers};

#[test]
fn a_chunk_folder_is_data_like_any_other() {
    let folder = Folder::with_data();
    let plain = folder.run("fit x.csv -k 2 --json").json(0);
    for flags in ["", "--shuffle 7"] {
        assert_eq!(folder.run(&format!("convert x.csv y.chunks {flags}")).code(), 0);
        let chunks = folder.run("fit y.chunks -k 2 --json").json(0);
        let pairs = numbers(&plain["eigenvalues"]).into_iter().zip(numbers(&chunks["eigenvalues"]));
        // Rows in another order are summed in another order: n terms of rounding.
        assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() <= 300.0 * f64::EPSILON * a));
    }
}

#[test]
fn info_knows_a_chunk_folder_without_its_parts() {
    let folder = Folder::with_data();
    folder.run("convert x.csv y.chunks");
    let (plain, chunks) =
        (folder.run("info x.csv --json").json(0), folder.run("info y.chunks --json").json(0));
    for key in ["n", "d", "nnz", "nonzeros", "density", "storage", "bytes_in_memory", "labels", "columns"] {
        assert_eq!(plain[key], chunks[key], "{key}");
    }
    assert_eq!((&chunks["format"], &chunks["bytes_read"]), (&"chunks".into(), &0.into()));
    let (a, b) = (plain["total_variance"].as_f64().unwrap(), chunks["total_variance"].as_f64().unwrap());
    assert!((a - b).abs() <= 300.0 * f64::EPSILON * a);
    assert!(folder.run("info y.chunks").stdout().contains("(chunks)"));
}

#[cfg(unix)]
#[test]
fn a_full_disk_leaves_nothing_behind() {
    let folder = Folder::with_data();
    let program = assert_cmd::cargo::cargo_bin!("hbpca");
    // Files of at most one block of 512 bytes, as if the disk were full; the signal would end the program instead.
    let script = format!("trap '' XFSZ; ulimit -f 1; exec {} convert x.csv full.chunks", program.display());
    let run =
        std::process::Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    assert_eq!(run.status.code(), Some(3), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(String::from_utf8_lossy(&run.stderr).contains("full.chunks: "));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|x| x.unwrap().file_name()).collect();
    assert_eq!(left, ["x.csv"], "nothing half-written");
}
