//! The result: components, variances, and the maps between data and scores.

mod dimension;
mod distances;
mod genotypes;
mod holes;
mod likelihood;
mod null;
mod projection;
mod transform;

pub use dimension::most_likely_dimension;
pub use distances::Distances;
pub use likelihood::ProbabilisticPca;
pub use projection::Projection;
pub use transform::Whitening;

use serde::{Deserialize, Serialize};

use crate::columns::{Preprocessing, RowMap};
use crate::{Block, Error};

/// Principal components of a data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// k×d, row-major: one component a row, unit length, its entry of largest magnitude positive.
    components: Vec<f64>,
    summary: Summary,
    shift: Option<Vec<f64>>,
    scale: Option<Vec<f64>>,
    feature_names: Option<Vec<String>>,
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
    /// rᵢ of the certificate: C has an eigenvalue in \[λᵢ − rᵢ, λᵢ + rᵢ\].
    pub residuals: Vec<f64>,
    /// The part of every rᵢ that bounds the rounding of its image.
    pub image_rounding: f64,
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
        if summary.residuals.len() != k {
            return Err(Error::shape("residuals of the components", k, summary.residuals.len()));
        }
        projection::check_columns(d, shift.as_deref(), scale.as_deref())?;
        Ok(Self { components, summary, shift, scale, feature_names: None })
    }

    /// The same model, whose features have these names; refuses another number of them.
    pub fn with_feature_names(self, names: Option<Vec<String>>) -> Result<Self, Error> {
        match names {
            Some(names) if names.len() != self.summary.d => {
                Err(Error::shape("names of the columns", self.summary.d, names.len()))
            }
            feature_names => Ok(Self { feature_names, ..self }),
        }
    }

    /// k, the number of components.
    pub fn n_components(&self) -> usize {
        self.summary.eigenvalues.len()
    }

    /// d, the number of features.
    pub fn n_features(&self) -> usize {
        self.summary.d
    }

    /// The names of the features, in the order of the columns, where the data had them.
    pub fn feature_names(&self) -> Option<&[String]> {
        self.feature_names.as_deref()
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

    /// The eigenvalues as variances: what rounding left below 0 is 0.
    fn variances(&self) -> impl Iterator<Item = f64> {
        self.summary.eigenvalues.iter().map(|x| x.max(0.0))
    }

    /// Variances with denominator n − 1, as scikit-learn's `explained_variance_`; 0 for a single row.
    pub fn explained_variance(&self) -> Vec<f64> {
        self.variances().map(|x| x * self.sample_factor()).collect()
    }

    /// Share of the total variance of the data, whatever k is; 0 where the data has no variance.
    pub fn explained_variance_ratio(&self) -> Vec<f64> {
        let total = self.summary.total_variance;
        self.variances().map(|x| if total > 0.0 { x / total } else { 0.0 }).collect()
    }

    /// Singular values of the prepared data matrix: √(n·λᵢ).
    pub fn singular_values(&self) -> Vec<f64> {
        self.variances().map(|x| (x * self.summary.weight).sqrt()).collect()
    }

    /// Mean of the variances (denominator n − 1) left out: the noise of probabilistic PCA; 0 when nothing is left out.
    ///
    /// The trace of C is the sum of q = min(n, d) eigenvalues, each known to the rounding ρ of an image: what λ₁, …, λ_k
    /// leave of it is nothing up to qρ.
    pub fn noise_variance(&self) -> f64 {
        let most = self.summary.n.min(self.summary.d);
        let left = most.saturating_sub(self.n_components());
        let rest = self.summary.total_variance - self.summary.eigenvalues.iter().sum::<f64>();
        if left == 0 || rest <= most as f64 * self.summary.image_rounding {
            return 0.0;
        }
        rest * self.sample_factor() / left as f64
    }

    /// What is subtracted from every row: the means, or the minima, or nothing.
    pub fn shift(&self) -> Option<&[f64]> {
        self.shift.as_deref()
    }

    /// What every column is divided by, or nothing.
    pub fn scale(&self) -> Option<&[f64]> {
        self.scale.as_deref()
    }

    /// The same model of n rows: those that were left out count for nothing.
    pub(crate) fn count_rows(&mut self, n: usize) {
        self.summary.n = n;
    }

    /// Whether there is an n − 1 to divide by: the rows weigh more than 1. Without it variances with that denominator are 0.
    pub fn has_sample_variance(&self) -> bool {
        self.summary.weight > 1.0
    }

    /// n/(n − 1).
    fn sample_factor(&self) -> f64 {
        let weight = self.summary.weight;
        if self.has_sample_variance() { weight / (weight - 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;
    use crate::{ColumnStatistics, Dense, FitConfig, Matrix};

    /// A model of n rows with the given eigenvalues of C along the axes.
    fn model(n: usize, eigenvalues: &[f64], total_variance: f64, d: usize) -> Model {
        let k = eigenvalues.len();
        let mut components = vec![0.0; k * d];
        (0..k).for_each(|i| components[i * d + i] = 1.0);
        let summary = Summary {
            n,
            d,
            weight: n as f64,
            preprocessing: Preprocessing::NONE,
            eigenvalues: eigenvalues.to_vec(),
            residuals: vec![0.0; k],
            image_rounding: 0.0,
            total_variance,
        };
        Model::from_parts(components, summary, None, None).unwrap()
    }

    #[test]
    fn the_entry_of_largest_magnitude_is_positive_the_first_of_them_where_two_agree() {
        let x: Matrix = Dense::new(vec![1.0; 6], 2, 3).unwrap().into();
        let map = Preprocessing::NONE.row_map(&ColumnStatistics::new(&x).unwrap());
        let vectors = Block::from_columns(&[[0.1, -0.9, 0.3], [-0.5, 0.5, 0.1], [0.2, 0.3, 0.9]]).unwrap();
        let summary = model(2, &[3.0, 2.0, 1.0], 6.0, 3).summary;
        let model = Model::new(&vectors, summary, &map).unwrap();
        assert_eq!(model.component(0), [-0.1, 0.9, -0.3]);
        assert_eq!(model.component(1), [0.5, -0.5, -0.1]);
        assert_eq!(model.component(2), [0.2, 0.3, 0.9]);
        assert_eq!(model.vectors().column(1), model.component(1));
        assert_eq!(model.components().len(), 9);
    }

    #[test]
    fn variances_have_denominator_n_minus_one_and_singular_values_n() {
        let model = model(5, &[8.0, 4.0], 20.0, 4);
        assert_eq!(model.explained_variance(), [10.0, 5.0]);
        assert_eq!(model.singular_values(), [40.0_f64.sqrt(), 20.0_f64.sqrt()]);
    }

    #[test]
    fn what_rounding_leaves_below_zero_is_no_variance() {
        let model = model(5, &[8.0, -1e-15], 8.0, 4);
        assert_eq!(model.explained_variance(), [10.0, 0.0]);
        assert_eq!(model.explained_variance_ratio(), [1.0, 0.0]);
        assert_eq!(model.singular_values(), [40.0_f64.sqrt(), 0.0]);
    }

    #[test]
    fn ratios_are_against_the_variance_of_the_data_whatever_k_is() {
        assert_eq!(model(5, &[8.0, 4.0], 20.0, 4).explained_variance_ratio(), [0.4, 0.2]);
        assert_eq!(model(5, &[8.0], 20.0, 4).explained_variance_ratio(), [0.4]);
        assert_eq!(model(5, &[0.0], 0.0, 4).explained_variance_ratio(), [0.0]);
    }

    #[test]
    fn noise_is_the_mean_of_the_variances_left_out() {
        // 20 − 12 over the 2 directions left of 4, times 5/4.
        assert_eq!(model(5, &[8.0, 4.0], 20.0, 4).noise_variance(), 5.0);
        // With 3 rows there are 3 directions: one is left, times 3/2.
        assert_eq!(model(3, &[8.0, 4.0], 20.0, 4).noise_variance(), 12.0);
        assert_eq!(model(9, &[8.0, 4.0], 12.0, 2).noise_variance(), 0.0);
        // Rounding may make the rest negative; a variance is not.
        assert_eq!(model(5, &[8.0], 8.0 - 1e-15, 4).noise_variance(), 0.0);
    }

    #[test]
    fn what_rounding_leaves_of_the_trace_is_no_noise() {
        // 4 eigenvalues, each known to 2⁻²⁰: a rest of 4·2⁻²⁰ may be 0, one of 5·2⁻²⁰ is not.
        let unit = 2.0_f64.powi(-20);
        let noise = |rest: f64| {
            let mut model = model(5, &[8.0], 8.0 + rest, 4);
            model.summary.image_rounding = unit;
            model.noise_variance()
        };
        assert_eq!((noise(4.0 * unit), noise(5.0 * unit)), (0.0, 5.0 * unit * 1.25 / 3.0));
    }

    #[test]
    fn noise_is_the_mean_of_the_dense_eigenvalues_left_out() {
        // Columns of 6 rows that are orthogonal and have the mean 0: XᵀX/(n − 1) is diagonal, with 3.6, 1.6 and 0.4.
        let rows = [
            [3.0, 0.0, 0.0],
            [-3.0, 0.0, 0.0],
            [0.0, 2.0, 0.0],
            [0.0, -2.0, 0.0],
            [0.0, 0.0, 1.0],
            [0.0, 0.0, -1.0],
        ];
        let x: Matrix = Dense::new(rows.as_flattened().to_vec(), 6, 3).unwrap().into();
        for (k, want) in [(1, 1.0), (2, 0.4), (3, 0.0)] {
            let fit = FitConfig { k, threads: 1, ..FitConfig::default() }.fit(&x).unwrap();
            // Each of the 3 eigenvalues is known to its residual.
            let tolerance = 3.0 * 1.2 * fit.certificate.residuals.iter().sum::<f64>();
            assert!((fit.model.noise_variance() - want).abs() <= tolerance, "k = {k}");
        }
        // Rank 1 in 3 columns: two components leave rounding, which is no noise.
        let x: Matrix =
            Dense::new((0..30).map(|i| f64::from(i / 3) * [0.1, 0.7, 0.3][i as usize % 3]).collect(), 10, 3)
                .unwrap()
                .into();
        let fit = FitConfig { k: 2, threads: 1, ..FitConfig::default() }.fit(&x).unwrap();
        assert_eq!(fit.model.noise_variance(), 0.0);
    }

    #[test]
    fn one_row_has_no_sample_variance() {
        let x: Matrix = Dense::new(vec![3.0, 4.0], 1, 2).unwrap().into();
        let config = FitConfig { preprocessing: Preprocessing::NONE, threads: 1, ..FitConfig::default() };
        let model = config.fit(&x).unwrap().model;
        assert!((model.eigenvalues()[0] - 25.0).abs() < 1e-13);
        assert_eq!((model.explained_variance(), model.noise_variance()), (vec![0.0], 0.0));
        assert!((model.singular_values()[0] - 5.0).abs() < 1e-14);
    }

    #[test]
    fn features_have_names_or_none_and_as_many_as_there_are() {
        let model = model(5, &[8.0], 20.0, 2);
        assert_eq!(model.feature_names(), None);
        let names = ["a", "b"].map(String::from).to_vec();
        let named = model.clone().with_feature_names(Some(names.clone())).unwrap();
        assert_eq!(named.feature_names(), Some(&names[..]));
        assert_ne!(named, model);
        assert_eq!(named.with_feature_names(None).unwrap(), model);
        let error = model.with_feature_names(Some(vec!["a".into()])).unwrap_err();
        assert_eq!(error.to_string(), "names of the columns: 1 given where 2 are needed");
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let summary = model(5, &[8.0, 4.0], 20.0, 3).summary;
        let refused = |components: usize, shift: Option<usize>, scale: Option<usize>, summary: &Summary| {
            let zeros = |len: usize| vec![0.0; len];
            Model::from_parts(zeros(components), summary.clone(), shift.map(zeros), scale.map(zeros))
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refused(5, None, None, &summary),
            "numbers in 2 components of 3 columns: 5 given where 6 are needed"
        );
        assert_eq!(
            refused(6, Some(2), None, &summary),
            "columns to be subtracted: 2 given where 3 are needed"
        );
        assert_eq!(refused(6, None, Some(4), &summary), "columns to be divided: 4 given where 3 are needed");
        let other = Summary { residuals: vec![0.0; 3], ..summary.clone() };
        assert_eq!(refused(6, None, None, &other), "residuals of the components: 3 given where 2 are needed");
        let none = Summary { eigenvalues: vec![], ..summary.clone() };
        assert_eq!(
            refused(0, None, None, &none),
            "numbers in 0 components of 3 columns: 0 given where 0 are needed"
        );
        let huge = Summary { d: usize::MAX, ..summary };
        assert!(refused(6, None, None, &huge).starts_with("numbers in 2 components"));
    }
}
