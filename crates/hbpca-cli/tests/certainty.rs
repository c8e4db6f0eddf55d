//! What *converged* means to a user: every component to its own tolerance, how certain its angle is, and what is not determined.

mod common;

use common::{Folder, numbers};

/// Rows ±a·eⱼ in coordinate j: C = diag(2aⱼ²/n), and the means are 0.
fn axes(values: &[f64]) -> String {
    let mut text = String::new();
    for (j, value) in values.iter().enumerate() {
        for sign in [1.0, -1.0] {
            let cells: Vec<String> = (0..values.len())
                .map(|i| if i == j { format!("{:e}", sign * value) } else { "0".into() })
                .collect();
            text += &(cells.join(",") + "\n");
        }
    }
    text
}

fn with_axes(values: &[f64]) -> Folder {
    let folder = Folder::new();
    folder.write("a.csv", &axes(values));
    folder
}

#[test]
fn small_components_beside_a_dominating_one_converge_to_their_own_tolerance() {
    let folder = with_axes(&[1e4, 3.0, 2.0, 1.0, 0.5]);
    let object = folder.run("fit a.csv -k 3 --json").json(0);
    assert_eq!(object["schema"], 2);
    let (theta, certificate) = (numbers(&object["eigenvalues"]), &object["certificate"]);
    for (i, a) in [1e4_f64, 3.0, 2.0].into_iter().enumerate() {
        // C has 2a²/10 there.
        let relative = certificate["relative_residuals"][i].as_f64().unwrap();
        assert!((theta[i] / (a * a / 5.0) - 1.0).abs() <= relative && relative <= 1e-6, "{i}: {object}");
        assert_eq!(certificate["status"][i], "converged");
    }
}

#[test]
fn components_without_variance_say_so() {
    let folder = with_axes(&[3.0, 2.0, 0.0]);
    let run = folder.run("fit a.csv -k 3");
    assert_eq!(run.code(), 0, "{}", run.stderr());
    assert!(run.stdout().contains("no variance to rounding"), "{}", run.stdout());
    let certificate = &folder.run("fit a.csv -k 3 --json").json(0)["certificate"];
    assert_eq!(certificate["status"][2], "no-variance");
    assert!(certificate["relative_residuals"][2].is_null() && certificate["angle_bounds"][2].is_null());
}

#[test]
fn a_cluster_is_named_with_its_bound() {
    let folder = with_axes(&[3.0, 2.0, 2.0, 1.0]);
    let object = folder.run("fit a.csv -k 3 --json").json(0);
    let cluster = &object["certificate"]["clusters"][0];
    assert_eq!((&cluster[0], &cluster[1]), (&1.into(), &2.into()));
    assert!(cluster[2].as_f64().unwrap() < 1e-6, "{object}");
    let text = folder.run("fit a.csv -k 3").stdout();
    assert_eq!(text.lines().filter(|line| line.ends_with("with 2–3")).count(), 2, "{text}");
}

#[test]
fn a_number_of_components_that_cuts_a_cluster_is_named_with_those_that_do_not() {
    let folder = with_axes(&[3.0, 2.0, 2.0, 2.0, 1.0]);
    let text = folder.run("fit a.csv -k 2").stdout();
    assert!(text.contains("k = 2 cuts a cluster") && text.contains("k = 1 would not"), "{text}");
    let text = folder.run("fit a.csv -k 4").stdout();
    assert!(!text.contains("cuts"), "{text}");
}

#[test]
fn an_angle_is_reached_or_missed_in_words() {
    let folder = Folder::with_data();
    let bound = |flags: &str| {
        let object = folder.run(&format!("fit x.csv -k 2 --solver krylov --tol 0.5 --json {flags}")).json(0);
        object["certificate"]["subspace_angle_bound"].as_f64()
    };
    assert!(bound("--angle 1e-7").is_some_and(|angle| angle <= 1e-7));
    for bad in ["0", "1", "-0.5", "nan"] {
        let message = folder.run(&format!("fit x.csv --angle={bad}")).refusal(2);
        assert!(message.contains("angle"), "{bad}: {message}");
    }
    // Two equal eigenvalues have no first vector.
    let folder = with_axes(&[2.0, 2.0, 1.0]);
    let run = folder.run("fit a.csv -k 1 --angle 1e-3 --max-passes 20");
    assert_eq!(run.code(), 1, "{}", run.stdout());
    assert!(run.stderr().contains("1.0e-3 was asked for"), "{}", run.stderr());
}

/// 40 columns whose deviations fall slowly: the trace proves no gap.
fn slow() -> Folder {
    let deviations: Vec<f64> = (0..26).map(|i| 3.0 * 0.93_f64.powi(i)).collect();
    let folder = Folder::new();
    folder.write("s.csv", &common::csv(400, &deviations));
    folder
}

#[test]
fn a_probe_gives_a_probability_and_its_seed_repeats_it() {
    let folder = slow();
    let estimated = folder.run("fit s.csv -k 2 --solver krylov --json").json(0);
    assert_eq!(estimated["certificate"]["certainty"], "estimated");
    assert!(estimated["probe_seed"].is_null() && estimated["probe_passes"] == 0);
    assert!(estimated["certificate"]["failure_probability"].is_null());

    let probed = folder.run("fit s.csv -k 2 --solver krylov --json --certify 1e-9").json(0);
    let certificate = &probed["certificate"];
    assert_eq!(
        (&certificate["certainty"], &certificate["gap_is_proved"]),
        (&"probability".into(), &false.into())
    );
    assert_eq!(certificate["failure_probability"].as_f64(), Some(1e-9));
    assert!(probed["probe_passes"].as_u64().unwrap() > 0 && probed["probe_seed_is_given"] == false);
    assert_eq!(probed["passes"], estimated["passes"]);

    let seed = probed["probe_seed"].as_u64().unwrap();
    let command = format!("fit s.csv -k 2 --solver krylov --certify 1e-9 --probe-seed {seed}");
    let again = folder.run(&format!("{command} --json -o m.safetensors")).json(0);
    assert_eq!(again["certificate"], probed["certificate"]);
    let text = folder.run(&command).stdout();
    for words in [
        "these components lead with probability at least 1 − 1e-9",
        "if the start is as good as random for this data",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.contains(&format!("seed {seed}")), "{text}");
    assert!(folder.run("info m.safetensors").stdout().contains("as good as random"));
    assert!(folder.run("fit s.csv --certify 0.7").refusal(2).contains("certify"));
    assert!(folder.run("fit s.csv --probe-seed 3").refusal(2).contains("--certify"));
}

#[test]
fn check_always_probes() {
    let folder = slow();
    assert_eq!(folder.run("fit s.csv -k 2 --solver krylov -o m.safetensors").code(), 0);
    let object = folder.run("check m.safetensors s.csv --json").json(0);
    assert_eq!((&object["leading"], &object["schema"]), (&"probability".into(), &2.into()));
    assert_eq!(object["certificate"]["failure_probability"].as_f64(), Some(1e-9));
    assert_eq!(numbers(&object["certificate"]["relative_residuals"]).len(), 2);
    let text = folder.run("check m.safetensors s.csv --seed 5 --certify 1e-3").stdout();
    assert!(
        text.contains("with probability at least 1 − 1e-3") && text.contains("seed 5, if the start"),
        "{text}"
    );
    assert!(
        folder.run("check m.safetensors s.csv --certify 0").refusal(2).contains("--certify 0: a probability")
    );
}

#[test]
fn check_refutes_components_that_do_not_lead() {
    // A model of other rows whose only direction is an eigenvector here too, but the third.
    let folder = with_axes(&[3.0, 2.0, 1.0, 0.5]);
    folder.write("third.csv", "0,0,1,0\n0,0,-1,0\n0,0,1,0\n0,0,-1,0\n0,0,1,0\n0,0,-1,0\n0,0,1,0\n0,0,-1,0\n");
    assert_eq!(folder.run("fit third.csv -k 1 -o m.safetensors").code(), 0);
    let run = folder.run("check m.safetensors a.csv");
    assert_eq!(run.code(), 1);
    assert!(
        run.stdout().contains("refuted")
            && run.stdout().contains("fault: leading: the components do not lead"),
        "{}",
        run.stdout()
    );
    let object = folder.run("check m.safetensors a.csv --json").json(1);
    assert_eq!(object["leading"], "refuted");
}

#[test]
fn check_says_where_leading_could_not_be_verified() {
    let folder = with_axes(&[3.0, 2.0, 2.0, 2.0, 1.0]);
    assert_eq!(folder.run("fit a.csv -k 2 -o m.safetensors").code(), 0);
    let run = folder.run("check m.safetensors a.csv");
    assert_eq!(run.code(), 0, "{}", run.stdout());
    assert!(run.stdout().contains("could not be verified"), "{}", run.stdout());
}
