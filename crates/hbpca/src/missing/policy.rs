//! What is done about missing values.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::columns::Centering;

/// What becomes of missing values in the rows of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Missing {
    /// They are refused.
    #[default]
    Error,
    /// Rows that have one are left out.
    DropRows,
    /// Each is the mean of what is there in its column.
    Mean,
    /// Each is what the components say of it: expectation–maximisation of rank k.
    Em,
}

impl Missing {
    /// All, in the order in which users see them.
    pub const ALL: [Self; 4] = [Self::Error, Self::DropRows, Self::Mean, Self::Em];

    /// The name users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::DropRows => "drop-rows",
            Self::Mean => "mean",
            Self::Em => "em",
        }
    }

    /// What becomes of holes in rows that are transformed by a model of rows treated so. The mean of a column is known where it is subtracted.
    pub fn in_new_rows(self, centering: Centering, ridge: f64) -> Result<HolesInRows, Error> {
        Ok(match self {
            Self::Error => HolesInRows::Refused,
            Self::DropRows => HolesInRows::Nothing,
            Self::Em => HolesInRows::LeastSquares { ridge },
            Self::Mean if centering == Centering::Mean => HolesInRows::Mean,
            Self::Mean => {
                let advice =
                    "a model without centring knows no means: choose em, or fill in the values first";
                return Err(Error::parameter("missing", "mean", advice));
            }
        })
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Missing {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|missing| missing.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::parameter("missing", format!("{text:?}"), format!("choose one of {names}"))
        })
    }
}

/// What becomes of a row with holes when it is transformed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum HolesInRows {
    /// The first hole is an error.
    Refused,
    /// Its scores are missing: NaN.
    Nothing,
    /// A hole is the mean. A row with nothing in it has the scores of the mean, 0.
    Mean,
    /// Its scores z minimise ‖a − Uz‖² + ridge·‖z‖² over what it has of a; where that leaves a choice, the shortest. A row with nothing in it has
    /// the scores 0.
    LeastSquares {
        /// Weight of the length of the scores.
        ridge: f64,
    },
}

/// When expectation–maximisation stops, and what it adds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmLimits {
    /// The largest [distance](super::StationaryPoint::distance) from a fixed point.
    pub tol: f64,
    /// Rounds after which it stops, fixed point or not.
    pub max_rounds: usize,
    /// Scores minimise ‖a − Uz‖² + ridge·‖z‖², which draws what is filled in towards the mean; none where it is 0.
    pub ridge: f64,
}

impl Default for EmLimits {
    fn default() -> Self {
        Self { tol: 1e-6, max_rounds: 1000, ridge: 0.0 }
    }
}

impl EmLimits {
    /// Refuses limits under which no run makes sense.
    pub fn check(&self) -> Result<(), Error> {
        if !(self.tol > 0.0 && self.tol < 1.0) {
            return Err(Error::parameter("em tol", self.tol, "the distance lies between 0 and 1; try 1e-6"));
        }
        if self.max_rounds == 0 {
            return Err(Error::parameter("em rounds", 0, "at least one round is needed; try 1000"));
        }
        if !(self.ridge >= 0.0 && self.ridge.is_finite()) {
            let advice = "a ridge is finite and not negative; 0 switches it off";
            return Err(Error::parameter("em ridge", self.ridge, advice));
        }
        Ok(())
    }
}
