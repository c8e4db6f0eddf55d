//! Whether a fit in memory has the memory it needs, before anything large is allocated.
//!
//! The data, the column statistics and the vectors of the solver are counted as in [plans for rows on disk](super::on_disk). A covariance asked for by
//! name has a limit of its own.

use super::cost;
use super::on_disk::Facts;
use crate::Error;
use crate::config::FitConfig;
use crate::matrix::{Genotypes, Matrix};
use crate::solver::{AnchoredSizes, KrylovSizes, SolverKind};

impl FitConfig {
    /// Whether a fit of `matrix` keeps to the memory that is given.
    pub fn fits_memory(&self, matrix: &Matrix<'_>) -> bool {
        self.memory.is_none_or(|limit| self.bytes_needed(matrix) <= limit)
    }

    /// Bytes of the data, of statistics and of vectors.
    fn bytes_needed(&self, matrix: &Matrix<'_>) -> u64 {
        let facts = Facts::of_matrix(matrix);
        facts.bytes.saturating_add(self.bytes_beside(matrix, &facts))
    }

    /// Refuses a fit that would take more than the memory that is given.
    pub(crate) fn check_memory(&self, matrix: &Matrix<'_>) -> Result<(), Error> {
        let Some(limit) = self.memory else { return Ok(()) };
        let needed = self.bytes_needed(matrix);
        if needed <= limit {
            return Ok(());
        }
        let (n, d, k) = (matrix.n_rows(), matrix.n_cols(), self.k);
        let plural = if k == 1 { "" } else { "s" };
        let what = format!("{n} rows × {d} columns and the vectors of {k} component{plural}");
        let advice = "ask for fewer components, leave out columns that never occur, or allow more memory";
        Err(Error::Memory { what, needed, limit, advice: advice.to_owned() })
    }

    /// The same for the rows in memory of one of several ranks. Rank 0 holds the solver; the others multiply a block at a time.
    pub(crate) fn check_memory_of_rank(&self, shards: &[&Matrix<'_>], leads: bool) -> Result<(), Error> {
        let (Some(limit), Some(first)) = (self.memory, shards.first()) else { return Ok(()) };
        let rows: u64 = shards.iter().map(|shard| Facts::of_matrix(shard).bytes).sum();
        let facts = Facts::of_matrix(first);
        let beside = if leads {
            self.bytes_beside(first, &facts)
        } else {
            let block = KrylovSizes::suiting(self.k).block as u64;
            (4 * block + 9).saturating_mul(facts.vector())
        };
        let needed = rows.saturating_add(beside);
        if needed <= limit {
            return Ok(());
        }
        let n: usize = shards.iter().map(|shard| shard.n_rows()).sum();
        let what = format!("{n} rows × {} columns of this rank and its vectors", first.n_cols());
        let advice = "ask for fewer components, leave out columns that never occur, or allow more memory";
        Err(Error::Memory { what, needed, limit, advice: advice.to_owned() })
    }

    /// Bytes that a fit of packed genotypes takes beside their codes: vectors of `krylov`, which is chosen for them, the four values of each variant, a
    /// number a sample for each vector of a block, and weights.
    pub fn memory_beside_genotypes(&self, n: usize, d: usize) -> u64 {
        let sizes = KrylovSizes::suiting(self.k);
        let vectors = (2 * (sizes.memory + sizes.block) + 6 * sizes.block + 18) as u64;
        let of_samples = (n as u64).saturating_mul(8 * (sizes.block as u64 + 2));
        (d as u64).saturating_mul(8 * (vectors + 4)).saturating_add(of_samples)
    }

    /// The same for packed genotypes, with `beside` bytes for what is missing.
    pub(crate) fn check_memory_of_genotypes(&self, genotypes: &Genotypes, beside: u64) -> Result<(), Error> {
        let Some(limit) = self.memory else { return Ok(()) };
        let (n, d, k) = (genotypes.n_rows(), genotypes.n_cols(), self.k);
        let needed = self.memory_beside_genotypes(n, d).saturating_add(genotypes.memory() as u64);
        let needed = needed.saturating_add(beside);
        if needed <= limit {
            return Ok(());
        }
        let plural = if k == 1 { "" } else { "s" };
        let what = format!("{n} samples × {d} variants and the vectors of {k} component{plural}");
        let advice =
            "ask for fewer components, leave out variants in linkage disequilibrium, or allow more memory";
        Err(Error::Memory { what, needed, limit, advice: advice.to_owned() })
    }

    /// Bytes of statistics and vectors.
    fn bytes_beside(&self, matrix: &Matrix<'_>, facts: &Facts) -> u64 {
        let single = facts.needs(12 * facts.vector(), 3 * facts.vector());
        let needs = match self.solver {
            SolverKind::Auto | SolverKind::Krylov => {
                let sizes = cost::krylov_sizes(matrix, self.k);
                facts.krylov(sizes.block, sizes.memory)
            }
            SolverKind::Anchored => {
                let sizes = AnchoredSizes::suiting(matrix.n_rows(), self.k);
                facts.anchored(self.k, sizes.block, sizes.anchors)
            }
            SolverKind::LazySvd => facts.lazy_svd(self.k),
            SolverKind::CoordinatePower => facts.covariance(1),
            _ => single,
        };
        let workers = rayon::current_num_threads() as u64;
        needs.kept.saturating_add(needs.worker.saturating_mul(workers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Csr;

    #[test]
    fn a_fit_that_would_leave_the_limit_is_refused_with_its_numbers() {
        let x: Matrix =
            Csr::new(1 << 30, vec![0, 1, 2], vec![5, 1 << 29], vec![1.0_f32, 2.0]).unwrap().into();
        let config = FitConfig { memory: Some(1 << 30), threads: 1, ..FitConfig::default() };
        let said = config.fit(&x).unwrap_err().to_string();
        assert!(
            said.starts_with(
                "not enough memory: 2 rows × 1073741824 columns and the vectors of 1 component need"
            ),
            "{said}"
        );
        assert!(said.contains("and 1.0 GiB are allowed; ask for fewer"), "{said}");
        let small: Matrix = Csr::new(9, vec![0, 1, 2], vec![5, 8], vec![1.0_f32, 2.0]).unwrap().into();
        assert!(config.fit(&small).is_ok());
    }
}
