//! Rows in chunks, of which only the moments are kept, against all rows at once.
#![allow(clippy::unwrap_used, clippy::cast_possible_wrap, reason = "tests stop at surprises and count small")]

mod common;

use common::*;
use hbpca::certificate::{Next, check};
use hbpca::operator::Covariance;
use hbpca::{FitConfig, Limits, Matrix, Moments, Outcome, SolverKind};

const D: usize = 30;

/// Moments of rows cut at the given places.
fn in_chunks(values: &[f64], cuts: &[usize], store: fn(&[f64], usize) -> Matrix<'static>) -> Moments {
    let n = values.len() / D;
    let ends: Vec<usize> = cuts.iter().copied().chain([n]).collect();
    let mut from = 0;
    let mut all: Option<Moments> = None;
    for end in ends {
        let chunk = Moments::of(&store(&values[from * D..end * D], D), None).unwrap();
        match &mut all {
            None => all = Some(chunk),
            Some(all) => all.merge(&chunk).unwrap(),
        }
        from = end;
    }
    all.unwrap()
}

#[test]
fn chunks_of_any_size_give_the_components_of_all_rows() {
    let n = 500;
    let values = sparse_values(n, D, 0.6, 4);
    let stores: [fn(&[f64], usize) -> Matrix<'static>; 2] = [|x, d| dense(x.to_vec(), d), csr];
    for store in stores {
        let x = store(&values, D);
        for preprocessing in EVERY_PREPROCESSING {
            let config = FitConfig { k: 4, preprocessing, ..FitConfig::default() };
            let whole = config.fit(&x).unwrap();
            for cuts in [&[][..], &[1], &[499], &[7, 8, 100, 350], &[250]] {
                let fit = config.fit_moments(&in_chunks(&values, cuts, store)).unwrap();
                assert_eq!((fit.outcome, fit.passes, fit.model.summary().n), (Outcome::Converged, 1.0, n));
                for i in 0..4 {
                    // Both intervals hold an eigenvalue, and these are far apart.
                    let room = fit.certificate.residuals[i] + whole.certificate.residuals[i];
                    let off = (fit.model.eigenvalues()[i] - whole.model.eigenvalues()[i]).abs();
                    assert!(off <= room, "{preprocessing:?} {cuts:?}: {off:e} {room:e}");
                    let (a, b) = (fit.model.vectors(), whole.model.vectors());
                    let angles = [&fit, &whole].map(|fit| fit.certificate.angle_bounds[i].unwrap());
                    let sine = sine2(&a.column(i), &b.column(i)).sqrt();
                    assert!(sine <= angles[0] + angles[1] + 1e-15, "{sine:e} {angles:?}");
                }
                let total = whole.model.summary().total_variance;
                assert!((fit.model.summary().total_variance / total - 1.0).abs() < 1e-13);
            }
        }
    }
}

#[test]
fn certificates_hold_on_the_data_itself() {
    let values = sparse_values(400, D, 0.5, 9);
    let x = dense(values.clone(), D);
    for preprocessing in EVERY_PREPROCESSING {
        let config = FitConfig { k: 5, preprocessing, ..FitConfig::default() };
        let fit =
            config.fit_moments(&in_chunks(&values, &[3, 100, 101], |x, d| dense(x.to_vec(), d))).unwrap();
        let mut operator = Covariance::new(&x, preprocessing).unwrap();
        let checked = check(&mut operator, &fit.model.vectors(), Next::Unknown, 1e-6).unwrap();
        for i in 0..5 {
            // What was claimed bounds what is found, up to the rounding of finding it.
            let found = checked.residuals[i] - 2.0 * checked.image_rounding;
            assert!(found <= fit.certificate.residuals[i], "{found:e} {:e}", fit.certificate.residuals[i]);
        }
    }
}

#[test]
fn weights_and_means_a_million_times_the_spread_do_no_harm() {
    let n = 300;
    let values: Vec<f64> = sparse_values(n, D, 0.6, 2).iter().map(|x| x + 1e6).collect();
    let weights: Vec<f64> = (0..n).map(|l| (1 + l % 3) as f64).collect();
    let part = |rows: std::ops::Range<usize>| {
        let x = dense(values[rows.start * D..rows.end * D].to_vec(), D);
        Moments::of(&x, Some(&weights[rows])).unwrap()
    };
    let mut moments = part(0..100);
    moments.merge(&part(100..300)).unwrap();
    let config = FitConfig { k: 3, ..FitConfig::default() };
    let fit = config.fit_moments(&moments).unwrap();
    let whole = config.run().weights(&weights[..]).fit(&dense(values.clone(), D)).unwrap();
    assert_eq!(fit.outcome, Outcome::Converged);
    for i in 0..3 {
        let room = fit.certificate.residuals[i] + whole.certificate.residuals[i];
        assert!((fit.model.eigenvalues()[i] - whole.model.eigenvalues()[i]).abs() <= room);
    }
    // The rounding of such means is in the bound: about 10⁶ε of the spread for each of two merges.
    assert!(fit.certificate.image_rounding < 1e-7 * whole.model.eigenvalues()[0]);
}

#[test]
fn shares_of_the_variance_need_as_many_components_as_on_all_rows() {
    let values = sparse_values(200, D, 0.6, 4);
    let config = FitConfig { variance_share: Some(0.7), ..FitConfig::default() };
    let whole = config.fit(&dense(values.clone(), D)).unwrap();
    let fit = config.fit_moments(&in_chunks(&values, &[50], |x, d| dense(x.to_vec(), d))).unwrap();
    assert_eq!(fit.model.n_components(), whole.model.n_components());
}

#[test]
fn parts_travel() {
    let moments = in_chunks(&sparse_values(50, D, 0.6, 4), &[20], |x, d| dense(x.to_vec(), d));
    let (n, columns, scatter, merges, rounding) = moments.parts();
    assert_eq!(Moments::from_parts(n, &columns, scatter.to_vec(), merges, rounding).unwrap(), moments);
    let broken = |n: usize, columns: &[f64], scatter: Vec<f64>, rounding: f64| {
        Moments::from_parts(n, columns, scatter, 0, rounding).unwrap_err().to_string()
    };
    assert!(broken(n, &columns[1..], scatter.to_vec(), rounding).contains("numbers about the columns"));
    assert!(broken(0, &columns, scatter.to_vec(), rounding).contains("one row at least"));
    assert!(broken(n, &columns, scatter[1..].to_vec(), rounding).contains("values for a 30×30 block"));
    assert!(broken(n, &columns, vec![f64::NAN; D * D], rounding).contains("moments = not finite"));
    assert!(broken(n, &columns, scatter.to_vec(), -1.0).contains("moments = not finite"));
}

#[test]
fn what_moments_cannot_do_is_refused_with_the_way_out() {
    let x = dense(sparse_values(20, D, 0.6, 4), D);
    let mut moments = Moments::of(&x, None).unwrap();
    let refusal = |config: FitConfig| config.fit_moments(&moments).unwrap_err().to_string();
    let krylov = refusal(FitConfig { solver: SolverKind::Krylov, ..FitConfig::default() });
    assert!(krylov.contains("solver = krylov: ") && krylov.contains("choose auto or covariance"), "{krylov}");
    assert!(refusal(FitConfig { k: 21, ..FitConfig::default() }).contains("from 1 to 20 components"));
    let limits = Limits { tol: 2.0, ..Limits::default() };
    assert!(refusal(FitConfig { limits, ..FitConfig::default() }).contains("tol = 2"));
    let narrow = Moments::of(&dense(vec![1.0, 2.0], 2), None).unwrap();
    assert!(moments.merge(&narrow).unwrap_err().to_string().contains("columns of the rows to add"));
    let wide = Moments::of(&csr(&[1.0, 0.0, 0.0, 2.0], 4), None);
    assert!(wide.is_ok());
    let wide: Matrix = hbpca::Csr::new(4097, vec![0, 1], vec![4096], vec![1.0]).unwrap().into();
    let said = Moments::of(&wide, None).unwrap_err().to_string();
    assert!(
        said.starts_with("columns = 4097: ") && said.contains("128 MiB") && said.contains("memory limit"),
        "{said}"
    );
}
