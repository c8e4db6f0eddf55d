//! An output is never an input, whatever name it goes by; a name never promises what the file is not.
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

mod common;

use common::Folder;

#[test]
fn no_command_replaces_what_it_reads() {
    let folder = Folder::with_data();
    assert_eq!(folder.run("fit x.csv -k 2 -o m.safetensors --trace t.csv").code(), 0);
    assert_eq!(folder.run("transform m.safetensors x.csv -o s.csv").code(), 0);
    assert_eq!(folder.run("convert x.csv x.chunks").code(), 0);
    std::fs::create_dir(folder.path("parts")).unwrap();
    std::fs::copy(folder.path("x.csv"), folder.path("parts/1.csv")).unwrap();
    std::fs::hard_link(folder.path("x.csv"), folder.path("hard.csv")).unwrap();
    std::fs::hard_link(folder.path("x.csv"), folder.path("hard")).unwrap();
    let mut refused = vec![
        "fit x.csv --trace x.csv",
        "fit x.csv --checkpoint hard",
        "fit x.csv -o hard",
        "fit x.csv --trace hard.csv",
        "fit parts --trace parts/1.csv",
        "fit x.csv --solver power --start m.safetensors -o m.safetensors",
        "transform m.safetensors x.csv -o x.csv",
        "transform m.safetensors x.csv -o ./parts/../x.csv",
        "transform m.safetensors hard.csv -o x.csv",
        "transform m.safetensors x.chunks -o x.chunks/part-000000.npy",
        "inverse m.safetensors s.csv -o s.csv",
        "convert x.csv x.csv",
        "convert x.csv hard.csv",
        "convert x.chunks x.chunks",
        "plot m.safetensors -o m.safetensors",
        "plot t.csv -o t.csv",
        "compare x.csv -o x.csv",
        "compare hard -o hard",
    ];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path("x.csv"), folder.path("soft.csv")).unwrap();
        refused.extend(["transform m.safetensors x.csv -o soft.csv", "convert soft.csv x.csv"]);
    }
    let before: Vec<Vec<u8>> = ["x.csv", "m.safetensors", "s.csv", "t.csv"]
        .map(|name| std::fs::read(folder.path(name)).unwrap())
        .to_vec();
    let names = folder.names();
    for args in refused {
        let said = folder.run(args).refusal(2);
        assert!(said.contains("is read") && said.contains("name another file"), "{args}: {said}");
    }
    let after: Vec<Vec<u8>> = ["x.csv", "m.safetensors", "s.csv", "t.csv"]
        .map(|name| std::fs::read(folder.path(name)).unwrap())
        .to_vec();
    assert!(before == after);
    assert_eq!(folder.names(), names);
    assert_eq!(folder.run("check m.safetensors x.chunks").code(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn standard_input_from_a_file_is_that_file() {
    let folder = Folder::with_data();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("hbpca"));
    command.current_dir(folder.root()).args(["convert", "-", "x.csv"]);
    let output = command.stdin(std::fs::File::open(folder.path("x.csv")).unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is read"));
}

#[test]
fn two_outputs_are_two_files() {
    let folder = Folder::with_data();
    let said = folder.run("fit x.csv --checkpoint m --output ./m").refusal(2);
    assert!(said.contains("--checkpoint and --output both name m: give them different names"), "{said}");
    let said = folder.run("fit x.csv -o t.csv --trace t.csv").refusal(2);
    assert!(said.contains("--output and --trace both name t.csv"), "{said}");
    // A checkpoint goes on in its place.
    let run = "fit x.csv --solver power --tol 1e-12";
    assert_eq!(folder.run(&format!("{run} --max-passes 4 --checkpoint c")).code(), 1);
    assert_eq!(folder.run(&format!("{run} --checkpoint c --resume c")).code(), 0);
    let said = folder.run(&format!("{run} -o c --resume c")).refusal(2);
    assert!(said.contains("--output c is read as --resume"), "{said}");
}

#[test]
fn a_name_that_promises_something_else_is_refused_before_any_work() {
    let folder = Folder::new();
    folder.write("bad.csv", "a,b\n1,2\n3,x\n"); // never looked at
    for (args, words) in [
        (
            "fit bad.csv -o out.csv",
            "--output out.csv: it will hold a model, which .csv is not: end the name in .safetensors",
        ),
        ("fit bad.csv -o out.npy", ".npy is not"),
        ("fit bad.csv -o out.html", ".html is not"),
        ("fit bad.csv -o m.safetensors.gz", ".gz is not"),
        ("fit bad.csv --checkpoint c.parquet", "--checkpoint c.parquet: it will hold a checkpoint"),
        (
            "compare bad.csv -o r.csv",
            "--output r.csv: it will hold a page, which .csv is not: end the name in .html",
        ),
        ("demo -o d.png", "--output d.png: it will hold a page"),
    ] {
        let said = folder.run(args).refusal(2);
        assert!(said.contains(words), "{args}: {said}");
    }
    assert_eq!(folder.names(), ["bad.csv"]);
}
