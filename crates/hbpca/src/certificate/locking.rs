//! When vectors are locked: projected out of everything that follows.
//!
//! The rounding of an image is that of the largest component. Where it is too large for a later component, the earlier ones are locked. What they
//! leave along a later one moves it by δᵢ = Σeⱼ²/(θⱼ − θᵢ) ([why](super::bounds)), which must be a tenth of its tolerance, or below rounding.

use crate::Accuracy;

/// What δ may take of a tolerance.
const SHARE_OF_TOL: f64 = 0.1;
/// What rounding may take of it before locking is worth its passes.
const ROUNDING_OF_TOL: f64 = 0.5;
/// Locking must lower the rounding by this.
const WORTH: f64 = 0.25;

/// Ritz values of components that are not locked, their residuals without rounding, and the rounding of their images.
pub(crate) struct LockRule<'a> {
    pub(crate) theta: &'a [f64],
    pub(crate) residuals: &'a [f64],
    pub(crate) image_error: f64,
    /// The trace of what is not locked.
    pub(crate) trace: f64,
    pub(crate) tol: f64,
    /// Whether vectors are exact enough to be locked at the tolerance, or at rounding.
    pub(crate) accuracy: Accuracy,
}

/// What locking promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prospect {
    /// Nothing: rounding is small enough, or would not become smaller.
    Nothing,
    /// Later components would gain, when earlier ones are more exact.
    Later,
    /// The first so many can be locked now.
    Now(usize),
}

impl LockRule<'_> {
    pub(crate) fn prospect(&self) -> Prospect {
        let Self { theta, image_error, tol, .. } = *self;
        let suffers = |theta: &f64| image_error > ROUNDING_OF_TOL * tol * theta;
        let Some(first) = theta.iter().position(suffers).filter(|first| *first > 0 && image_error > 0.0)
        else {
            return Prospect::Nothing;
        };
        let worth: Vec<usize> =
            (1..=first).rev().filter(|m| self.floor_after(*m) <= WORTH * image_error).collect();
        match worth.iter().find(|m| self.is_exact_enough(**m)) {
            Some(m) => Prospect::Now(*m),
            None if worth.is_empty() => Prospect::Nothing,
            None => Prospect::Later,
        }
    }

    fn e(&self, i: usize) -> f64 {
        self.residuals[i] + self.image_error
    }

    /// About what rounding is left with m vectors locked: of the trace that then remains, the root counts.
    fn floor_after(&self, m: usize) -> f64 {
        let rounding = (m + 2) as f64 * self.image_error;
        let rest = (self.trace - self.theta[..m].iter().sum::<f64>()).max(0.0) + rounding;
        2.0 * self.image_error * (rest / self.trace).sqrt()
    }

    /// Whether the first m are well apart from the others, and leave too little along them to matter.
    fn is_exact_enough(&self, m: usize) -> bool {
        let floor = self.floor_after(m);
        let apart = |i: usize| self.theta[m - 1] - self.theta[i] > 4.0 * (self.e(m - 1) + self.e(i));
        let delta =
            |i: usize| (0..m).map(|j| self.e(j) * (self.e(j) / (self.theta[j] - self.theta[i]))).sum::<f64>();
        let enough = |i: usize| delta(i) <= floor.max(SHARE_OF_TOL * self.tol * self.theta[i]);
        let converged = |j: usize| {
            let at_floor = self.accuracy == Accuracy::Tolerance || self.residuals[j] <= self.image_error;
            at_floor && self.e(j) <= self.tol * self.theta[j]
        };
        (0..m).all(converged) && (m..self.theta.len()).all(|i| apart(i) && enough(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prospect(theta: &[f64], residuals: &[f64], image_error: f64) -> Prospect {
        let (trace, accuracy) = (theta.iter().sum(), Accuracy::Tolerance);
        LockRule { theta, residuals, image_error, trace, tol: 1e-6, accuracy }.prospect()
    }

    #[test]
    fn nothing_is_locked_where_rounding_is_small_or_would_stay() {
        assert_eq!(prospect(&[1.0, 0.1, 0.01], &[0.0; 3], 1e-14), Prospect::Nothing);
        // Too much for the last, but the trace is hardly less without the others.
        assert_eq!(prospect(&[1.0, 0.6, 0.4], &[0.0; 3], 3e-7), Prospect::Nothing);
        assert_eq!(prospect(&[1.0, 1e-12], &[0.0; 2], 0.0), Prospect::Nothing);
    }

    #[test]
    fn a_dominating_vector_is_locked_once_it_is_exact() {
        let theta = [1.0, 3e-12, 2e-12];
        assert_eq!(prospect(&theta, &[1e-14; 3], 1e-14), Prospect::Now(1));
        // δ = 10⁻¹²·10⁻¹² of θ₁ against a tenth of 10⁻⁶·2·10⁻¹²: as the tolerance is, just too large.
        assert_eq!(prospect(&theta, &[1e-9, 1e-14, 1e-14], 1e-14), Prospect::Later);
        assert_eq!(prospect(&theta, &[3e-10, 1e-14, 1e-14], 1e-14), Prospect::Now(1));
        // Neighbours are locked together or not at all.
        let theta = [1.0, 1.0 - 1e-15, 2e-12];
        assert_eq!(prospect(&theta, &[1e-14; 3], 1e-14), Prospect::Now(2));
    }

    #[test]
    fn where_rounding_is_to_decide_a_vector_is_locked_at_its_floor() {
        let theta = [1.0, 3e-12, 2e-12];
        let at = |residual: f64| {
            let (residuals, accuracy) = ([residual, 1e-14, 1e-14], Accuracy::Rounding);
            let (trace, tol, image_error) = (1.0, 1e-6, 1e-14);
            LockRule { theta: &theta, residuals: &residuals, image_error, trace, tol, accuracy }.prospect()
        };
        assert_eq!((at(3e-10), at(1e-14)), (Prospect::Later, Prospect::Now(1)));
    }

    #[test]
    fn what_cannot_be_told_from_zero_has_all_others_locked() {
        assert_eq!(prospect(&[1.0, 0.5, 1e-17], &[1e-15; 3], 1e-14), Prospect::Now(2));
        assert_eq!(prospect(&[1.0, 0.5, -1e-17], &[1e-15; 3], 1e-14), Prospect::Now(2));
    }
}
