//! When a run stops.

use crate::Error;

/// How far residuals are to fall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Accuracy {
    /// To the tolerance.
    #[default]
    Tolerance,
    /// To the tolerance, and on for as long as rounding lets them fall: the run has then converged to rounding.
    Rounding,
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// A component with a residual of at most `tol`·θᵢ counts as converged.
    pub tol: f64,
    /// Whether that is enough.
    pub accuracy: Accuracy,
    /// The sine of the largest angle between the components and the leading subspace that is allowed, besides, where one is given.
    pub angle: Option<f64>,
    /// No step is begun that would read more passes than this.
    pub max_passes: f64,
    /// No step is begun after this many seconds, and one that runs then is broken off, in the middle of a pass or between two
    /// sweeps over a basis; the first look is always taken.
    pub max_seconds: f64,
}

impl Default for Limits {
    /// tol = 10⁻⁶, any angle, 1000 passes, no limit on seconds.
    fn default() -> Self {
        Self {
            tol: 1e-6,
            accuracy: Accuracy::Tolerance,
            angle: None,
            max_passes: 1000.0,
            max_seconds: f64::INFINITY,
        }
    }
}

impl Limits {
    /// The relative residual that a solver works for: none is small enough where rounding is to decide.
    pub fn aim(&self) -> f64 {
        match self.accuracy {
            Accuracy::Tolerance => self.tol,
            Accuracy::Rounding => 0.0,
        }
    }

    /// Refuses limits under which no run makes sense.
    pub fn check(&self) -> Result<(), Error> {
        if !(self.tol >= 0.0 && self.tol < 1.0) {
            return Err(Error::parameter(
                "tol",
                self.tol,
                "the relative tolerance must lie from 0 up to below 1; try 1e-6",
            ));
        }
        if let Some(angle) = self.angle
            && !(angle > 0.0 && angle < 1.0)
        {
            return Err(Error::parameter(
                "angle",
                angle,
                "the sine of an angle lies between 0 and 1; try 1e-4",
            ));
        }
        if self.max_passes.is_nan() || self.max_passes < 1.0 {
            return Err(Error::parameter(
                "max-passes",
                self.max_passes,
                "a certificate takes at least 1 pass",
            ));
        }
        if self.max_seconds.is_nan() || self.max_seconds < 0.0 {
            return Err(Error::parameter(
                "max-seconds",
                self.max_seconds,
                "give a number of seconds of at least 0",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "values that are exact by construction")]
mod tests {
    use super::*;

    #[test]
    fn default_limits_are_the_documented_ones() {
        let limits = Limits::default();
        assert_eq!((limits.accuracy, limits.angle), (Accuracy::Tolerance, None));
        assert_eq!((limits.tol, limits.max_passes, limits.max_seconds), (1e-6, 1000.0, f64::INFINITY));
        assert!(limits.check().is_ok());
    }
}
