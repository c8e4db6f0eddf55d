//! `check` against an adversary: every stored claim is changed in turn, with a digest that fits, and each change is found.
#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

mod common;

use common::{Folder, csv};
use hbpca::certificate::{Certainty, Cluster, Status};
use hbpca::{Model, Outcome, Summary};
use hbpca_io::{OutputFile, StoredModel};

/// Twelve columns whose deviations fall from 4 to 1.
fn data() -> Folder {
    let folder = Folder::new();
    let deviations: Vec<f64> = (0..12).map(|j| 4.0 - 3.0 * f64::from(j) / 11.0).collect();
    folder.write("x.csv", &csv(500, &deviations));
    folder
}

fn fit(folder: &Folder, args: &str) -> StoredModel {
    let run = folder.run(&format!("fit x.csv {args} -o m.safetensors -q"));
    assert_eq!(run.code(), 0, "{args}: {}", run.stderr());
    StoredModel::read(&folder.path("m.safetensors")).unwrap()
}

/// Writes a model with a digest that fits, and checks it.
fn check(folder: &Folder, stored: &StoredModel, flags: &str) -> common::Run {
    stored.write(OutputFile::create(&folder.path("changed.safetensors")).unwrap()).unwrap();
    folder.run(&format!("check changed.safetensors x.csv {flags}"))
}

/// The faults that `check` finds after a change.
fn faults(folder: &Folder, stored: &StoredModel, change: impl FnOnce(&mut StoredModel)) -> Vec<String> {
    let mut stored = stored.clone();
    change(&mut stored);
    let run = check(folder, &stored, "--json");
    let object = run.json(run.code());
    let faults: Vec<String> =
        object["faults"].as_array().unwrap().iter().map(|x| x.as_str().unwrap().to_owned()).collect();
    assert_eq!((run.code() == 0, object["holds"].as_bool()), (faults.is_empty(), Some(faults.is_empty())));
    faults
}

/// The model with other numbers.
fn rebuilt(
    stored: &mut StoredModel,
    components: Vec<f64>,
    shift: Option<Vec<f64>>,
    scale: Option<Vec<f64>>,
    change: impl FnOnce(&mut Summary),
) {
    let mut summary = stored.model.summary().clone();
    change(&mut summary);
    stored.origin.certificate.eigenvalues.clone_from(&summary.eigenvalues);
    stored.model = Model::from_parts(components, summary, shift, scale).unwrap();
}

/// The model with another summary.
fn summarised(stored: &mut StoredModel, change: impl FnOnce(&mut Summary)) {
    let (components, shift, scale) = parts(stored);
    rebuilt(stored, components, shift, scale, change);
}

fn parts(stored: &StoredModel) -> (Vec<f64>, Option<Vec<f64>>, Option<Vec<f64>>) {
    let model = &stored.model;
    let owned = |part: Option<&[f64]>| part.map(<[f64]>::to_vec);
    (model.components().to_vec(), owned(model.shift()), owned(model.scale()))
}

#[test]
fn honest_models_hold_whatever_made_them() {
    let folder = data();
    for args in [
        "-k 3 --scale std",
        "-k 3 --solver covariance",
        "-k 3 --solver krylov",
        "-k 3 --solver krylov --certify 1e-12",
        "-k 2 --solver anchored --no-center",
        "-k 12",
        "-k 0.6 --scale minmax",
        "-k 1 --solver power --tol 1e-3",
        "-k 1 --solver power-m --tol 1e-3",
    ] {
        let stored = fit(&folder, args);
        assert_eq!(faults(&folder, &stored, |_| ()), Vec::<String>::new(), "{args}");
    }
    // Rounded to single precision the data is another, and so are its means.
    let rounded = fit(&folder, "-k 2 --precision f32 --tol 1e-2");
    assert_eq!(check(&folder, &rounded, "--precision f32").code(), 0);
    assert_eq!(check(&folder, &rounded, "").code(), 1);
}

#[test]
fn every_claim_that_is_changed_is_found() {
    let folder = data();
    let stored = fit(&folder, "-k 3 --scale std");
    assert_eq!(stored.origin.certificate.certainty, Certainty::Proved);
    let check = |name: &str, change: &dyn Fn(&mut StoredModel)| {
        let found = faults(&folder, &stored, change);
        assert!(found.iter().any(|fault| fault.starts_with(name)), "{name}: {found:?}");
    };
    check("rows", &|m| summarised(m, |s| (s.n, s.weight) = (501, 501.0)));
    check("weight", &|m| {
        summarised(m, |s| {
            s.n = 499;
            s.weight = 500.000_1;
        });
    });
    check("total variance", &|m| summarised(m, |s| s.total_variance *= 1.0 + 1e-7));
    check("eigenvalues", &|m| summarised(m, |s| s.eigenvalues[1] *= 1.0 + 1e-7));
    check("preparation", &|m| {
        let (w, mut shift, scale) = parts(m);
        shift.as_mut().unwrap()[4] += 1e-6;
        rebuilt(m, w, shift, scale, |_| ());
    });
    check("preparation", &|m| {
        let (w, shift, mut scale) = parts(m);
        scale.as_mut().unwrap()[4] *= 1.0 + 1e-7;
        rebuilt(m, w, shift, scale, |_| ());
    });
    check("orthonormality", &|m| {
        let (mut w, shift, scale) = parts(m);
        w.iter_mut().for_each(|x| *x *= 1.001);
        rebuilt(m, w, shift, scale, |_| ());
    });
    check("residuals", &|m| {
        let (mut w, shift, scale) = parts(m);
        // A turn by 10⁻⁵ in a plane.
        let (a, b) = (w[0], w[1]);
        (w[0], w[1]) = (a - 1e-5 * b, b + 1e-5 * a);
        rebuilt(m, w, shift, scale, |_| ());
    });
    check("residuals", &|m| m.origin.certificate.residuals[0] = -1.0);
    check("residuals", &|m| m.origin.certificate.image_rounding = 1.0);
    check("intervals", &|m| m.origin.certificate.relative_residuals[2] *= 0.5);
    check("intervals", &|m| m.origin.certificate.eigenvalue_intervals[1][1] *= 2.0);
    check("status", &|m| m.origin.certificate.status[0] = Status::NoVariance);
    check("status", &|m| m.origin.certificate.status[0] = Status::Open);
    check("status", &|m| m.origin.tol = 1e-300);
    check("angles", &|m| m.origin.certificate.angle_bounds = vec![Some(0.0); 3]);
    check("angles", &|m| {
        m.origin.certificate.angle_bounds[1] = m.origin.certificate.angle_bounds[1].map(|x| x / 5.0);
    });
    check("angles", &|m| m.origin.certificate.angle_bounds[1] = Some(1.5));
    check("angles", &|m| m.origin.certificate.subspace_angle_bound = Some(0.0));
    check("angles", &|m| m.origin.certificate.clusters = vec![Cluster(0, 1, Some(0.0))]);
    check("angles", &|m| m.origin.certificate.gap_is_proved = false);
    check("angles", &|m| m.origin.certificate.failure_probability = Some(0.1));
}

#[test]
fn an_estimate_that_the_gap_does_not_allow_is_found() {
    // Deviations that fall slowly: the trace proves no gap.
    let folder = Folder::new();
    let deviations: Vec<f64> = (0..26).map(|i| 3.0 * 0.93_f64.powi(i)).collect();
    folder.write("x.csv", &csv(400, &deviations));
    let stored = fit(&folder, "-k 2 --solver krylov");
    assert_eq!(stored.origin.certificate.certainty, Certainty::Estimated);
    assert_eq!(faults(&folder, &stored, |_| ()), Vec::<String>::new());
    let found = faults(&folder, &stored, |m| m.origin.certificate.angle_bounds = vec![Some(0.0); 2]);
    assert!(found.iter().any(|fault| fault.starts_with("angles")), "{found:?}");
    // Called a theorem, it would be one: the check proves the gap itself, or with its probability.
    let found = faults(&folder, &stored, |m| {
        (m.origin.certificate.gap_is_proved, m.origin.certificate.certainty) = (true, Certainty::Proved);
    });
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn components_that_do_not_lead_or_not_in_this_order_are_found() {
    let folder = data();
    let all = fit(&folder, "-k 12 --scale std");
    for order in [[9, 10, 11], [1, 2, 3], [2, 0, 1], [0, 1, 3]] {
        let stored = fit(&folder, "-k 3 --scale std");
        let found = faults(&folder, &stored, |m| {
            let w = order.iter().flat_map(|i| all.model.component(*i).to_vec()).collect();
            let (_, shift, scale) = parts(m);
            let theta = order.map(|i| all.model.eigenvalues()[i]);
            rebuilt(m, w, shift, scale, |s| s.eigenvalues = theta.to_vec());
            let certificate = &mut m.origin.certificate;
            for i in 0..3 {
                let rho = all.origin.certificate.residuals[order[i]];
                (certificate.residuals[i], certificate.relative_residuals[i]) = (rho, rho / theta[i]);
                certificate.eigenvalue_intervals[i] = [theta[i] - rho, theta[i] + rho];
            }
            certificate.certainty = Certainty::Estimated;
            certificate.gap_is_proved = false;
            (certificate.angle_bounds, certificate.subspace_angle_bound) = (vec![None; 3], None);
        });
        let wrong = |fault: &String| fault.starts_with("leading") || fault.starts_with("eigenvalues");
        assert!(found.iter().any(wrong), "{order:?}: {found:?}");
    }
}

#[test]
fn a_model_s_own_tolerance_is_printed_and_never_believed() {
    let folder = data();
    let mut stored = fit(&folder, "-k 3 --scale std");
    // Unit vectors along the axes, and a tolerance that would let them pass.
    let mut w = vec![0.0; 36];
    (0..3).for_each(|i| w[i * 12 + i] = 1.0);
    let (_, shift, scale) = parts(&stored);
    rebuilt(&mut stored, w, shift, scale, |s| s.eigenvalues = vec![1.0; 3]);
    (stored.origin.tol, stored.origin.outcome) = (0.5, Outcome::Converged);
    let run = check(&folder, &stored, "");
    assert_eq!(run.code(), 1, "{}", run.stdout());
    assert!(run.stdout().contains("none demanded; the fit's own was "), "{}", run.stdout());

    let honest = fit(&folder, "--tol 1e-2 --solver power-m");
    assert_eq!(check(&folder, &honest, "").code(), 0);
    let run = check(&folder, &honest, "--tol 1e-9");
    assert_eq!(run.code(), 1);
    assert!(run.stdout().contains("fault: tolerance: a residual is"), "{}", run.stdout());
    assert!(run.stdout().contains("1.0e-9 demanded"), "{}", run.stdout());
}

#[test]
fn a_damaged_file_is_refused_before_the_data_is_read() {
    let folder = data();
    fit(&folder, "-k 3");
    let mut bytes = std::fs::read(folder.path("m.safetensors")).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(folder.path("bad.safetensors"), bytes).unwrap();
    let said = folder.run("check bad.safetensors nothing.csv").refusal(3);
    assert!(said.contains("bad.safetensors") && said.contains("its digest does not fit"), "{said}");
}

#[test]
fn weights_are_part_of_what_is_checked() {
    use hbpca::{FitConfig, Matrix};
    let folder = data();
    let data = hbpca_io::read(hbpca_io::Input::path(folder.path("x.csv")), &hbpca_io::ReadOptions::default());
    let x: Matrix<'static> = data.unwrap().matrix;
    let weights: Vec<f64> = (0..500).map(|l| f64::from(l % 7) / 2.0).collect();
    let config = FitConfig { k: 2, ..FitConfig::default() };
    let fitted = config.run().weights(&weights[..]).fit(&x).unwrap();
    let stored = StoredModel::of_fit(&fitted, "a test", 1e-6);
    let lines = |weights: &[f64]| {
        let text: Vec<String> = weights.iter().map(f64::to_string).collect();
        format!("w\n{}\n", text.join("\n"))
    };
    folder.write("w.csv", &lines(&weights));
    let run = check(&folder, &stored, "--weights w.csv");
    assert_eq!(run.code(), 0, "{}{}", run.stdout(), run.stderr());
    let without = check(&folder, &stored, "").refusal(3);
    assert!(
        without.contains("its 500 rows weigh 747 in all") && without.contains("--weights FILE"),
        "{without}"
    );
    // The same sum, but other weights.
    let mut others = weights.clone();
    others.reverse();
    folder.write("others.csv", &lines(&others));
    assert_eq!(check(&folder, &stored, "--weights others.csv").code(), 1);
    folder.write("few.csv", "w\n1\n2\n");
    let few = check(&folder, &stored, "--weights few.csv").refusal(3);
    assert!(few.contains("it has 2 rows × 1 columns where one number for each of the 500 rows"), "{few}");
}
