//! The JSON objects and the trace: keys are fixed, numbers agree with each other.

mod common;

use common::{Folder, numbers};

#[test]
fn fit_has_the_keys_of_the_contract_in_order() {
    let folder = Folder::with_data();
    let run = folder.run("fit x.csv -k 3 --json --seed 7 --threads 2");
    let object = run.json(0);
    let text = run.stdout();
    let keys = [
        "schema",
        "n",
        "d",
        "k",
        "nnz",
        "solver",
        "chosen_because",
        "outcome",
        "eigenvalues",
        "explained_variance_ratio",
        "total_variance",
        "passes",
        "full_passes",
        "statistics_passes",
        "probe_passes",
        "probe_seed",
        "seconds",
        "read_seconds",
        "seed",
        "threads",
        "ranks",
        "certificate",
        "residuals",
        "relative_residuals",
        "status",
        "eigenvalue_intervals",
        "angle_bounds",
        "clusters",
        "gap_is_proved",
        "certainty",
        "failure_probability",
        "orthonormality_loss",
        "history",
    ];
    let places: Vec<usize> = keys.iter().map(|key| text.find(&format!("\"{key}\":")).expect(key)).collect();
    assert!(places.is_sorted(), "{text}");
    assert_eq!(
        (&object["n"], &object["d"], &object["k"], &object["nnz"]),
        (&300.into(), &5.into(), &3.into(), &1500.into())
    );
    assert_eq!((&object["seed"], &object["threads"]), (&7.into(), &2.into()));
    assert_eq!(
        (object["solver"].as_str(), object["outcome"].as_str()),
        (Some("covariance"), Some("converged"))
    );
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn fit_s_numbers_agree_with_each_other() {
    let object = Folder::with_data().run("fit x.csv -k 5 --json").json(0);
    let eigenvalues = numbers(&object["eigenvalues"]);
    let total = object["total_variance"].as_f64().unwrap();
    let sum: f64 = eigenvalues.iter().sum();
    assert!((sum / total - 1.0).abs() < 1e-13, "{sum} {total}"); // all five are there
    let certificate = &object["certificate"];
    for (i, theta) in eigenvalues.iter().enumerate() {
        let interval = numbers(&certificate["eigenvalue_intervals"][i]);
        let residual = certificate["residuals"][i].as_f64().unwrap();
        assert!((interval[0] - (theta - residual)).abs() <= 1e-15 * theta && interval[1] >= *theta);
        let ratio = object["explained_variance_ratio"][i].as_f64().unwrap();
        assert!((ratio * total / theta - 1.0).abs() < 1e-14);
    }
    assert_eq!(certificate["gap_is_proved"], true);
    assert_eq!((object["passes"].as_f64(), object["full_passes"].as_u64()), (Some(1.0), Some(1)));
}

#[test]
fn the_history_ends_where_the_run_did() {
    let object = Folder::with_data()
        .run("fit x.csv --solver vr-hb-power --batch 20% --epoch 5 --eta 0.5 --json")
        .json(0);
    let history = object["history"].as_array().unwrap();
    let last = history.last().unwrap();
    assert_eq!(last["passes"], object["passes"]);
    assert_eq!(last["residual"], object["certificate"]["residuals"][0]);
    for key in ["passes", "seconds", "theta", "residual", "eta", "beta"] {
        assert!(history.iter().all(|record| record[key].is_number()), "{key}");
    }
}

#[test]
fn same_seed_same_numbers_whatever_the_threads() {
    let folder = Folder::with_data();
    let eigenvalues = |more: &str| {
        let object =
            folder.run(&format!("fit x.csv --solver vr-pca --batch 10% --epoch 10 --json {more}")).json(0);
        object["eigenvalues"].to_string()
    };
    assert_eq!(eigenvalues("--threads 1 --seed 3"), eigenvalues("--threads 3 --seed 3"));
    assert_ne!(eigenvalues("--seed 3 --tol 1e-3"), eigenvalues("--seed 4 --tol 1e-3"));
}

#[test]
fn every_solver_finds_the_same_eigenvalue() {
    let folder = Folder::with_data();
    let exact = folder.run("fit x.csv -k 2 --json").json(0);
    let exact = numbers(&exact["eigenvalues"]);
    let oracle = format!("--lambda2 {}", exact[1]);
    let batches = "--batch 20% --epoch 5";
    for (solver, momentum, flags) in [
        ("power", "", String::new()),
        ("power-m", &oracle[..], String::new()),
        ("power-m", "--momentum dynamic", String::new()),
        ("vr-pca", "", format!("--eta 0.05 {batches}")),
        ("vr-pca-projected", "", format!("--eta 0.05 {batches}")),
        ("vr-power-m", &oracle, batches.into()),
        ("vr-hb-power", &oracle, format!("--eta 0.05 {batches}")),
        ("shift-invert-svrg", "", format!("--eta 0.05 {batches}")),
        ("shift-invert-agd", "", String::new()),
        ("lazy-svd", "-k 2", String::new()),
        ("vr-riemannian", "", format!("--eta 0.05 {batches}")),
        ("coordinate-power", "", String::new()),
    ] {
        let run = folder.run(&format!("fit x.csv --solver {solver} {momentum} {flags} --json"));
        assert_eq!(run.stderr(), "", "{solver}");
        let object = run.json(0);
        // The interval [θ − r, θ + r] contains an eigenvalue.
        let interval = numbers(&object["certificate"]["eigenvalue_intervals"][0]);
        assert!(
            interval[0] <= exact[0] * (1.0 + 1e-12) && exact[0] <= interval[1] * (1.0 + 1e-12),
            "{solver}"
        );
    }
}

#[test]
fn preparation_flags_mean_what_they_say() {
    let folder = Folder::new();
    folder.write("x.csv", "a,b\n1,10\n2,20\n3,60\n");
    let total = |flags: &str| {
        folder.run(&format!("fit x.csv --json {flags}")).json(0)["total_variance"].as_f64().unwrap()
    };
    let close = |x: f64, y: f64| (x / y - 1.0).abs() < 1e-14;
    assert!(close(total(""), 2.0 / 3.0 + 1400.0 / 3.0)); // variances with denominator n
    assert!(close(total("--center"), total("")));
    assert!(close(total("--no-center"), (14.0 + 4100.0) / 3.0));
    assert!(close(total("--no-center --center"), total("")));
    assert!(close(total("--scale std"), 2.0));
    assert!(close(total("--scale minmax"), (2.0 / 3.0) / 4.0 + (1400.0 / 3.0) / 2500.0));
    assert!(close(total("--scale minmax --no-center"), (0.25 + 1.0 + 0.04 + 1.0) / 3.0));
}

#[test]
fn traces_hold_the_history() {
    let folder = Folder::with_data();
    let object = folder.run("fit x.csv --solver power --json --trace t.csv").json(0);
    let history = object["history"].as_array().unwrap();
    let trace = folder.read("t.csv");
    assert_eq!(
        trace.lines().next(),
        Some("passes,full_passes,seconds,theta,residual,eta,beta,lambda2,error")
    );
    assert_eq!(trace.lines().count(), history.len() + 1);
    let theta: f64 = trace.lines().last().unwrap().split(',').nth(3).unwrap().parse().unwrap();
    assert_eq!(theta.to_bits(), object["eigenvalues"][0].as_f64().unwrap().to_bits());

    let object = folder.run("fit x.csv --solver power --json --trace t.jsonl").json(0);
    let lines: Vec<serde_json::Value> =
        folder.read("t.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(&lines, object["history"].as_array().unwrap());
}

#[test]
fn info_counts() {
    let folder = Folder::new();
    folder.write("x.svm", "1 1:2 3:4\n-1 2:1\n1 3:1\n");
    let object = folder.run("info x.svm --json").json(0);
    assert_eq!((&object["n"], &object["d"], &object["nnz"]), (&3.into(), &3.into(), &4.into()));
    assert_eq!((object["storage"].as_str(), object["format"].as_str()), (Some("sparse f32"), Some("libsvm")));
    assert!((object["density"].as_f64().unwrap() - 4.0 / 9.0).abs() < 1e-15);
    assert_eq!(numbers(&object["columns"]["max"]), [1.0, 4.0]);
    assert_eq!(numbers(&object["columns"]["min"]), [0.0, 0.0]);
    let moment = folder.run("info x.svm --json --no-center").json(0);
    assert!((moment["total_variance"].as_f64().unwrap() - 22.0 / 3.0).abs() < 1e-14);
}

#[test]
fn theory_gives_the_best_step() {
    let object = Folder::new()
        .run("theory --lambda1 1 --lambda2 0.95 --variance 0.5 --epoch 20 --eta 0.1,0.9 --json")
        .json(0);
    let methods = object["methods"].as_array().unwrap();
    let names: Vec<&str> = methods.iter().map(|row| row["method"].as_str().unwrap()).collect();
    let expected = ["vr-pca", "vr-pca", "vr-pca", "vr-power-m", "vr-hb-power", "vr-hb-power", "vr-hb-power"];
    assert_eq!(names, expected);
    let rate = |i: usize| methods[i]["rate"].as_f64().unwrap();
    assert!(rate(6) <= rate(4) && rate(6) <= rate(5) && rate(6) < 1.0); // no η beats the best
    assert!(methods[3]["epochs_per_digit"].is_null() && rate(3) > 1.0); // the full step diverges on such noise
    assert!(object["bound"].is_null());
    // 4√K/Δ.
    assert!((object["noise_floor"].as_f64().unwrap() - 4.0 * 0.5_f64.sqrt() / 0.05).abs() < 1e-9);
}

#[test]
fn theory_gives_the_largest_step_of_the_theorem_and_draws_it() {
    let folder = Folder::new();
    let problem = "theory --lambda1 1 --lambda2 0.5 --variance 0.1 --epoch 5 --dimension 3 --worst-batch 4";
    let object = folder.run(&format!("{problem} -o rates.svg --json")).json(0);
    let bound = &object["bound"];
    let number = |key: &str| bound[key].as_f64().unwrap();
    assert!(0.0 < number("best_step") && number("best_step") < number("largest_step"));
    assert!(number("progress") > 0.0 && number("progress") < 1.0 && (number("degree") - 4.0).abs() < 1e-12);
    assert_eq!(bound["log10_coefficients"].as_array().unwrap().len(), 4);
    assert!(folder.read("rates.svg").contains("η̄(K)"));
    let text = folder.run(problem).stdout();
    assert!(text.contains("for every η up to η̄(K) = ") && text.contains("P₁,ₘ(K) has degree 4"), "{text}");
    // Epochs that are too long for the proof are said to be.
    let long = "theory --lambda1 1 --lambda2 0.9 --variance 0.1 --epoch 10000 --dimension 10 --worst-batch 2";
    assert!(folder.run(long).stdout().contains("for no step that double precision can hold"));
    for (more, text) in [
        ("--dimension 3", "--worst-batch"),
        ("--dimension 1 --worst-batch 2", "d = 1: give at least 2"),
        ("--dimension 3 --worst-batch 0.5", "worst_batch = 0.5"),
        ("-o rates.txt", "is no kind of plot"),
    ] {
        let run = folder.run(&format!("theory --lambda1 1 --lambda2 0.5 --variance 0.1 {more}"));
        assert!(run.code() == 2 && run.stderr().contains(text), "{more}: {}", run.stderr());
    }
}

#[test]
fn every_precision_finds_the_same_values_within_its_certificate() {
    let room = Folder::with_data();
    let values = |precision: &str| {
        let found = room
            .run(&format!("fit x.csv -k 2 --solver krylov --tol 1e-2 --precision {precision} --json"))
            .json(0);
        let residual = numbers(&found["certificate"]["residuals"]).into_iter().fold(0.0, f64::max);
        (numbers(&found["eigenvalues"]), residual)
    };
    let (exact, known) = values("f64");
    for precision in ["auto", "mixed", "f32"] {
        let (found, residual) = values(precision);
        for (a, b) in exact.iter().zip(&found) {
            // Values rounded to f32 move by 2⁻²⁴ of themselves, and twice that in squares.
            assert!((a - b).abs() <= known + residual + 2e-7 * a, "{precision}: {a} {b}");
        }
    }
    assert!(room.run("fit x.csv --precision f16").refusal(2).contains("f16"));
}

/// Scripts that asked for JSON find the failure on standard output, people on standard error.
#[test]
fn failures_are_objects_too() {
    let folder = Folder::with_data();
    folder.write("word.csv", "a,b\n1,2\n3,x\n");
    assert_eq!(folder.run("fit x.csv -o m.safetensors").code(), 0);
    for (args, code, kind, file, place) in [
        ("fit word.csv --json", 3, "input", Some("word.csv"), Some([3, 3])),
        ("check m.safetensors word.csv --json", 3, "input", Some("word.csv"), None),
        ("info none.csv --json", 3, "input", None, None),
        ("fit x.csv -k 0 --json", 2, "usage", None, None),
        ("fit x.csv --json --frobnicate", 2, "usage", None, None),
        ("theory --lambda1 1 --lambda2 2 --variance 0 --json", 2, "usage", None, None),
        ("fit x.csv --json -o none/m.safetensors", 2, "output", Some("none/m.safetensors"), None),
    ] {
        let run = folder.run(args);
        let object = run.json(code);
        assert_eq!(
            (object["schema"].as_u64(), object["exit_code"].as_i64()),
            (Some(2), Some(code.into())),
            "{args}"
        );
        let error = &object["error"];
        assert_eq!((error["kind"].as_str(), error["file"].as_str()), (Some(kind), file), "{args}: {object}");
        let found = [&error["line"], &error["column"]].map(serde_json::Value::as_u64);
        assert_eq!(found, place.map_or([None; 2], |place| place.map(Some)), "{args}");
        // The same words for people.
        let first_line = error["message"].as_str().unwrap().lines().next().unwrap().to_owned();
        assert!(run.stderr().contains(&first_line), "{args}: {}", run.stderr());
    }
    assert_eq!(folder.run("fit word.csv").stdout(), "");
}

/// All keys of an object, with those of the objects in it.
fn keys_of(value: &serde_json::Value, keys: &mut std::collections::BTreeSet<String>) {
    match value {
        serde_json::Value::Object(entries) => entries.iter().for_each(|(key, value)| {
            keys.insert(key.clone());
            keys_of(value, keys);
        }),
        serde_json::Value::Array(values) => values.iter().for_each(|value| keys_of(value, keys)),
        _ => {}
    }
}

/// Every command prints an object of this version, alone on standard output, and the guide names all of its keys.
#[test]
fn every_command_prints_an_object_that_the_guide_describes() {
    let folder = Folder::with_data();
    folder.write("mixed.csv", "a,b,c\n1,x,2\n2,y,\n3,x,5\n");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/json.md");
    let page = std::fs::read_to_string(page).unwrap();
    let race = "--seeds 1 --passes 4 --solvers krylov,power -q";
    let mut seen = std::collections::BTreeSet::new();
    for (args, code) in [
        ("fit x.csv -o m.safetensors --trace t.csv", 0),
        ("fit x.csv --solver krylov --certify 1e-9 -k 2", 0),
        ("transform m.safetensors x.csv -o s.csv", 0),
        ("inverse m.safetensors s.csv -o back.npy", 0),
        ("check m.safetensors x.csv", 0),
        ("check m.safetensors x.csv --tol 1e-17", 1),
        ("info x.csv", 0),
        ("info mixed.csv", 0),
        ("info m.safetensors", 0),
        ("info m.safetensors --loadings", 0),
        ("convert x.csv x.npz", 0),
        ("convert m.safetensors loadings.csv", 0),
        ("plot m.safetensors -o scree.svg", 0),
        ("report m.safetensors x.csv -q -o r.html", 0),
        (&format!("compare x.csv {race} -o race.html"), 0),
        ("theory --lambda1 2 --lambda2 1 --variance 0.1", 0),
        ("completions bash", 0),
        ("man", 0),
        ("man --folder pages", 0),
        ("demo", 0),
        ("sample digits.csv", 0),
        ("fit mixed.csv", 3),
        ("transform m.safetensors x.csv -o -", 2),
        ("reproduce figure1 --data none -o found", 2),
        ("sample letters.csv", 2),
    ] {
        let run = folder.run(&format!("{args} --json"));
        assert!(run.stdout().starts_with("{\"schema\":2,"), "{args}: {} {}", run.stdout(), run.stderr());
        assert_eq!(run.stdout().lines().count(), 1, "{args}");
        let object = run.json(code);
        assert_eq!(object.get("error").is_some(), code > 1, "{args}");
        keys_of(&object, &mut seen);
    }
    let unknown: Vec<&String> = seen.iter().filter(|key| !page.contains(&format!("`{key}`"))).collect();
    assert!(unknown.is_empty(), "the guide does not say what these are: {unknown:?}");
}

/// Not enough memory is an object, too, wherever it was found out.
#[test]
fn a_refused_allocation_is_an_object() {
    let folder = Folder::new();
    let row: Vec<String> = (1..=200_000).map(|j| format!(" {j}:1")).collect();
    folder.write("wide.svm", &format!("1{}\n", row.concat()).repeat(10));
    let run = folder.run("fit wide.svm -k 3 --solver krylov --memory 40M --json");
    assert_eq!((run.json(4)["error"]["kind"].as_str(), run.stdout().lines().count()), (Some("memory"), 1));
    let lines: Vec<String> = (0..400_000_u64).map(|i| format!("{i},{}", i * i % 1009)).collect();
    let x = lines.join("\n");
    folder.write("x.csv", &x);
    let output = folder.command("fit x.csv --json").env("HBPCA_FAIL_ALLOCATION", "0").output().unwrap();
    let run = common::Run(output);
    let object = run.json(4);
    assert_eq!((object["schema"].as_u64(), object["exit_code"].as_u64()), (Some(2), Some(4)));
    assert!(run.stderr().contains(object["error"]["message"].as_str().unwrap()), "{object}");
}

/// A history of many looks is thinned out.
#[test]
fn a_long_history_is_bounded() {
    let folder = Folder::with_data();
    let run = folder
        .run("fit x.csv --solver oja --batch 1 --epoch 2 --tol 1e-15 --max-passes 1200 --json --trace t.csv");
    let object = run.json(1);
    let length = object["history_length"].as_u64().unwrap();
    assert_eq!(folder.read("t.csv").lines().count() as u64, length + 1);
    assert!(length > 1000 && object["history"].as_array().unwrap().len() == 1000, "{length}");
    assert_eq!(object["history"][999]["passes"], object["passes"]);
}
