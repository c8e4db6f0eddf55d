//! How far a run has come, besides what its solver knows.

use super::stagnation::StagnationTest;
use crate::observe::Record;
use crate::{Archive, Block, Certificate, Error};

/// How far a run has come, besides what its solver knows.
#[derive(Default)]
pub(super) struct RunState {
    pub(super) history: Vec<Record>,
    /// The iterate with the smallest residual so far.
    pub(super) best: Option<(Block, Certificate)>,
    pub(super) stagnation: StagnationTest,
}

impl RunState {
    /// Whether a certificate is the best so far: by residuals, of which the bounds on rounding say nothing.
    pub(super) fn is_better(&self, certificate: &Certificate) -> bool {
        self.best.as_ref().is_none_or(|(_, best)| certificate.worst_measured() <= best.worst_measured())
    }

    /// Walks over everything but the history, which is no state: nothing depends on it.
    pub(super) fn archive(&mut self, d: usize, k: usize, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.part("stagnation", |archive| self.stagnation.archive(archive))?;
        let mut has_best = self.best.is_some();
        archive.flag("has_best", &mut has_best)?;
        if !has_best {
            self.best = None;
            return Ok(());
        }
        let (vectors, certificate) =
            self.best.get_or_insert_with(|| (Block::zeros(d, k), Certificate::blank()));
        archive.part("best", |archive| {
            archive.block("vectors", vectors)?;
            certificate.archive(k, archive)
        })
    }
}
