//! The row Gram matrix G = (1/n)AAᵀ of compressed rows has the eigenvalues of C, and vectors as long as there are rows.
//!
//! ```text
//! V ← AᵀU = D⁻¹[Σ √w x uᵀ − μsᵀ],  s = Σ √w u        a walk over the rows that adds
//! nGU = AV, row by row √w(xᵀV′ − μᵀV′),  V′ = D⁻¹V    a walk that reads
//! ```
//!
//! Rows are read twice where C reads them once, but each of the two walks does half the work. What comes out needs no merging, and
//! a solver that stores many such vectors stores shorter ones.

use rayon::prelude::*;

use super::sum::{Operand, OperandRoom, Prepared, Scratch};
use crate::matrix::Csr;
use crate::operator::{Precision, Rows, reshape};
use crate::{Block, Error, kernels};

/// Rows that a thread takes at a time.
const CHUNK: usize = 1 << 8;

/// Memory for the products, kept between them.
#[derive(Debug, Default)]
pub(in crate::operator) struct RowGramWork {
    /// √W·U.
    rounded: Vec<f32>,
    /// V = AᵀU.
    combined: Option<Block>,
    room: OperandRoom,
    scratch: Scratch,
}

impl RowGramWork {
    /// `out` ← GU.
    pub(in crate::operator) fn apply(
        &mut self,
        rows: &Prepared<'_>,
        x: &Csr<'_, f32>,
        u: &Block,
        out: &mut Block,
    ) -> Result<(), Error> {
        let (n, p) = (rows.n_rows(), u.p());
        let mut combined = self.combined.take().unwrap_or_else(|| Block::zeros(0, 0));
        self.combine(rows, u, &mut combined)?;
        reshape(out, n, p);
        if p > 0 {
            let Operand { rounded, c, .. } = Operand::new(rows.map, &combined, true, &mut self.room);
            let chunks = out.values_mut().par_chunks_mut(CHUNK * p).enumerate();
            chunks.for_each_init(Vec::new, |dots, (i, out)| {
                dots.resize(out.len(), 0.0);
                kernels::dots_csr(x, i * CHUNK, rounded, p, dots);
                let each = out.chunks_exact_mut(p).zip(dots.chunks_exact(p)).enumerate();
                for (l, (out, dots)) in each.map(|(l, row)| (i * CHUNK + l, row)) {
                    let factor = root(rows, l) / n as f64;
                    for (j, (out, dot)) in out.iter_mut().zip(dots).enumerate() {
                        *out = factor * (f64::from(*dot) - c.map_or(0.0, |c| c[j]));
                    }
                }
            });
        }
        self.combined = Some(combined);
        Ok(())
    }

    /// `out` ← AᵀU.
    pub(in crate::operator) fn combine(
        &mut self,
        rows: &Prepared<'_>,
        u: &Block,
        out: &mut Block,
    ) -> Result<(), Error> {
        let (n, d, p) = (rows.n_rows(), rows.dim(), u.p());
        if u.d() != n {
            return Err(Error::shape("coordinates of the vectors to multiply", n, u.d()));
        }
        reshape(out, d, p);
        if p == 0 {
            return Ok(());
        }
        self.rounded.resize(n * p, 0.0);
        let chunks = self.rounded.par_chunks_mut(CHUNK * p).zip(u.values().par_chunks(CHUNK * p)).enumerate();
        chunks.for_each(|(i, (rounded, u))| {
            for (l, (rounded, u)) in rounded.chunks_exact_mut(p).zip(u.chunks_exact(p)).enumerate() {
                let root = root(rows, i * CHUNK + l);
                rounded.iter_mut().zip(u).for_each(|(rounded, u)| *rounded = (root * u) as f32);
            }
        });
        let operand = Operand { v: &[], rounded: &self.rounded, p, c: None, of_rows: true };
        rows.product(Rows::All, operand, Precision::Single, &mut self.scratch, out.values_mut());
        Ok(())
    }
}

/// √w of a row.
fn root(rows: &Prepared<'_>, l: usize) -> f64 {
    rows.weights.map_or(1.0, |weights| weights[l].sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Preprocessing;
    use crate::matrix::{Matrix, random_filling};
    use crate::operator::{Covariance, CovarianceOperator, Products};

    /// Rows of which every third entry is there.
    fn compressed(n: usize, d: usize) -> Matrix<'static> {
        let there = |l: usize| (0..d).filter(move |j| (l * 5 + j * 7).is_multiple_of(3));
        let filling = random_filling(3, n * d);
        let mut starts = vec![0];
        (0..n).for_each(|l| starts.push(starts[l] + there(l).count()));
        let columns: Vec<u32> = (0..n).flat_map(|l| there(l).map(|j| j as u32)).collect();
        let values: Vec<f32> = (0..n)
            .flat_map(|l| there(l).map(move |j| (l, j)))
            .map(|(l, j)| filling[l * d + j] as f32 + 0.3)
            .collect();
        Csr::new(d, starts, columns, values).unwrap().into()
    }

    #[test]
    fn products_of_both_sides_belong_to_the_same_rows() {
        let (n, d, p) = (37, 90, 5);
        let x = compressed(n, d);
        let weights: Vec<f64> = (0..n).map(|l| 0.5 + (l % 3) as f64).collect();
        let u = Block::from_values(n, p, random_filling(7, n * p)).unwrap();
        let scaled = [Preprocessing::STANDARDIZE, Preprocessing::UNIT_RANGE];
        for preprocessing in [Preprocessing::NONE, Preprocessing::CENTER].into_iter().chain(scaled) {
            for mut c in [
                Covariance::new(&x, preprocessing).unwrap(),
                Covariance::weighted(&x, preprocessing, &weights).unwrap(),
            ] {
                let [mut gu, mut back, mut image, mut back_of_gu] = [(); 4].map(|()| Block::zeros(0, 0));
                let rounding = c.row_gram().unwrap().apply_gram(&u, &mut gu).unwrap().of_image();
                c.row_gram().unwrap().combine_rows(&u, &mut back).unwrap();
                // AᵀGU = CAᵀU.
                c.apply(&back, &mut image).unwrap();
                c.row_gram().unwrap().combine_rows(&gu, &mut back_of_gu).unwrap();
                // ‖A‖ ≤ √(n·tr C), and AᵀU errs about as much, relative to it, as GU does to tr C.
                let longest = (0..p).map(|i| crate::block::norm(&u.column(i))).fold(0.0, f64::max);
                let bound = 4.0 * rounding * (n as f64 * c.total_variance()).sqrt() * longest;
                let apart = image.values().iter().zip(back_of_gu.values()).map(|(a, b)| (a - b).abs());
                let largest = apart.fold(0.0, f64::max);
                assert!(largest <= bound, "{preprocessing:?}: {largest:e} against {bound:e}");
                assert!(bound < 1e-2 * image.norm(), "a bound that means something");
                // uᵀGu = ‖Aᵀu‖²/n.
                for i in 0..p {
                    let quotient = crate::block::dot(&u.column(i), &gu.column(i));
                    let square = crate::block::norm(&back.column(i)).powi(2) / n as f64;
                    let length = crate::block::norm(&u.column(i));
                    assert!((quotient - square).abs() <= 4.0 * rounding * length * length);
                }
            }
        }
    }

    #[test]
    fn there_is_no_other_side_without_f32() {
        let x = compressed(6, 20);
        let mut c = Covariance::new(&x, Preprocessing::NONE).unwrap();
        let mut out = Block::zeros(0, 0);
        let wrong = c.row_gram().unwrap().apply_gram(&Block::zeros(20, 2), &mut out).unwrap_err().to_string();
        assert!(wrong.contains("20 given where 6 are needed"), "{wrong}");
        assert!(c.row_gram().unwrap().apply_gram(&Block::zeros(6, 0), &mut out).is_ok());
        let Matrix::CsrF32(x) = &x else { unreachable!() };
        let doubled: Vec<f64> = x.values().iter().map(|x| f64::from(*x)).collect();
        let x: Matrix = Csr::new(20, x.row_starts(), x.columns(), doubled).unwrap().into();
        assert!(Covariance::new(&x, Preprocessing::NONE).unwrap().row_gram().is_none());
    }
}
