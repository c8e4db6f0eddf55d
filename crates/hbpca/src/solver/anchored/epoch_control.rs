//! How long the inner loop is, and how bold.

/// Length m and step of the inner loop, adapted like the radius of a trust region: measured progress against predicted.
///
/// The step is stored free of the data's scale as τ = η/(1 − η)·θ₁.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct EpochControl {
    pub(super) m: usize,
    pub(super) tau: f64,
    /// m at most.
    pub(super) longest: usize,
}

impl EpochControl {
    pub(super) const FIRST: Self = Self { m: 3, tau: 0.5, longest: 9 };

    /// η for the largest Ritz value θ.
    pub(super) fn eta(self, theta: f64) -> f64 {
        if theta > 0.0 { self.tau / (self.tau + theta) } else { 0.5 }
    }

    /// What m noiseless heavy ball steps make of the residual of θ_k: 1/cosh(m·arcosh x), x the ratio of the growth of
    /// component k to that of component p + 1.
    pub(super) fn predicted(self, eta: f64, beta: f64, theta_k: f64) -> f64 {
        let ratio = (1.0 - eta + eta * theta_k) / beta.sqrt();
        if ratio > 1.0 { 1.0 / (self.m as f64 * ratio.acosh()).cosh() } else { 1.0 }
    }

    /// After an epoch that was to shrink the residual by `predicted` and shrank it by `measured` (factors below 1): less
    /// than a quarter of the predicted digits means that noise rules, three quarters that there is room.
    pub(super) fn adapted(self, predicted: f64, measured: f64) -> Self {
        let reached = measured.ln() / predicted.min(0.999).ln();
        if reached < 0.25 {
            Self { m: (self.m / 2).max(1), tau: self.tau / 2.0, ..self }
        } else if reached > 0.75 {
            Self { m: (self.m + 1).min(self.longest), tau: (self.tau * 1.5).min(4.0), ..self }
        } else {
            self
        }
    }
}
