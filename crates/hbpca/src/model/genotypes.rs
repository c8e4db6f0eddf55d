//! Scores of packed genotypes, and numbers as geneticists know them.

use super::{Model, Whitening};
use crate::matrix::Genotypes;
use crate::operator::PackedRows;
use crate::{Block, ColumnStatistics, Error};

impl Model {
    /// Scores of every sample: n×k, row-major. The variants must be those of the model, in its order. What is missing is the mean of
    /// the samples that were fitted; where the model subtracts none, that of these samples.
    pub fn transform_genotypes(
        &self,
        genotypes: &Genotypes,
        whitening: Whitening,
    ) -> Result<Vec<f64>, Error> {
        match whitening {
            Whitening::Off => self.scores_divided_by(genotypes, &vec![1.0; self.n_components()]),
            Whitening::On => self.scores_divided_by(genotypes, &self.whitening_factors()),
        }
    }

    /// Scores divided by the singular values: for the samples that were fitted, unit eigenvectors of their relationship matrix.
    /// Other samples get coordinates on the same scale. A component without variance has scores of 0.
    pub fn sample_eigenvectors(&self, genotypes: &Genotypes) -> Result<Vec<f64>, Error> {
        let factors: Vec<f64> = self
            .singular_values()
            .into_iter()
            .enumerate()
            .map(|(i, s)| if s > 0.0 && self.summary.has_variance(i) { s } else { f64::INFINITY })
            .collect();
        self.scores_divided_by(genotypes, &factors)
    }

    /// Eigenvalues of the relationship matrix AAᵀ/d: nλ/d.
    pub fn relationship_eigenvalues(&self) -> Vec<f64> {
        let d = self.n_features() as f64;
        self.eigenvalues().iter().map(|x| x.max(0.0) * self.summary.weight / d).collect()
    }

    /// Whether A1 is the more frequent allele of each variant; not known, and `false`, where no mean is subtracted.
    pub fn a1_is_major(&self) -> Vec<bool> {
        let major = |mean: &[f64]| mean.iter().map(|mean| *mean > 1.0).collect();
        self.shift().map_or_else(|| vec![false; self.n_features()], major)
    }

    /// Weights of the rarer allele of each variant, k×d, row-major: components of length √d.
    pub fn variant_weights(&self) -> Vec<f64> {
        let (major, length) = (self.a1_is_major(), (self.n_features() as f64).sqrt());
        let weights = self.components().iter().zip(major.iter().cycle());
        weights.map(|(x, major)| if *major { -x * length } else { x * length }).collect()
    }

    fn scores_divided_by(&self, genotypes: &Genotypes, factors: &[f64]) -> Result<Vec<f64>, Error> {
        let (d, k) = (self.n_features(), self.n_components());
        if genotypes.n_cols() != d {
            return Err(Error::shape("variants", d, genotypes.n_cols()));
        }
        let own;
        let missing = if let Some(mean) = self.shift() {
            mean
        } else {
            own = ColumnStatistics::of_genotypes(genotypes)?;
            own.mean()
        };
        let rows = PackedRows::new(genotypes, self.shift(), self.scale(), missing);
        let v: Block = self.vectors();
        let mut scores = rows.product(&v);
        for row in scores.chunks_exact_mut(k.max(1)) {
            row.iter_mut().zip(factors).for_each(|(score, factor)| *score /= factor);
        }
        Ok(scores)
    }
}
