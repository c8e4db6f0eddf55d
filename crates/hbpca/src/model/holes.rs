//! Rows with holes: their scores, and what components say of what is missing.
//!
//! With U_o the rows of U that belong to what a row has, and a_o that, the scores z minimise ‖a_o − U_o z‖² + ρ‖z‖²:
//!
//! ```text
//! (U_oᵀU_o + ρI) z = U_oᵀa_o        the shortest z where this leaves a choice
//! ```
//!
//! Filling the holes with a_m = U_m z makes z = Uᵀa/(1 + ρ) of the whole row, since UᵀU = I: this is the expectation step of rank k.

use faer::Mat;
use rayon::prelude::*;

use super::Projection;
use crate::linalg::small_eigen;
use crate::matrix::Real;
use crate::missing::{Holes, HolesInRows};
use crate::{Error, Matrix};

impl Projection<'_> {
    /// Scores of every row as [`transform_to`](Self::transform_to) gives them, those of rows with holes by the given rule.
    ///
    /// ```
    /// use hbpca::missing::HolesInRows;
    /// use hbpca::model::Projection;
    /// use hbpca::{Dense, Matrix};
    /// let u = [0.6, 0.8];
    /// let map = Projection::new(&u, 2, None, None, None)?;
    /// let x: Matrix = Dense::deferring_finite_check(vec![3.0, f64::NAN].into(), 1, 2)?.into();
    /// let z: Vec<f64> = map.transform_with_holes(&x, HolesInRows::LeastSquares { ridge: 0.0 })?;
    /// assert!((z[0] - 5.0).abs() < 1e-14); // 0.6·5 = 3
    /// # Ok::<(), hbpca::Error>(())
    /// ```
    pub fn transform_with_holes<T: Real>(
        &self,
        matrix: &Matrix<'_>,
        rule: HolesInRows,
    ) -> Result<Vec<T>, Error> {
        let mut scores: Vec<T> = self.transform_to(matrix)?;
        let holes = Holes::of(matrix);
        let k = self.n_components();
        if let (HolesInRows::Refused, Some(&row)) = (rule, holes.rows().first()) {
            return Err(Error::NotFinite { row, column: holes.columns_of(0)[0] as usize, value: f64::NAN });
        }
        if let Some((row, column, value)) = infinity_in(matrix) {
            return Err(Error::NotFinite { row, column, value });
        }
        let found: Vec<Vec<f64>> = (0..holes.rows().len())
            .into_par_iter()
            .map(|i| self.scores_of(matrix, holes.rows()[i], holes.columns_of(i), rule))
            .collect::<Result<_, _>>()?;
        for (&l, found) in holes.rows().iter().zip(&found) {
            for (c, (score, z)) in scores[l * k..(l + 1) * k].iter_mut().zip(found).enumerate() {
                *score = T::from_f64(z / self.factor(c));
            }
        }
        Ok(scores)
    }

    /// The row as a, with zeros where it has holes.
    fn prepared_row(&self, matrix: &Matrix<'_>, l: usize, holes: &[u32]) -> Vec<f64> {
        let mut a = vec![0.0; self.n_features()];
        matrix.for_each_in_row(l, |j, x| a[j] = x);
        if let Some(shift) = self.shift() {
            a.iter_mut().zip(shift).for_each(|(a, mu)| *a -= mu);
        }
        if let Some(scale) = self.scale() {
            a.iter_mut().zip(scale).for_each(|(a, s)| *a /= s);
        }
        holes.iter().for_each(|&j| a[j as usize] = 0.0);
        a
    }

    /// Uᵀa.
    fn along(&self, a: &[f64]) -> Vec<f64> {
        let rows = self.components().chunks_exact(self.n_features());
        rows.map(|u| u.iter().zip(a).map(|(u, a)| u * a).sum()).collect()
    }

    fn scores_of(
        &self,
        matrix: &Matrix<'_>,
        l: usize,
        holes: &[u32],
        rule: HolesInRows,
    ) -> Result<Vec<f64>, Error> {
        let b = || self.along(&self.prepared_row(matrix, l, holes));
        match rule {
            HolesInRows::Refused | HolesInRows::Nothing => Ok(vec![f64::NAN; self.n_components()]),
            HolesInRows::Mean => Ok(b()),
            HolesInRows::LeastSquares { ridge } => self.solve(&b(), holes, ridge),
        }
    }

    /// z of (U_oᵀU_o + ρI)z = b; directions that what is there does not determine to rounding have none of it.
    fn solve(&self, b: &[f64], holes: &[u32], ridge: f64) -> Result<Vec<f64>, Error> {
        let (d, k) = (self.n_features(), self.n_components());
        if k == 0 || holes.len() == d {
            return Ok(vec![0.0; k]);
        }
        let mut there = vec![true; d];
        holes.iter().for_each(|&j| there[j as usize] = false);
        let u = self.components();
        let mut m = Mat::<f64>::zeros(k, k);
        for c in 0..k {
            for e in 0..=c {
                let sum: f64 = (0..d).filter(|&j| there[j]).map(|j| u[c * d + j] * u[e * d + j]).sum();
                (m[(c, e)], m[(e, c)]) = (sum, sum);
            }
            m[(c, c)] += ridge;
        }
        let (values, vectors) = small_eigen(&m)?;
        let rounding = 4.0 * (d + k) as f64 * f64::EPSILON * (1.0 + ridge);
        let mut z = vec![0.0; k];
        for (i, value) in values.iter().enumerate().filter(|(_, value)| **value > rounding) {
            let along: f64 = (0..k).map(|c| vectors[(c, i)] * b[c]).sum();
            (0..k).for_each(|c| z[c] += vectors[(c, i)] * along / value);
        }
        Ok(z)
    }

    /// What components say of the places `holes`, in their order: μ + DUz, z by least squares on what each row has elsewhere.
    pub(crate) fn fill(&self, matrix: &Matrix<'_>, holes: &Holes, ridge: f64) -> Result<Vec<f64>, Error> {
        let d = self.n_features();
        let rule = HolesInRows::LeastSquares { ridge };
        let row = |i: usize| -> Result<Vec<f64>, Error> {
            let columns = holes.columns_of(i);
            let z = self.scores_of(matrix, holes.rows()[i], columns, rule)?;
            let value = |&j: &u32| {
                let j = j as usize;
                let a: f64 = z.iter().enumerate().map(|(c, z)| z * self.components()[c * d + j]).sum();
                a * self.scale().map_or(1.0, |scale| scale[j]) + self.shift().map_or(0.0, |shift| shift[j])
            };
            Ok(columns.iter().map(value).collect())
        };
        let rows: Vec<Vec<f64>> =
            (0..holes.rows().len()).into_par_iter().map(row).collect::<Result<_, _>>()?;
        Ok(rows.concat())
    }
}

/// The first infinity, which no rule makes a number of.
fn infinity_in(matrix: &Matrix<'_>) -> Option<(usize, usize, f64)> {
    (0..matrix.n_rows()).into_par_iter().with_min_len(256).find_map_first(|l| {
        let mut found = None;
        matrix.for_each_in_row(l, |j, x| {
            if x.is_infinite() && found.is_none() {
                found = Some((l, j, x));
            }
        });
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dense;

    const N: f64 = f64::NAN;

    fn scores(rows: &[f64], rule: HolesInRows) -> Vec<f64> {
        // Two orthonormal components of four columns; means 1, 2, 3, 4; scales 1, 2, 1, 1.
        let u = [0.5, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, -0.5];
        let (shift, scale) = ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 1.0, 1.0]);
        let map = Projection::new(&u, 4, Some(&shift), Some(&scale), None).unwrap();
        let x: Matrix =
            Dense::deferring_finite_check(rows.to_vec().into(), rows.len() / 4, 4).unwrap().into();
        map.transform_with_holes(&x, rule).unwrap()
    }

    fn close(got: &[f64], want: &[f64]) {
        assert!(
            got.len() == want.len() && got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-13),
            "{got:?}"
        );
    }

    #[test]
    fn a_row_within_the_components_is_found_from_what_it_has() {
        // a = 3u₁ + 1u₂ = (2, 1, 2, 1): x = (3, 4, 5, 5).
        let rule = HolesInRows::LeastSquares { ridge: 0.0 };
        close(&scores(&[3.0, 4.0, 5.0, 5.0, 3.0, N, N, 5.0, N, 4.0, 5.0, N], rule), &[3.0, 1.0].repeat(3));
    }

    #[test]
    fn the_shortest_scores_where_too_little_is_there_and_none_where_nothing_is() {
        let rule = HolesInRows::LeastSquares { ridge: 0.0 };
        // a₁ = 2 = (z₁ + z₂)/2: the shortest is z = (2, 2).
        close(&scores(&[3.0, N, N, N], rule), &[2.0, 2.0]);
        close(&scores(&[N, N, N, N], rule), &[0.0, 0.0]);
        close(&scores(&[N, N, N, N], HolesInRows::Mean), &[0.0, 0.0]);
    }

    #[test]
    fn a_ridge_is_ridge_regression() {
        // Columns 1 and 3 alone: U_oᵀU_o = [[½, ½], [½, ½]], U_oᵀa = (2, 2): (1 + ρ)z₁ = 2 for z₁ = z₂.
        close(&scores(&[3.0, N, 5.0, N], HolesInRows::LeastSquares { ridge: 0.25 }), &[1.6, 1.6]);
    }

    #[test]
    fn means_and_nothing() {
        // a = (2, 0, 2, 0): Uᵀa = (2, 2).
        close(&scores(&[3.0, N, 5.0, N], HolesInRows::Mean), &[2.0, 2.0]);
        let nothing = scores(&[3.0, 4.0, 5.0, 5.0, 3.0, N, 5.0, 5.0], HolesInRows::Nothing);
        close(&nothing[..2], &[3.0, 1.0]);
        assert!(nothing[2..].iter().all(|z| z.is_nan()));
    }
}
