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
    /// VR-PCA in the projected form of the analysis.
    VrPcaProjected,
    /// VR Power+M.
    VrPowerM,
    /// VR HB Power.
    VrHbPower,
    /// Shift-and-invert power iteration with SVRG inside.
    ShiftInvertSvrg,
    /// Shift-and-invert power iteration with accelerated gradient descent inside.
    ShiftInvertAgd,
    /// Deflation with shift-and-invert inside.
    LazySvd,
    /// Riemannian gradient ascent with reduced variance.
    VrRiemannian,
    /// Coordinate-wise power iteration.
    CoordinatePower,
}

impl SolverKind {
    /// Every solver that computes, in the order of the documentation; [`Auto`](Self::Auto) chooses among them.
    pub const ALL: [Self; 15] = [
        Self::Covariance,
        Self::Krylov,
        Self::Anchored,
        Self::Power,
        Self::PowerM,
        Self::Oja,
        Self::VrPca,
        Self::VrPcaProjected,
        Self::VrPowerM,
        Self::VrHbPower,
        Self::ShiftInvertSvrg,
        Self::ShiftInvertAgd,
        Self::LazySvd,
        Self::VrRiemannian,
        Self::CoordinatePower,
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
            Self::VrPcaProjected => "vr-pca-projected",
            Self::VrPowerM => "vr-power-m",
            Self::VrHbPower => "vr-hb-power",
            Self::ShiftInvertSvrg => "shift-invert-svrg",
            Self::ShiftInvertAgd => "shift-invert-agd",
            Self::LazySvd => "lazy-svd",
            Self::VrRiemannian => "vr-riemannian",
            Self::CoordinatePower => "coordinate-power",
        }
    }

    /// Whether the solver finds more than one component.
    pub fn finds_many(self) -> bool {
        matches!(self, Self::Auto | Self::Covariance | Self::Krylov | Self::Anchored | Self::LazySvd)
    }

    /// Whether the solver has a step size η.
    pub fn needs_step_size(self) -> bool {
        self.has_positive_step() || self == Self::VrHbPower
    }

    /// Whether η may be any positive number, in units of 1/λ; the η of `vr-hb-power` lies in (0, 1].
    pub fn has_positive_step(self) -> bool {
        use SolverKind::{Oja, ShiftInvertSvrg, VrPca, VrPcaProjected, VrRiemannian};
        matches!(self, Oja | VrPca | VrPcaProjected | ShiftInvertSvrg | VrRiemannian)
    }

    /// Whether the solver has a momentum that follows from λ₂.
    pub fn has_momentum(self) -> bool {
        matches!(self, Self::PowerM | Self::VrPowerM | Self::VrHbPower)
    }

    /// Whether the solver draws mini-batches of a size, and has epochs of a length, that can be chosen.
    pub fn has_batches(self) -> bool {
        self.has_positive_step() || matches!(self, Self::VrPowerM | Self::VrHbPower)
    }

    /// Whether the solver holds C itself.
    pub fn forms_covariance(self) -> bool {
        matches!(self, Self::Covariance | Self::CoordinatePower)
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
