//! Rows with holes: their scores, and what components say of what is missing.
//!
//! With U_o the rows of U that belong to what a row has, and a_o that, the scores z minimise ‖a_o − U_o z‖² + ρ‖z‖²:
//!
//! ```text
//! (U_oᵀU_o + ρI) z = U_oᵀa_o        the shortest z where this leaves a choice
//! ```
//!
//! Filling the holes with a_m = U_m z makes z = Uᵀa/(1 + ρ) of the whole row, since UᵀU = I: this is the expectation step of rank k. U_oᵀU_o is UᵀU
//! less what belongs to the holes, where these are the fewer.

use faer::Mat;
use rayon::prelude::*;

use super::Projection;
use crate::linalg::small_eigen;
use crate::matrix::{FilledHoles, Real};
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
        let by_column = ByColumn::of(self);
        let found: Vec<Vec<f64>> = (0..holes.rows().len())
            .into_par_iter()
            .map(|i| by_column.scores_of(matrix, holes.rows()[i], holes.columns_of(i), rule))
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

    /// What components say of the places `holes`, in their order: μ + DUz, z by least squares on what each row has elsewhere.
    pub(crate) fn fill(&self, matrix: &Matrix<'_>, holes: &Holes, ridge: f64) -> Result<Vec<f64>, Error> {
        if holes.is_empty() {
            return Ok(Vec::new());
        }
        let by_column = ByColumn::of(self);
        let rule = HolesInRows::LeastSquares { ridge };
        let row = |i: usize| -> Result<Vec<f64>, Error> {
            let columns = holes.columns_of(i);
            let z = by_column.scores_of(matrix, holes.rows()[i], columns, rule)?;
            let value = |&j: &u32| {
                let j = j as usize;
                let a: f64 = by_column.column(j).iter().zip(&z).map(|(u, z)| u * z).sum();
                a * self.scale().map_or(1.0, |scale| scale[j]) + self.shift().map_or(0.0, |shift| shift[j])
            };
            Ok(columns.iter().map(value).collect())
        };
        let rows: Vec<Vec<f64>> =
            (0..holes.rows().len()).into_par_iter().map(row).collect::<Result<_, _>>()?;
        Ok(rows.concat())
    }
}

impl Projection<'_> {
    /// Least squares on what samples have: `scores` are U_oᵀa_o of all of them, n×k, and become z where `holes` has any of theirs.
    pub(super) fn solve_samples(
        &self,
        scores: &mut [f64],
        holes: &FilledHoles,
        ridge: f64,
    ) -> Result<(), Error> {
        /// Samples that a thread takes at a time.
        const SAMPLES: usize = 512;
        let (d, k) = (self.n_features(), self.n_components());
        if k == 0 {
            return Ok(());
        }
        let by_column = ByColumn::of(self);
        scores.par_chunks_mut(SAMPLES * k).enumerate().try_for_each(|(i, scores)| {
            let samples = i * SAMPLES..i * SAMPLES + scores.len() / k;
            let mut missing: Vec<Vec<u32>> = vec![Vec::new(); samples.len()];
            for j in 0..d {
                let (of_variant, _) = holes.among(j, &samples);
                of_variant.iter().for_each(|l| missing[*l as usize - samples.start].push(j as u32));
            }
            for (z, columns) in scores.chunks_exact_mut(k).zip(&missing).filter(|(_, x)| !x.is_empty()) {
                let solved = by_column.solve(z, columns, ridge)?;
                z.copy_from_slice(&solved);
            }
            Ok(())
        })
    }
}

/// U with the k numbers of a column side by side, and UᵀU.
struct ByColumn<'p, 'a> {
    projection: &'p Projection<'a>,
    /// d×k.
    u: Vec<f64>,
    /// k×k.
    gram: Vec<f64>,
}

impl<'p, 'a> ByColumn<'p, 'a> {
    fn of(projection: &'p Projection<'a>) -> Self {
        let (d, k) = (projection.n_features(), projection.n_components());
        let components = projection.components();
        let u: Vec<f64> = (0..d).flat_map(|j| (0..k).map(move |c| components[c * d + j])).collect();
        let mut gram = vec![0.0; k * k];
        u.chunks_exact(k.max(1)).for_each(|u| add_square(&mut gram, u, 1.0));
        Self { projection, u, gram }
    }

    /// The row of U that belongs to column j.
    fn column(&self, j: usize) -> &[f64] {
        let k = self.projection.n_components();
        &self.u[j * k..(j + 1) * k]
    }

    /// Uᵀa.
    fn along(&self, a: &[f64]) -> Vec<f64> {
        let k = self.projection.n_components();
        let mut b = vec![0.0; k];
        for (u, a) in self.u.chunks_exact(k.max(1)).zip(a) {
            b.iter_mut().zip(u).for_each(|(b, u)| *b += a * u);
        }
        b
    }

    fn scores_of(
        &self,
        matrix: &Matrix<'_>,
        l: usize,
        holes: &[u32],
        rule: HolesInRows,
    ) -> Result<Vec<f64>, Error> {
        let b = || self.along(&self.projection.prepared_row(matrix, l, holes));
        match rule {
            HolesInRows::Refused | HolesInRows::Nothing => Ok(vec![f64::NAN; self.projection.n_components()]),
            HolesInRows::Mean => Ok(b()),
            HolesInRows::LeastSquares { ridge } => self.solve(&b(), holes, ridge),
        }
    }

    /// U_oᵀU_o + ρI.
    fn gram_without(&self, holes: &[u32], ridge: f64) -> Vec<f64> {
        let (d, k) = (self.projection.n_features(), self.projection.n_components());
        let mut m;
        if 2 * holes.len() <= d {
            m = self.gram.clone();
            holes.iter().for_each(|&j| add_square(&mut m, self.column(j as usize), -1.0));
        } else {
            m = vec![0.0; k * k];
            let mut holes = holes.iter().map(|&j| j as usize).peekable();
            (0..d)
                .filter(|j| holes.next_if_eq(j).is_none())
                .for_each(|j| add_square(&mut m, self.column(j), 1.0));
        }
        (0..k).for_each(|c| m[c * k + c] += ridge);
        m
    }

    /// z of (U_oᵀU_o + ρI)z = b; directions that what is there does not determine to rounding have none of it.
    fn solve(&self, b: &[f64], holes: &[u32], ridge: f64) -> Result<Vec<f64>, Error> {
        /// What must be left of rounding where all directions are taken for determined.
        const CLEARLY: f64 = 1e3;
        let (d, k) = (self.projection.n_features(), self.projection.n_components());
        if k == 0 || holes.len() == d {
            return Ok(vec![0.0; k]);
        }
        let m = self.gram_without(holes, ridge);
        let rounding = 4.0 * (d + k) as f64 * f64::EPSILON * (1.0 + ridge);
        if let Some(z) = solve_definite(&m, b, CLEARLY * rounding) {
            return Ok(z);
        }
        let (values, vectors) = small_eigen(&Mat::from_fn(k, k, |c, e| m[c * k + e]))?;
        let mut z = vec![0.0; k];
        for (i, value) in values.iter().enumerate().filter(|(_, value)| **value > rounding) {
            let along: f64 = (0..k).map(|c| vectors[(c, i)] * b[c]).sum();
            (0..k).for_each(|c| z[c] += vectors[(c, i)] * along / value);
        }
        Ok(z)
    }
}

/// m ← m + factor·uuᵀ.
fn add_square(m: &mut [f64], u: &[f64], factor: f64) {
    for (row, x) in m.chunks_exact_mut(u.len()).zip(u) {
        row.iter_mut().zip(u).for_each(|(m, y)| *m += factor * x * y);
    }
}

/// z of mz = b by the inverse of the Cholesky factor, if every eigenvalue of m is above `least`: with m = LLᵀ the smallest is 1/‖L⁻¹‖² ≥ 1/‖L⁻¹‖_F².
fn solve_definite(m: &[f64], b: &[f64], least: f64) -> Option<Vec<f64>> {
    let k = b.len();
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    // L row by row, beside it L⁻¹ by rows: both are lower triangles.
    let (mut l, mut inverse) = (vec![0.0; k * k], vec![0.0; k * k]);
    for i in 0..k {
        for j in 0..i {
            l[i * k + j] = (m[i * k + j] - dot(&l[i * k..i * k + j], &l[j * k..j * k + j])) / l[j * k + j];
        }
        let pivot = m[i * k + i] - dot(&l[i * k..i * k + i], &l[i * k..i * k + i]);
        if pivot <= least || pivot.is_nan() {
            return None;
        }
        l[i * k + i] = pivot.sqrt();
        for j in 0..i {
            let sum: f64 = (j..i).map(|e| l[i * k + e] * inverse[e * k + j]).sum();
            inverse[i * k + j] = -sum / l[i * k + i];
        }
        inverse[i * k + i] = 1.0 / l[i * k + i];
    }
    if inverse.iter().map(|x| x * x).sum::<f64>() * least >= 1.0 {
        return None;
    }
    let y: Vec<f64> = (0..k).map(|i| dot(&inverse[i * k..=i * k + i], &b[..=i])).collect();
    Some((0..k).map(|i| (i..k).map(|e| inverse[e * k + i] * y[e]).sum()).collect())
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
