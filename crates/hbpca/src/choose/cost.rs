//! Which solver is cheapest: a model of what each would compute and read.
//!
//! ```text
//! krylov       passes · max(2·entries·p multiply-adds, bytes from memory) + vector work + a last pass in f64
//! covariance   n·d²/2 multiply-adds + the eigen-solve + a pass in f64 where C is formed in f32; fewer multiply-adds where
//!              most numbers are the modes of their columns
//! ```
//!
//! Speeds are [typical ones](Speeds::TYPICAL) of a nominal machine, so that the choice, and with it every bit of the result, depends on data and
//! settings alone. They are measured only where that is [asked for](Tuning::Measured).

use super::speeds::Speeds;
use crate::Matrix;
use crate::config::{FitConfig, Tuning};
use crate::operator::{ColumnModes, PrecisionChoice};
use crate::solver::{CovarianceSolver, KrylovSizes, MOST_MEASURED, SolverKind, solves_partially, work};

/// Bytes per nanosecond that all threads together read from memory.
const MEMORY: f64 = 30.0;
/// Numbers that C may take (1 GiB).
const MOST_NUMBERS: usize = 1 << 27;
/// Threads of the nominal machine.
const NOMINAL_THREADS: f64 = 4.0;
/// The share of its usual passes that `krylov` takes where eigenvalues fall fast.
const EASY: f64 = 0.7;
/// A forecast of `krylov` has to exceed what forming C takes by this: its residuals fall faster than Chebyshev polynomials do.
const MARGIN: f64 = 1.1;

/// The cheaper of `covariance` and `krylov` in memory, and the reason in words.
///
/// `anchored` reads the data least often but computes more on each look: it is the choice where a look means reading a disk
/// or a network, never for a matrix in memory.
pub(super) fn choose(matrix: &Matrix<'_>, config: &FitConfig) -> Choice {
    let side = smaller_side(matrix);
    if side.checked_mul(side).is_none_or(|numbers| numbers > MOST_NUMBERS) {
        let size = (side as f64).powi(2) * 8.0 / (1_u64 << 30) as f64;
        let because = format!("a covariance of {side} columns would need {size:.0} GiB");
        return Choice { solver: SolverKind::Krylov, because, looks_worth: None };
    }
    let speeds = match config.tuning {
        Tuning::Nominal => Speeds::TYPICAL,
        Tuning::Measured => Speeds::here().unwrap_or(Speeds::TYPICAL),
    };
    let mut cost = Cost::new(matrix, None, config, speeds);
    // A look at a sample of the rows, where it could change the verdict.
    let modes = if cost.decomposition < cost.krylov { ColumnModes::of(matrix) } else { None };
    if modes.is_some() {
        cost = Cost::new(matrix, modes.as_ref(), config, speeds);
    }
    cost.verdict()
}

/// A solver for rows in memory.
pub(super) struct Choice {
    pub(super) solver: SolverKind,
    /// Why.
    pub(super) because: String,
    /// Looks of `krylov` that take as long as `covariance` does: the better choice where it needs more.
    pub(super) looks_worth: Option<f64>,
}

/// The side of the matrix that `covariance` decomposes: C, or AAᵀ for dense data of fewer rows than columns.
fn smaller_side(matrix: &Matrix<'_>) -> usize {
    let (n, d) = (matrix.n_rows(), matrix.n_cols());
    if matrix.is_sparse() { d } else { n.min(d) }
}

/// Sizes of `krylov` for k components of rows in memory.
pub(super) fn krylov_sizes(matrix: &Matrix<'_>, k: usize) -> KrylovSizes {
    if matrix.is_sparse() {
        KrylovSizes::suiting_sparse_in_memory(matrix.n_cols(), k)
    } else {
        KrylovSizes::suiting_in_memory(k)
    }
}

/// Estimated seconds.
struct Cost {
    krylov: f64,
    passes: f64,
    /// Of `krylov`, one look.
    look: f64,
    covariance: f64,
    /// What of `covariance` comes after forming C.
    decomposition: f64,
    speeds: Speeds,
}

impl Cost {
    fn new(matrix: &Matrix<'_>, modes: Option<&ColumnModes>, config: &FitConfig, speeds: Speeds) -> Self {
        let (n, d, k) = (matrix.n_rows() as f64, matrix.n_cols() as f64, config.k as f64);
        let entries = matrix.nnz() as f64;
        let threads = if speeds.measured { rayon::current_num_threads() as f64 } else { NOMINAL_THREADS };
        let sparse = matrix.is_sparse();
        let sizes = krylov_sizes(matrix, config.k);
        let p = (sizes.block as f64).min(d);
        // As counted on the data sets of docs/benchmarks.md; after d/p of them the basis is full.
        let for_each = if sparse || sizes.block >= 8 { 0.4 } else { 0.8 };
        let passes = (7.0 + for_each * k).min((d / p).ceil() + 1.0);
        let single = matches!(matrix, Matrix::DenseF32(_)) && config.precision != PrecisionChoice::Double;
        let early = if single { speeds.single } else { speeds.double };
        let (early, last) = if sparse { (speeds.sparse, speeds.sparse) } else { (early, speeds.double) };
        // Short rows leave lanes empty and sums to be gathered.
        let filled = d / (d + 40.0);
        let read = matrix.bytes_per_pass() as f64 / MEMORY;
        let pass = |width: f64, speed: f64| (2.0 * entries * width / (speed * filled * threads)).max(read);
        let vectors = 4.0 * d * p * (sizes.memory as f64).min(passes * p) / speeds.sparse;
        let look = pass(p, early) + vectors;
        let krylov = passes * look + pass(p.max(k), last);
        let side = smaller_side(matrix) as f64;
        let wide = side < d;
        let solve = if wide { work::all(side as usize) } else { work::of_leading(side as usize, config.k) };
        let solve = solve / speeds.double;
        // Wide data is read twice more: for AᵀU and for CV.
        let others = if wide { 2.0 * pass(k, speeds.double) } else { 0.0 };
        let in_single = single
            && !wide
            && CovarianceSolver::tries_single(
                matrix.n_cols(),
                config.k,
                config.limits.aim(),
                config.limits.max_passes,
            );
        let speed = if in_single { speeds.form_in_single } else { speeds.form };
        let form = (entries.max(n * d) * side / 2.0 / (speed * filled * threads)).max(read);
        let measuring = if in_single { pass(k.min(MOST_MEASURED as f64), speeds.double) } else { 0.0 };
        let skipping =
            modes.filter(|_| !wide).map(|modes| (n * modes.cost() / (speeds.form * threads)).max(read));
        let forming = skipping.map_or(form + measuring, |skipping| skipping.min(form + measuring));
        let [krylov, look, covariance, decomposition] =
            [krylov, look, forming + solve + others, solve + others].map(|nanoseconds| nanoseconds * 1e-9);
        Self { krylov, passes, look, covariance, decomposition, speeds }
    }

    fn verdict(&self) -> Choice {
        let Self { krylov, passes, look, covariance, .. } = self;
        let speeds =
            if self.speeds.measured { "speeds measured here" } else { "the speeds of a nominal machine" };
        // Where the spectrum decides, `krylov` begins: it sees whether that is an easy one.
        if *covariance <= EASY * krylov {
            let because = format!(
                "forming C takes about {covariance:.2} s against {krylov:.2} s of krylov, at {speeds}"
            );
            return Choice { solver: SolverKind::Covariance, because, looks_worth: None };
        }
        let because = format!(
            "about {krylov:.2} s in {passes:.0} passes where forming C would take {covariance:.2} s, at {speeds}"
        );
        Choice { solver: SolverKind::Krylov, because, looks_worth: Some(MARGIN * covariance / look) }
    }
}

/// Components to ask `covariance` for first where a share of the variance is wanted, and `k` would be the next guess.
///
/// Every further guess forms C again, n·d²/2 multiply-adds, and four guesses (1, 8, 16, 32) are the common number; all components
/// at once cost one full eigen-solve.
pub(super) fn first_k_of_share(n: usize, d: usize, k: usize) -> usize {
    /// A decomposition of so many takes no time worth saving.
    const FEW: usize = 100;
    let guesses = 4.0 * n as f64 * (d as f64).powi(2) / 2.0;
    let all = n.min(d) <= FEW || !solves_partially(d, k) || work::all(d) <= guesses;
    if all { n.min(d) } else { k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Csr, Dense, Limits};

    fn choose(matrix: &Matrix<'_>, k: usize) -> (SolverKind, String) {
        let Choice { solver, because, .. } = super::choose(matrix, &FitConfig { k, ..FitConfig::default() });
        (solver, because)
    }

    /// Numbers of which none is frequent.
    fn no_number_twice(count: usize) -> Vec<f32> {
        (0..count).map(|i| (i as f32 * 0.618_034).fract()).collect()
    }

    #[test]
    fn forming_in_single_precision_is_cheaper_where_the_tolerance_allows_it() {
        let pictures: Matrix = Dense::new(no_number_twice(20_000 * 784), 20_000, 784).unwrap().into();
        let cost = |config: FitConfig| Cost::new(&pictures, None, &config, Speeds::TYPICAL).covariance;
        let config = |tol, precision| FitConfig {
            k: 50,
            precision,
            limits: Limits { tol, ..Limits::default() },
            ..FitConfig::default()
        };
        let single = cost(config(1e-6, PrecisionChoice::Auto));
        assert!(single < 0.8 * cost(config(1e-12, PrecisionChoice::Auto)));
        assert!(single < 0.8 * cost(config(1e-6, PrecisionChoice::Double)));
    }

    #[test]
    fn the_choice_does_not_depend_on_threads_unless_it_is_measured() {
        let x: Matrix = Dense::new(no_number_twice(1000 * 1000), 1000, 1000).unwrap().into();
        for k in [1, 5, 10, 30, 60] {
            let chosen = [1, 2, 16].map(|threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| choose(&x, k))
            });
            assert!(chosen.iter().all(|other| *other == chosen[0]), "{chosen:?}");
        }
        let config = FitConfig { tuning: Tuning::Measured, ..FitConfig::default() };
        assert!(super::choose(&x, &config).because.ends_with("at speeds measured here"));
    }

    #[test]
    fn shares_ask_for_all_components_at_once_where_that_is_cheaper_than_guessing() {
        let first = |n: usize, d: usize| first_k_of_share(n, d, 8);
        assert_eq!(first(300, 20), 20);
        assert_eq!(first(10, 100), 10);
        assert_eq!(first(300, 1000), 8); // 5·10⁹ multiply-adds for the solve, 6·10⁸ for four guesses
        assert_eq!(first(10_000, 200), 200);
    }

    #[test]
    fn few_columns_form_the_covariance_and_many_do_not() {
        let narrow: Matrix = Dense::new(no_number_twice(20_000 * 20), 20_000, 20).unwrap().into();
        assert_eq!(choose(&narrow, 1).0, SolverKind::Covariance);
        let wide: Matrix = Dense::new(no_number_twice(1500 * 3000), 1500, 3000).unwrap().into();
        assert_eq!(choose(&wide, 1).0, SolverKind::Krylov);
        let few: Matrix = Dense::new(no_number_twice(100 * 3000), 100, 3000).unwrap().into();
        assert_eq!(choose(&few, 50).0, SolverKind::Covariance); // from AAᵀ, 100×100
        // Pictures: few components by passes, half of all by forming C.
        let pictures: Matrix = Dense::new(no_number_twice(20_000 * 784), 20_000, 784).unwrap().into();
        assert_eq!(choose(&pictures, 10).0, SolverKind::Krylov);
        assert_eq!(choose(&pictures, 390).0, SolverKind::Covariance);
        // Pictures with a background: C takes a fraction of its products.
        let mut values = no_number_twice(20_000 * 784);
        values.iter_mut().enumerate().filter(|(at, _)| at / 8 % 5 > 0).for_each(|(_, x)| *x = -0.4);
        let drawn: Matrix = Dense::new(values, 20_000, 784).unwrap().into();
        assert_eq!(choose(&drawn, 10).0, SolverKind::Covariance);
        let text: Matrix =
            Csr::new(50_000, vec![0, 1, 2], vec![7, 49_999], vec![1.0_f32, 1.0]).unwrap().into();
        let (solver, reason) = choose(&text, 10);
        assert_eq!(solver, SolverKind::Krylov);
        assert!(reason.contains("50000 columns would need 19 GiB"), "{reason}");
    }
}
