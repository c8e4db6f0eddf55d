//! What a run is doing, as typed events for observers, which may stop it.

use std::fmt;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::{Block, Certificate, RowMap};

/// One line of the history: the state at an outer iterate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// Rows read so far, divided by n.
    pub passes: f64,
    /// Complete passes so far.
    pub full_passes: u64,
    /// Seconds since the start.
    pub seconds: f64,
    /// θᵢ of the component that is furthest from its tolerance: the one with the largest ρᵢ/θᵢ.
    pub theta: f64,
    /// Its residual ρᵢ.
    pub residual: f64,
    /// Step size in force.
    pub eta: Option<f64>,
    /// Momentum in force.
    pub beta: Option<f64>,
    /// λ₂ or its estimate.
    pub lambda2: Option<f64>,
    /// 1 − (wᵀu₁)² against a reference vector, where one was given.
    pub error: Option<f64>,
}

/// How a run ended. Only [`Converged`](Self::Converged) claims that the tolerance was met; all others still carry the
/// best answer and its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Outcome {
    /// ρᵢ ≤ tol·θᵢ for every component, or no variance to rounding.
    Converged,
    /// Passes or seconds were used up.
    Budget,
    /// The residual is down at the rounding of the images and still above the tolerance: no step can help.
    Stagnated,
    /// An observer or a [`CancelToken`](crate::CancelToken) asked to stop.
    Interrupted,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Converged => "converged",
            Self::Budget => "budget",
            Self::Stagnated => "stagnated",
            Self::Interrupted => "interrupted",
        })
    }
}

/// What happens in a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The first step is about to be taken.
    #[non_exhaustive]
    Started {
        /// The solver's name.
        solver: &'a str,
        /// Rows.
        n: usize,
        /// Columns.
        d: usize,
        /// Components sought.
        k: usize,
    },
    /// The run goes on from a checkpoint.
    #[non_exhaustive]
    Resumed {
        /// The history so far, whose last iterate is not told again.
        history: &'a [Record],
    },
    /// An outer iterate was looked at.
    #[non_exhaustive]
    Looked {
        /// The new line of the history.
        record: &'a Record,
        /// Its certificate; none where the solver knew beforehand that it would not hold, the run goes on, and no observer
        /// [wants every iterate](Observer::wants_iterates).
        certificate: Option<&'a Certificate>,
        /// The iterate itself: d×k, orthonormal columns; there where the certificate is.
        vectors: Option<&'a Block>,
    },
    /// The run is over.
    #[non_exhaustive]
    Finished {
        /// How it ended.
        outcome: Outcome,
    },
}

/// Watches a run. Any `FnMut(&Event) -> ControlFlow<()>` is one.
pub trait Observer {
    /// Sees an event; `ControlFlow::Break` stops the run at this iterate.
    fn notify(&mut self, event: &Event<'_>) -> ControlFlow<()>;

    /// Whether every iterate shall be formed and certified for it, also where that costs a product with a whole basis.
    fn wants_iterates(&self) -> bool {
        false
    }

    /// Sees how rows are prepared and what they weigh together, before the first event of a fit: with these and an iterate's
    /// vectors it can put a [`Model`](crate::Model) together.
    fn prepared(&mut self, _map: &RowMap, _weight: f64) {}
}

impl<F: FnMut(&Event<'_>) -> ControlFlow<()>> Observer for F {
    fn notify(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_read_as_the_command_line_prints_them() {
        let all = [Outcome::Converged, Outcome::Budget, Outcome::Stagnated, Outcome::Interrupted];
        let names = all.map(|outcome| outcome.to_string());
        assert_eq!(names, ["converged", "budget", "stagnated", "interrupted"]);
    }
}
