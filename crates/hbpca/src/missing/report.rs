//! What was done about missing values, and what is known of the result.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Completed, Missing};

/// What was done about the missing values of a fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissingReport {
    /// What was asked for.
    pub policy: Missing,
    /// Entries that were missing.
    pub entries: usize,
    /// Rows that had such.
    pub rows: usize,
    /// Rows that were left out.
    pub dropped: usize,
    /// What `em` ended with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stationary_point: Option<StationaryPoint>,
}

/// Where expectation–maximisation ended: the components are those of the completed matrix, as its certificate says, and one more round would change what was
/// filled in by no more than the distance. That is a stationary point, and nothing more: another start may lead to another one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StationaryPoint {
    /// Rounds made.
    pub rounds: usize,
    /// By how much one more round would change what was filled in: root mean square, in units of the root mean square entry of the prepared matrix.
    pub distance: f64,
    /// The distance that was asked for.
    pub tol: f64,
    /// The ridge.
    pub ridge: f64,
}

impl StationaryPoint {
    /// Whether the distance is what was asked for.
    pub fn is_reached(&self) -> bool {
        self.distance <= self.tol
    }
}

impl MissingReport {
    /// Of a completed matrix.
    pub(crate) fn of(completed: &Completed<'_>, policy: Missing) -> Self {
        let (entries, rows) = (completed.holes.len(), completed.holes.rows().len());
        Self { policy, entries, rows, dropped: completed.dropped, stationary_point: None }
    }
}

impl fmt::Display for MissingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, entries, rows, dropped, .. } = self;
        write!(f, "{entries} missing values in {rows} rows: ")?;
        match (policy, &self.stationary_point) {
            (Missing::DropRows, _) => write!(f, "{dropped} rows dropped"),
            (Missing::Mean, _) => write!(f, "filled with column means"),
            (Missing::Em, Some(StationaryPoint { rounds, distance, tol, .. })) => {
                if distance <= tol {
                    write!(
                        f,
                        "em ended at a stationary point after {rounds} rounds; one more would change {distance:.1e} of the spread"
                    )
                } else {
                    write!(
                        f,
                        "em stopped after {rounds} rounds; one more would change {distance:.1e} of the spread, {tol:.1e} was asked for"
                    )
                }
            }
            _ => write!(f, "{policy}"),
        }
    }
}
