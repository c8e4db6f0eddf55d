//! The result: components, variances, and the maps between data and scores.

mod transform;

pub use transform::Whitening;

use serde::{Deserialize, Serialize};

use crate::matrix::{Preprocessing, RowMap};
use crate::{Block, Error};

/// Principal components of a data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// k×d, row-major: one component a row, unit length, its entry of largest magnitude positive.
    components: Vec<f64>,
    summary: Summary,
    shift: Option<Vec<f64>>,
    scale: Option<Vec<f64>>,
}

/// The numbers of a model besides its vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Rows of the data.
    pub n: usize,
    /// Columns of the data.
    pub d: usize,
    /// Sum of the row weights; n without weights.
    pub weight: f64,
    /// How rows were prepared.
    pub preprocessing: Preprocessing,
    /// Eigenvalues of C = (1/n)Σaaᵀ, descending.
    pub eigenvalues: Vec<f64>,
    /// Trace of C.
    pub total_variance: f64,
}

impl Model {
    /// Puts a model together from orthonormal columns; flips signs so that each component's entry of largest magnitude
    /// (the first of them) is positive.
    pub fn new(vectors: &Block, summary: Summary, map: &RowMap) -> Result<Self, Error> {
        let (k, d) = (vectors.p(), vectors.d());
        let mut components = Vec::with_capacity(k * d);
        for c in 0..k {
            let column = vectors.column(c);
            let largest = column.iter().fold(0.0_f64, |best, x| if x.abs() > best.abs() { *x } else { best });
            let sign = if largest < 0.0 { -1.0 } else { 1.0 };
            components.extend(column.iter().map(|x| sign * x));
        }
        Self::from_parts(
            components,
            summary,
            map.shift().map(<[f64]>::to_vec),
            map.scale().map(<[f64]>::to_vec),
        )
    }

    /// Puts a model together from stored parts, whose sizes must fit.
    pub fn from_parts(
        components: Vec<f64>,
        summary: Summary,
        shift: Option<Vec<f64>>,
        scale: Option<Vec<f64>>,
    ) -> Result<Self, Error> {
        let (k, d) = (summary.eigenvalues.len(), summary.d);
        if k == 0 || Some(components.len()) != k.checked_mul(d) {
            return Err(Error::shape(
                format!("numbers in {k} components of {d} columns"),
                k.saturating_mul(d),
                components.len(),
            ));
        }
        for (what, part) in [("subtracted", &shift), ("divided", &scale)] {
            if let Some(part) = part
                && part.len() != d
            {
                return Err(Error::shape(format!("columns to be {what}"), d, part.len()));
            }
        }
        Ok(Self { components, summary, shift, scale })
    }

    /// k, the number of components.
    pub fn n_components(&self) -> usize {
        self.summary.eigenvalues.len()
    }

    /// d, the number of features.
    pub fn n_features(&self) -> usize {
        self.summary.d
    }

    /// All components, k×d, row-major.
    pub fn components(&self) -> &[f64] {
        &self.components
    }

    /// Component i, a unit vector in prepared coordinates.
    pub fn component(&self, i: usize) -> &[f64] {
        &self.components[i * self.summary.d..(i + 1) * self.summary.d]
    }

    /// The components as the columns of a d×k block.
    pub fn vectors(&self) -> Block {
        let columns: Vec<&[f64]> = (0..self.n_components()).map(|i| self.component(i)).collect();
        Block::from_columns(&columns).unwrap_or_else(|_| unreachable!("components have equal lengths"))
    }

    /// Everything but the vectors.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Eigenvalues of C = (1/n)Σaaᵀ, descending.
    pub fn eigenvalues(&self) -> &[f64] {
        &self.summary.eigenvalues
    }

    /// Variances with denominator n − 1, as scikit-learn's `explained_variance_`; 0 for a single row.
    pub fn explained_variance(&self) -> Vec<f64> {
        self.summary.eigenvalues.iter().map(|x| x * self.sample_factor()).collect()
    }

    /// Share of the total variance of the data, whatever k is; 0 where the data has no variance.
    pub fn explained_variance_ratio(&self) -> Vec<f64> {
        let total = self.summary.total_variance;
        self.summary.eigenvalues.iter().map(|x| if total > 0.0 { x / total } else { 0.0 }).collect()
    }

    /// Singular values of the prepared data matrix: √(n·λᵢ).
    pub fn singular_values(&self) -> Vec<f64> {
        self.summary.eigenvalues.iter().map(|x| (x.max(0.0) * self.summary.weight).sqrt()).collect()
    }

    /// Mean of the variances (denominator n − 1) left out: the noise of probabilistic PCA; 0 when nothing is left out.
    pub fn noise_variance(&self) -> f64 {
        let left = self.summary.n.min(self.summary.d).saturating_sub(self.n_components());
        if left == 0 {
            return 0.0;
        }
        let rest = self.summary.total_variance - self.summary.eigenvalues.iter().sum::<f64>();
        rest.max(0.0) * self.sample_factor() / left as f64
    }

    /// What is subtracted from every row: the means, or the minima, or nothing.
    pub fn shift(&self) -> Option<&[f64]> {
        self.shift.as_deref()
    }

    /// What every column is divided by, or nothing.
    pub fn scale(&self) -> Option<&[f64]> {
        self.scale.as_deref()
    }

    /// n/(n − 1).
    fn sample_factor(&self) -> f64 {
        let weight = self.summary.weight;
        if weight > 1.0 { weight / (weight - 1.0) } else { 0.0 }
    }
}
