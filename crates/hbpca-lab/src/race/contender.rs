//! A contender: a solver, and where its momentum's λ₂ comes from.

use std::fmt;
use std::str::FromStr;

use hbpca::SolverKind;
use serde::{Deserialize, Serialize};

use crate::LabError;

/// A solver in a race, written `solver`, `solver:oracle`, `solver:adaptive` or `solver:dynamic`, with `:bounded` behind it for steps of at most 1 and `:fixed` for a
/// fixed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Contender {
    /// The solver.
    pub solver: SolverKind,
    /// Where λ₂ comes from; of no meaning for solvers without momentum.
    pub lambda2: Lambda2,
    /// Where η comes from; of no meaning for solvers without one.
    pub step: Step,
}

/// Where a step size comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Step {
    /// Searched.
    #[default]
    Searched,
    /// Searched among those of at most 1.
    Bounded,
    /// x = [`FIXED_X`], whatever the batch.
    Fixed,
}

/// The step of contenders with a fixed one, on the scale of their solver.
pub const FIXED_X: f64 = 0.1;

/// Where the momentum's λ₂ comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lambda2 {
    /// Estimated from the iterates, at no cost.
    #[default]
    Adaptive,
    /// From the rate at which the residual falls, at no cost.
    Dynamic,
    /// The true value, which is not known in practice.
    Oracle,
}

/// On which scale a step size is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepScale {
    /// The solver has no step size to choose.
    None,
    /// w + ηg: any η > 0, searched over x = ηλ₁.
    Plain,
    /// (1−η)w + ηg: η in (0, 1], searched over x = ηλ₁/(1−η), which is λ₁ over the shift of C.
    HeavyBall,
}

impl Contender {
    /// The solver's name and, where it matters, the source of λ₂.
    pub fn id(self) -> String {
        let id = match (self.has_momentum(), self.lambda2) {
            (false, _) => self.solver.name().to_owned(),
            (true, Lambda2::Adaptive) => format!("{}:adaptive", self.solver),
            (true, Lambda2::Dynamic) => format!("{}:dynamic", self.solver),
            (true, Lambda2::Oracle) => format!("{}:oracle", self.solver),
        };
        match self.step {
            Step::Searched => id,
            Step::Bounded => id + ":bounded",
            Step::Fixed => id + ":fixed",
        }
    }

    /// The name on figures; the paper's where it has one.
    pub fn label(self) -> String {
        let label = match (self.solver.name(), self.lambda2) {
            ("power", _) => "Power",
            ("power-m", Lambda2::Oracle) => "Power+M",
            ("power-m", Lambda2::Adaptive) => "Power+M (adaptive)",
            ("power-m", Lambda2::Dynamic) => "Power+M (dynamic)",
            ("oja", _) => "Oja",
            ("vr-pca", _) => "VR-PCA",
            ("vr-pca-projected", _) => "VR-PCA (projected)",
            ("vr-power-m", Lambda2::Oracle) => "VR Power+M",
            ("vr-power-m", Lambda2::Adaptive) => "VR Power+M (adaptive)",
            ("vr-power-m", Lambda2::Dynamic) => "VR Power+M (dynamic)",
            ("vr-hb-power", Lambda2::Oracle) => "VR HB Power OM",
            ("vr-hb-power", Lambda2::Adaptive) => "VR HB Power AM",
            ("vr-hb-power", Lambda2::Dynamic) => "VR HB Power DM",
            ("shift-invert-svrg", _) => "Shift-and-invert SVRG",
            ("shift-invert-agd", _) => "Shift-and-invert AGD",
            ("lazy-svd", _) => "LazySVD",
            ("vr-riemannian", _) => "Riemannian SVRG",
            ("coordinate-power", _) => "Coordinate-wise power",
            ("krylov", _) => "Krylov (block Lanczos)",
            ("anchored", _) => "Anchored block VR HB",
            ("covariance", _) => "Covariance",
            (other, _) => other,
        };
        match self.step {
            Step::Searched => label.to_owned(),
            Step::Bounded => format!("{label}, η ≤ 1"),
            Step::Fixed => format!("{label}, x = {FIXED_X}"),
        }
    }

    /// The scale of its step size.
    pub fn step_scale(self) -> StepScale {
        match self.solver {
            SolverKind::VrHbPower => StepScale::HeavyBall,
            solver if solver.has_positive_step() => StepScale::Plain,
            _ => StepScale::None,
        }
    }

    /// Whether λ₂ enters.
    pub fn has_momentum(self) -> bool {
        self.solver.has_momentum()
    }

    /// Whether it can race on data of so many columns: C itself of more would take longer to form than all other races.
    pub fn suits(self, columns: usize) -> bool {
        self.solver != SolverKind::CoordinatePower || columns <= 2048
    }

    /// Whether |S| and m enter; the anchored solver chooses its own.
    pub fn has_batches(self) -> bool {
        self.solver.has_batches()
    }
}

impl StepScale {
    /// η for x on this scale; x = ∞ is η = 1 for a heavy ball.
    pub fn eta(self, x: f64, lambda1: f64) -> f64 {
        match self {
            Self::None | Self::Plain => x / lambda1,
            Self::HeavyBall if x.is_infinite() => 1.0,
            Self::HeavyBall => x / (x + lambda1),
        }
    }

    /// x for η.
    pub fn x(self, eta: f64, lambda1: f64) -> f64 {
        match self {
            Self::None | Self::Plain => eta * lambda1,
            Self::HeavyBall => eta * lambda1 / (1.0 - eta),
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id())
    }
}

impl FromStr for Contender {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let (mut lambda2, mut step) = (Lambda2::Adaptive, Step::Searched);
        for word in words {
            match word {
                "adaptive" => lambda2 = Lambda2::Adaptive,
                "dynamic" => lambda2 = Lambda2::Dynamic,
                "oracle" => lambda2 = Lambda2::Oracle,
                "bounded" => step = Step::Bounded,
                "fixed" => step = Step::Fixed,
                other => {
                    let message = format!(
                        "solver {text}: `{other}` is none of `oracle`, `adaptive`, `dynamic`, `bounded` and `fixed`"
                    );
                    return Err(LabError::Usage(message));
                }
            }
        }
        Ok(Self { solver: name.parse()?, lambda2, step })
    }
}

impl<'de> Deserialize<'de> for Contender {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Contender {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_nonsense_is_refused() {
        for name in SolverKind::ALL.map(SolverKind::name) {
            let contender: Contender = name.parse().unwrap();
            assert_eq!(contender.id().parse::<Contender>().unwrap(), contender);
        }
        for id in ["vr-pca:bounded", "vr-hb-power:adaptive:fixed"] {
            assert_eq!(id.parse::<Contender>().unwrap().id(), id);
        }
        let oracle: Contender = "vr-hb-power:oracle".parse().unwrap();
        assert_eq!((oracle.id().as_str(), oracle.label().as_str()), ("vr-hb-power:oracle", "VR HB Power OM"));
        assert!(
            "vr-hb-power:guess".parse::<Contender>().unwrap_err().to_string().contains("`guess` is none of")
        );
        assert!("magic".parse::<Contender>().unwrap_err().to_string().contains("choose one of"));
    }

    #[test]
    fn step_scales_invert_each_other() {
        for scale in [StepScale::Plain, StepScale::HeavyBall] {
            for x in [0.01, 1.0, 30.0] {
                let eta = scale.eta(x, 2.5);
                // 1 − η loses at most a factor 1 + x/λ₁ of relative accuracy.
                assert!((scale.x(eta, 2.5) - x).abs() <= 8.0 * f64::EPSILON * x * (1.0 + x));
            }
        }
        assert_eq!(StepScale::HeavyBall.eta(f64::INFINITY, 3.0).to_bits(), 1.0_f64.to_bits());
    }
}
