//! Scores and distances of the rows, and which of them are drawn.

use hbpca::model::Distances;
use hbpca::{Model, Whitening};

use super::DataSet;
use crate::LabError;
use crate::colouring::Colouring;

/// Rows drawn at most; more would only blacken the page.
const MOST_ROWS: usize = 4000;
/// The farthest rows are always drawn.
const FARTHEST: usize = 100;

/// The rows of a report.
pub(super) struct Rows {
    /// n×k, row-major.
    pub(super) scores: Vec<f64>,
    pub(super) k: usize,
    pub(super) distances: Distances,
    /// The rows that are drawn, ascending.
    pub(super) drawn: Vec<usize>,
    /// The rows beyond a cutoff, the farthest first.
    pub(super) outliers: Vec<usize>,
    pub(super) colouring: Option<Colouring>,
}

impl Rows {
    pub(super) fn of(model: &Model, data: &DataSet<'_>) -> Result<Self, LabError> {
        let scores = model.transform(data.matrix, Whitening::Off)?;
        let distances = model.distances(data.matrix, &scores)?;
        let n = data.matrix.n_rows();
        let mut outliers: Vec<usize> = (0..n).filter(|l| distances.is_outlier(*l)).collect();
        outliers.sort_by(|a, b| distances.excess(*b).total_cmp(&distances.excess(*a)).then(a.cmp(b)));
        let drawn = drawn(n, &outliers);
        let colouring = data.labels.map(Colouring::of);
        Ok(Self { scores, k: model.n_components(), distances, drawn, outliers, colouring })
    }

    pub(super) fn n(&self) -> usize {
        self.scores.len() / self.k
    }
}

/// All rows, or rows at even steps with the farthest besides.
fn drawn(n: usize, outliers: &[usize]) -> Vec<usize> {
    if n <= MOST_ROWS {
        return (0..n).collect();
    }
    let mut drawn: Vec<usize> = (0..n).step_by(n.div_ceil(MOST_ROWS)).collect();
    drawn.extend(outliers.iter().take(FARTHEST));
    drawn.sort_unstable();
    drawn.dedup();
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_are_thinned_and_the_farthest_stay() {
        assert_eq!(drawn(3, &[2]), [0, 1, 2]);
        let few = drawn(10_000, &[7, 5]);
        assert!(
            few.len() <= MOST_ROWS + FARTHEST && few.contains(&7) && few.contains(&5) && few.contains(&9999)
        );
    }
}
