//! Data to scores and back.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Model;
use crate::{Error, Matrix};

/// Whether scores are divided by their standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Whitening {
    /// Scores keep their variances.
    #[default]
    Off,
    /// Scores have variance 1 (denominator n − 1).
    On,
}

impl Model {
    /// Scores of every row: n×k, row-major. Row x becomes (D⁻¹(x − μ))ᵀU; sparse rows stay sparse.
    pub fn transform(&self, matrix: &Matrix<'_>, whitening: Whitening) -> Result<Vec<f64>, Error> {
        let (d, k) = (self.n_features(), self.n_components());
        if matrix.n_cols() != d {
            return Err(Error::shape("columns of the data to transform", d, matrix.n_cols()));
        }
        // D⁻¹U, whitened columns included, d×k: the k values of a column side by side.
        let factors = self.whitening_factors(whitening);
        let mut map = vec![0.0; d * k];
        for j in 0..d {
            let inverse = self.scale().map_or(1.0, |s| 1.0 / s[j]);
            for c in 0..k {
                map[j * k + c] = self.component(c)[j] * inverse / factors[c];
            }
        }
        let shift = self.shift();
        let mut offset = vec![0.0; k]; // scores of μ, for sparse rows
        for (row, mu) in map.chunks_exact(k).zip(shift.unwrap_or(&[])) {
            offset.iter_mut().zip(row).for_each(|(o, u)| *o += mu * u);
        }
        let sparse = matrix.is_sparse();
        let mut scores = vec![0.0; matrix.n_rows() * k];
        scores.par_chunks_exact_mut(k).enumerate().with_min_len(64).for_each(|(l, scores)| {
            if sparse {
                scores.iter_mut().zip(&offset).for_each(|(s, o)| *s = -o);
            }
            matrix.for_each_in_row(l, |j, x| {
                // Dense rows are centred first, which loses nothing when the mean is large.
                let a = if sparse { x } else { x - shift.map_or(0.0, |s| s[j]) };
                scores.iter_mut().zip(&map[j * k..(j + 1) * k]).for_each(|(s, u)| *s += a * u);
            });
        });
        Ok(scores)
    }

    /// Rows from scores (n×k, row-major): x = μ + D·U·scores, the point nearest to the data within the components.
    pub fn inverse_transform(&self, scores: &[f64], whitening: Whitening) -> Result<Vec<f64>, Error> {
        let (d, k) = (self.n_features(), self.n_components());
        if !scores.len().is_multiple_of(k) {
            let whole = scores.len() / k * k;
            return Err(Error::shape(format!("scores in rows of {k}"), whole, scores.len()));
        }
        let factors = self.whitening_factors(whitening);
        let mut rows = vec![0.0; scores.len() / k * d];
        rows.par_chunks_exact_mut(d).zip(scores.par_chunks_exact(k)).with_min_len(16).for_each(
            |(row, scores)| {
                for (c, score) in scores.iter().enumerate() {
                    let score = score * if factors[c].is_finite() { factors[c] } else { 0.0 };
                    row.iter_mut().zip(self.component(c)).for_each(|(x, u)| *x += score * u);
                }
                if let Some(scale) = self.scale() {
                    row.iter_mut().zip(scale).for_each(|(x, s)| *x *= s);
                }
                if let Some(shift) = self.shift() {
                    row.iter_mut().zip(shift).for_each(|(x, mu)| *x += mu);
                }
            },
        );
        Ok(rows)
    }

    /// What scores are divided by: standard deviations when whitening; a component without variance gives scores 0.
    fn whitening_factors(&self, whitening: Whitening) -> Vec<f64> {
        match whitening {
            Whitening::Off => vec![1.0; self.n_components()],
            Whitening::On => self
                .explained_variance()
                .iter()
                .map(|v| if *v > 0.0 { v.sqrt() } else { f64::INFINITY })
                .collect(),
        }
    }
}
