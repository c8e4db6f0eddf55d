//! `hbpca plan`: what a fit on many ranks will cost.

mod common;

use common::Folder;

#[test]
fn more_ranks_take_less_time_and_less_memory_each() {
    let folder = Folder::with_data();
    let plan = |flags: &str| folder.run(&format!("plan --shape 1e9x1000 -k 10 --json {flags}")).json(0);
    let (one, many) = (plan(""), plan("--ranks 64 --latency 50us --bandwidth 10G"));
    for (key, least) in [("seconds", 40.0), ("memory_per_rank", 40.0)] {
        let of = |object: &serde_json::Value| object["solvers"][0][key].as_f64().unwrap();
        assert!(of(&one) > least * of(&many), "{key}");
    }
    assert_eq!(many["ranks"].as_u64(), Some(64));
    assert!((many["latency"].as_f64().unwrap() / 50e-6 - 1.0).abs() < 1e-12);
    assert_eq!(one["solvers"][0]["communicating_seconds"].as_f64(), Some(0.0));
    // Where messages take longer than products, that is the limit.
    let slow = plan("--ranks 1024 --latency 1s");
    assert_eq!(slow["solvers"][1]["limit"], "communicating");
    assert_eq!(plan("--memory 1G")["solvers"][0]["limit"], "memory");
}

#[test]
fn data_are_measured_from_headers_or_by_reading() {
    let folder = Folder::with_data();
    let csv = folder.run("plan x.csv -k 2 --json").json(0);
    assert_eq!(folder.run("convert x.csv x.npy").code(), 0);
    let npy = folder.run("plan x.npy -k 2 --json").json(0);
    assert_eq!((&csv["n"], &csv["d"], &csv["solvers"]), (&npy["n"], &npy["d"], &npy["solvers"]));
    let said = folder.run("plan x.csv -k 2 --ranks 4").stdout();
    assert!(said.contains("2 components on 4 ranks") && said.contains("nominal machine"), "{said}");
    // More columns than a C of them could be held for.
    let wide = folder.run("plan --shape 1e8x1e6x1e10 --json").json(0);
    assert_eq!(wide["solvers"].as_array().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_planned_is_refused() {
    let folder = Folder::with_data();
    for (flags, words) in [
        ("", "name the data, or give its --shape"),
        ("--shape 5", "give rows x columns"),
        ("--shape 1e15x1e15", "1.0e30 numbers are more than any machine counts"),
        ("--shape 10x10x101", "101 entries do not fit 10 x 10"),
        ("x.csv --shape 5x5", "not both"),
        ("x.csv -k 2 --latency soon", "`soon` is no time"),
        ("x.csv -k 0", "k = 0"),
        ("x.csv -k 2 --ranks 4000000", "rows for 4000000 ranks"),
    ] {
        let said = folder.run(&format!("plan {flags}")).refusal(2);
        assert!(said.contains(words), "{flags}: {said}");
    }
}
