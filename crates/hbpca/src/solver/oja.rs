//! Oja's rule in mini-batches: the stochastic ancestor.
//!
//! ```text
//!    w ← a unit vector, random or given
//!    for t = 0, 1, 2, …
//! 1      if m divides t: g ← Cw                 one full pass, for the certificate alone
//! 2      sample S_t
//! 3      w ← w + η_t C_S w,   η_t = η / (1 + t/m)
//! 4      w ← w / ‖w‖
//! ```
//!
//! Source: Oja 1982. Deviations: mini-batches instead of single rows (with a batch of one row it is the original); η_t
//! falls like 1/t after the first m steps, as the convergence theory asks for. Choose it to see why variance reduction was
//! invented. Cost of a step (m batches): m|S|/n passes, and one full pass for the look that certifies it, since no
//! exact image comes for free.

use super::iterate::Iterate;
use super::{Epoch, Pairs, Solver, StepParameters, check_positive_step, combine, normalize};
use crate::operator::{CovarianceOperator, Products};
use crate::policy::Start;
use crate::{Archive, Error, Sampler};

/// w ← w + η_t C_S w with a diminishing step.
#[derive(Clone, Debug)]
pub struct Oja {
    eta: f64,
    epoch: Epoch,
    sampler: Sampler,
    /// t, steps done.
    t: usize,
    /// w, and g = C_S w within a step, Cw after a look.
    iterate: Iterate,
}

impl Oja {
    /// First step size `eta` > 0; `epoch` batches from `sampler` make one step.
    pub fn new(d: usize, eta: f64, epoch: Epoch, sampler: Sampler, start: &Start) -> Result<Self, Error> {
        check_positive_step(eta)?;
        Ok(Self { eta, epoch, sampler, t: 0, iterate: Iterate::new(d, start)? })
    }

    fn eta_t(&self) -> f64 {
        self.eta / (1.0 + self.t as f64 / self.epoch.length() as f64)
    }
}

impl Solver for Oja {
    fn name(&self) -> &'static str {
        "oja"
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.iterate.look(operator) // 1
    }

    fn pairs(&mut self) -> Pairs<'_> {
        self.iterate.pairs()
    }

    fn step(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        for _ in 0..self.epoch.length() {
            let eta_t = self.eta_t();
            let rows = self.sampler.draw(); // 2
            let Iterate { w, g, .. } = &mut self.iterate;
            operator.apply_batch(rows, w, g)?;
            combine(w, 1.0, eta_t, g); // 3
            normalize(w); // 4
            self.t += 1;
        }
        Ok(())
    }

    fn passes_ahead(&self, n_rows: usize) -> f64 {
        1.0 + self.epoch.length() as f64 * self.sampler.batch() as f64 / n_rows as f64
    }

    fn parameters(&self) -> StepParameters {
        StepParameters { eta: Some(self.eta_t()), ..StepParameters::default() }
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.size("t", &mut self.t)?;
        archive.part("iterate", |archive| self.iterate.archive(archive))?;
        archive.part("sampler", |archive| self.sampler.archive(archive))
    }
}
