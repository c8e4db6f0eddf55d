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
        let (a, b) = (numbers(&plain["eigenvalues"]), numbers(&chunks["eigenvalues"]));
        // Rows in another order are summed in another order: n terms of rounding.
        assert!((0..2).all(|i| (a[i] - b[i]).abs() <= 300.0 * f64::EPSILON * a[0]), "{a:?} {b:?}");
    }
}

#[test]
fn info_knows_a_chunk_folder_without_its_parts() {
    let folder = Folder::with_data();
    folder.run("convert x.csv y.chunks");
    let (plain, chunks) =
        (folder.run("info x.csv --json").json(0), folder.run("info y.chunks --json").json(0));
    for key in ["n", "d", "nnz", "nonzeros", "density", "storage", "bytes_in_memory", "labels"] {
        assert_eq!(plain[key], chunks[key], "{key}");
    }
    for key in ["names", "constant", "min", "max"] {
        assert_eq!(plain["columns"][key], chunks["columns"][key], "{key}");
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
    let program = env!("CARGO_BIN_EXE_hbpca");
    // Files of at most one block of 512 bytes, as if the disk were full; the signal would end the program instead.
    let script = format!("trap '' XFSZ; ulimit -f 1; exec {program} convert x.csv full.chunks");
    let run =
        std::process::Command::new("sh").args(["-c", &script]).current_dir(folder.root()).output().unwrap();
    let message = String::from_utf8_lossy(&run.stderr);
    assert!(!run.status.success() && message.contains("full.chunks: "), "{message}");
    assert_eq!(folder.names(), ["x.csv"], "nothing half-written");
}
