//! Plans stay within their memory, and choose by passes and arithmetic.

use super::*;
use crate::Matrix;

/// Rows that are never read.
struct Claimed {
    n: usize,
    d: usize,
}

impl RowChunks for Claimed {
    fn n_rows(&self) -> usize {
        self.n
    }
    fn n_cols(&self) -> usize {
        self.d
    }
    fn nnz(&self) -> usize {
        self.n * self.d
    }
    fn is_sparse(&self) -> bool {
        false
    }
    fn bytes(&self) -> u64 {
        (self.n * self.d * 4) as u64
    }
    fn starts(&self) -> &[usize] {
        &[0]
    }
    fn read_chunk(&mut self, _: usize, _: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        unreachable!("plans read nothing")
    }
    fn read_rows(&mut self, _: std::ops::Range<usize>) -> Result<Matrix<'static>, Error> {
        unreachable!("plans read nothing")
    }
}

fn plan(n: usize, d: usize, k: usize, memory: u64) -> Result<StreamPlan, Error> {
    FitConfig { k, ..FitConfig::default() }.plan_with_chunks(&Claimed { n, d }, memory, 0, None)
}

#[test]
fn few_columns_are_formed_many_anchored_and_too_many_left_to_krylov() {
    let solver = |d: usize, memory: u64| plan(1 << 22, d, 1, memory).unwrap().solver;
    assert_eq!(solver(200, 1 << 30), SolverKind::Covariance);
    assert_eq!(solver(5000, 1 << 30), SolverKind::Anchored);
    assert_eq!(solver(40_000, 120 << 20), SolverKind::Krylov);
}

/// Compressed rows that are never read.
struct Compressed(Claimed);

impl RowChunks for Compressed {
    fn n_rows(&self) -> usize {
        self.0.n
    }
    fn n_cols(&self) -> usize {
        self.0.d
    }
    fn nnz(&self) -> usize {
        50 * self.0.n
    }
    fn is_sparse(&self) -> bool {
        true
    }
    fn bytes(&self) -> u64 {
        (8 * self.nnz()) as u64
    }
    fn starts(&self) -> &[usize] {
        &[0]
    }
    fn read_chunk(&mut self, _: usize, _: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        unreachable!("plans read nothing")
    }
    fn read_rows(&mut self, _: std::ops::Range<usize>) -> Result<Matrix<'static>, Error> {
        unreachable!("plans read nothing")
    }
}

#[test]
fn a_slow_disk_is_read_less_often() {
    let rows = Compressed(Claimed { n: 1 << 24, d: 40_000 });
    let plan = |disk_rate: Option<f64>| {
        let config = FitConfig { k: 10, disk_rate, ..FitConfig::default() };
        config.plan_with_chunks(&rows, 1 << 30, 0, None)
    };
    let [usual, fast, slow] = [None, Some(5e9), Some(50e6)].map(|rate| plan(rate).unwrap());
    assert_eq!((usual.solver, slow.solver), (SolverKind::Anchored, SolverKind::Anchored));
    assert_eq!(fast.solver, SolverKind::Krylov);
    assert!(slow.passes < fast.passes);
    assert!(slow.chosen_because.contains("on disk, at 47.7 MiB a second,"), "{}", slow.chosen_because);
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = plan(Some(rate)).unwrap_err().to_string();
        assert!(error.starts_with("disk_rate = ") && error.contains("positive number of bytes"), "{error}");
    }
}

#[test]
fn plans_stay_within_the_memory_whatever_n_is() {
    for n in [10_000, 1 << 22, 1 << 34] {
        for d in [1, 30, 1000, 20_000] {
            for memory in [64 << 20, 1 << 30, 1 << 34] {
                if let Ok(plan) = plan(n, d, 1.max(d / 100), memory) {
                    let pool = plan.pool_rows as u64 * (4 * d as u64 + 8);
                    assert!(plan.memory <= memory && pool + 3 * plan.chunk_bytes < memory, "{plan:?}");
                    assert!(plan.pool_rows <= n / 4 && plan.chunk_bytes >= 4 * d as u64);
                }
            }
        }
    }
}

#[test]
fn an_impossible_budget_names_the_smallest_that_works() {
    let error = plan(1 << 20, 3000, 20, 10 << 20).unwrap_err().to_string();
    let least = error.split("need ").nth(1).and_then(|text| text.split('M').next()).unwrap();
    assert!(error.starts_with("memory = 10.0 MiB: 20 components of 3000 columns"), "{error}");
    let least: u64 = least.parse().unwrap();
    assert!(plan(1 << 20, 3000, 20, least << 20).is_ok(), "{error}");
    assert!(plan(1 << 20, 3000, 20, (least - 2) << 20).is_err(), "{error}");
}

#[test]
fn a_start_for_scaled_columns_wants_their_scale_first() {
    let start = Some(crate::Block::unit_columns(3000, 0, 1));
    for (preprocessing, folds) in
        [(crate::Preprocessing::CENTER, true), (crate::Preprocessing::STANDARDIZE, false)]
    {
        let config = FitConfig { start: start.clone(), preprocessing, ..FitConfig::default() };
        assert_eq!(config.folds(SolverKind::Anchored), folds);
        assert!(!config.folds(SolverKind::Power));
    }
}
