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
    /// The iterate that a run returns whose time is up in the middle of what follows.
    pub(super) kept: Option<(Block, Certificate)>,
    /// The longest time from look to look, in seconds, and when the last one was.
    pub(super) longest: f64,
    pub(super) looked_at: f64,
}

impl RunState {
    /// Takes note of when a look was made.
    pub(super) fn look_at(&mut self, seconds: f64) {
        self.longest = self.longest.max(seconds - self.looked_at);
        self.looked_at = seconds;
    }

    /// Whether what follows a look may not be over in time: steps take up to twice as long as the longest so far.
    pub(super) fn may_run_out_of_time(&self, max_seconds: f64) -> bool {
        max_seconds.is_finite() && self.looked_at + 2.0 * self.longest >= max_seconds
    }

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
