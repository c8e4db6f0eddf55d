//! The solvers by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;

/// The solvers by the names users type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SolverKind {
    /// The cheapest of `covariance`, `krylov` and `anchored` for the data.
    Auto,
    /// Form C in one pass, dense eigen-solve.
    Covariance,
    /// Block Lanczos with thick restart.
    Krylov,
    /// Anchored block VR HB Power.
    Anchored,
    /// Power iteration.
    Power,
    /// Power iteration with momentum.
    PowerM,
    /// Oja's rule.
    Oja,
    /// VR-PCA.
    VrPca,
    /// VR Power+M.
    VrPowerM,
    /// VR HB Power.
    VrHbPower,
}

impl SolverKind {
    /// Every solver that computes, in the order of the documentation; [`Auto`](Self::Auto) chooses among them.
    pub const ALL: [Self; 9] = [
        Self::Covariance,
        Self::Krylov,
        Self::Anchored,
        Self::Power,
        Self::PowerM,
        Self::Oja,
        Self::VrPca,
        Self::VrPowerM,
        Self::VrHbPower,
    ];

    /// The name users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Covariance => "covariance",
            Self::Krylov => "krylov",
            Self::Anchored => "anchored",
            Self::Power => "power",
            Self::PowerM => "power-m",
            Self::Oja => "oja",
            Self::VrPca => "vr-pca",
            Self::VrPowerM => "vr-power-m",
            Self::VrHbPower => "vr-hb-power",
        }
    }

    /// Whether the solver finds more than one component.
    pub fn finds_many(self) -> bool {
        matches!(self, Self::Auto | Self::Covariance | Self::Krylov | Self::Anchored)
    }

    /// Whether the solver has a step size η.
    pub fn needs_step_size(self) -> bool {
        matches!(self, Self::Oja | Self::VrPca | Self::VrHbPower)
    }
}

impl fmt::Display for SolverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SolverKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let known = || [Self::Auto].into_iter().chain(Self::ALL);
        known().find(|kind| kind.name() == text).ok_or_else(|| {
            let names: Vec<_> = known().map(Self::name).collect();
            Error::parameter("solver", text, format!("choose one of {}", names.join(", ")))
        })
    }
}
