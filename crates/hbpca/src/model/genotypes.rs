//! Scores of packed genotypes, and numbers as geneticists know them.

use super::{Model, Whitening};
use crate::matrix::{FilledHoles, Genotypes};
use crate::missing::HolesInRows;
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
        self.transform_genotypes_with_holes(genotypes, whitening, HolesInRows::Mean)
    }

    /// The same, with another rule for samples of which something is missing.
    pub fn transform_genotypes_with_holes(
        &self,
        genotypes: &Genotypes,
        whitening: Whitening,
        rule: HolesInRows,
    ) -> Result<Vec<f64>, Error> {
        let factors = match whitening {
            Whitening::Off => vec![1.0; self.n_components()],
            Whitening::On => self.whitening_factors(),
        };
        self.scores_divided_by(genotypes, &factors, rule)
    }

    /// Scores divided by the singular values: for the samples that were fitted, unit eigenvectors of their relationship matrix.
    /// Other samples get coordinates on the same scale. A component without variance has scores of 0.
    pub fn sample_eigenvectors(&self, genotypes: &Genotypes, rule: HolesInRows) -> Result<Vec<f64>, Error> {
        let factors: Vec<f64> = self
            .singular_values()
            .into_iter()
            .enumerate()
            .map(|(i, s)| if s > 0.0 && self.summary.has_variance(i) { s } else { f64::INFINITY })
            .collect();
        self.scores_divided_by(genotypes, &factors, rule)
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

    fn scores_divided_by(
        &self,
        genotypes: &Genotypes,
        factors: &[f64],
        rule: HolesInRows,
    ) -> Result<Vec<f64>, Error> {
        self.check_variants(genotypes)?;
        let mut scores = match rule {
            HolesInRows::LeastSquares { ridge } => {
                let holes = FilledHoles::of(genotypes, &vec![0.0; self.n_features()])?;
                self.least_squares_scores(genotypes, &holes, ridge)?
            }
            _ => self.scores_with_means(genotypes)?,
        };
        let k = self.n_components().max(1);
        if matches!(rule, HolesInRows::Refused | HolesInRows::Nothing) {
            let missing = genotypes.missing()?.samples;
            if let (HolesInRows::Refused, Some(&row)) = (rule, missing.first()) {
                let column = genotypes.first_missing_of(row)?.unwrap_or_default();
                return Err(Error::NotFinite { row, column, value: f64::NAN });
            }
            missing.iter().for_each(|&l| scores[l * k..(l + 1) * k].fill(f64::NAN));
        }
        for row in scores.chunks_exact_mut(k) {
            row.iter_mut().zip(factors).for_each(|(score, factor)| *score /= factor);
        }
        Ok(scores)
    }

    fn scores_with_means(&self, genotypes: &Genotypes) -> Result<Vec<f64>, Error> {
        let own;
        let missing = if let Some(mean) = self.shift() {
            mean
        } else {
            own = ColumnStatistics::of_genotypes(genotypes)?;
            own.mean()
        };
        PackedRows::new(genotypes, self.shift(), self.scale(), missing).product(&self.vectors())
    }

    /// z of every sample, n×k: least squares on what it has.
    pub(crate) fn least_squares_scores(
        &self,
        genotypes: &Genotypes,
        holes: &FilledHoles,
        ridge: f64,
    ) -> Result<Vec<f64>, Error> {
        self.check_variants(genotypes)?;
        let v: Block = self.vectors();
        let mut z = PackedRows::of_what_is_there(genotypes, self.shift(), self.scale()).product(&v)?;
        self.projection(Whitening::Off).solve_samples(&mut z, holes, ridge)?;
        Ok(z)
    }

    fn check_variants(&self, genotypes: &Genotypes) -> Result<(), Error> {
        let (d, found) = (self.n_features(), genotypes.n_cols());
        if found == d { Ok(()) } else { Err(Error::shape("variants", d, found)) }
    }
}
