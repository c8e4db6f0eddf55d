//! How fast this machine multiplies: what the choice of a solver rests on.

use std::sync::OnceLock;

use crate::columns::Preprocessing;
use crate::matrix::{Csr, Dense, Matrix, random_filling};
use crate::operator::{Covariance, Precision, Products};
use crate::stopwatch::Stopwatch;
use crate::{Block, Error};

/// Multiply-adds per nanosecond of one thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Speeds {
    /// Forming C from dense rows.
    pub(super) form: f64,
    /// The same in f32.
    pub(super) form_in_single: f64,
    /// A pass over dense rows with a block of eight, in f32.
    pub(super) single: f64,
    /// The same in f64.
    pub(super) double: f64,
    /// A pass over compressed rows.
    pub(super) sparse: f64,
    /// Whether these were measured here.
    pub(super) measured: bool,
}

impl Speeds {
    /// Between what server processors reach with AVX-512 and with AVX2 (`cargo run --release --example pass_speed`). Others are
    /// slower, but in everything alike: only ratios decide.
    pub(super) const TYPICAL: Self =
        Self { form: 22.0, form_in_single: 43.0, single: 34.0, double: 18.0, sparse: 1.5, measured: false };

    /// Measures each kernel on made-up data of a few megabytes, a third of a second in all, once in a process.
    pub(super) fn here() -> Result<Self, Error> {
        static MEASURED: OnceLock<Speeds> = OnceLock::new();
        if let Some(speeds) = MEASURED.get() {
            return Ok(*speeds);
        }
        let measured = Self::measure()?;
        Ok(*MEASURED.get_or_init(|| measured))
    }

    fn measure() -> Result<Self, Error> {
        const P: usize = 8;
        let threads = rayon::current_num_threads() as f64;
        let (n, d) = (8192, 384);
        let values = random_filling(1, n * d).iter().map(|x| *x as f32).collect();
        let dense: Matrix<'_> = Dense::new(values, n, d)?.into();
        let mut c = Covariance::new(&dense, Preprocessing::CENTER)?;
        let (v, mut image) = (Block::from_values(d, P, random_filling(2, d * P))?, Block::zeros(d, P));
        let work = (2 * n * d * P) as f64 / threads;
        let single = work / fastest(20, || c.apply_in(Precision::Single, &v, &mut image))?;
        let double = work / fastest(20, || c.apply(&v, &mut image))?;
        let mut formed = Block::zeros(0, 0);
        let work = (n * d * d / 2) as f64 / threads;
        let form = work / fastest(4, || c.form(Precision::Double, &mut formed))?;
        let form_in_single = work / fastest(4, || c.form(Precision::Single, &mut formed))?;
        // Columns as scattered as those of a text: a few appear in many rows, most in few.
        let (n, d, width) = (10_000, 40_000, 64);
        let step = d / width;
        let spread = random_filling(3, n * width);
        let columns = spread.iter().enumerate();
        let columns =
            columns.map(|(i, x)| (i % width * step) as u32 + ((x + 0.5).powi(3) * step as f64) as u32);
        let rows: Vec<usize> = (0..=n).map(|l| l * width).collect();
        let sparse: Matrix<'_> =
            Csr::new(d, rows, columns.collect::<Vec<u32>>(), vec![1.0_f32; n * width])?.into();
        let mut c = Covariance::new(&sparse, Preprocessing::NONE)?;
        let (v, mut image) = (Block::from_values(d, P, random_filling(4, d * P))?, Block::zeros(d, P));
        let sparse = (2 * n * width * P) as f64 / threads / fastest(8, || c.apply(&v, &mut image))?;
        Ok(Self { form, form_in_single, single, double, sparse, measured: true })
    }
}

/// Nanoseconds of the fastest of some calls: what disturbs a measurement only ever slows it down.
fn fastest<T>(calls: usize, mut call: impl FnMut() -> Result<T, Error>) -> Result<f64, Error> {
    let mut fastest = f64::INFINITY;
    for _ in 0..calls {
        let clock = Stopwatch::start();
        call()?;
        fastest = fastest.min(clock.seconds() * 1e9);
    }
    Ok(fastest.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_measured_once() {
        let speeds = Speeds::here().unwrap();
        for speed in [speeds.form, speeds.form_in_single, speeds.single, speeds.double, speeds.sparse] {
            assert!(speed.is_finite() && speed > 0.0, "{speeds:?}");
        }
        assert!(speeds.measured && !Speeds::TYPICAL.measured);
        assert_eq!(Speeds::here().unwrap(), speeds);
    }
}
