//! What a rate depends on: the eigenvalues, the variance of a batch, the epoch, the method and its step.

use crate::Error;

/// λ₁, λ₂, K and m: everything the rate of one epoch depends on besides the method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    lambda1: f64,
    lambda2: f64,
    variance: f64,
    epoch: usize,
}

impl Problem {
    /// Eigenvalues λ₁ > λ₂ ≥ 0 of C, the variance K = ‖E[(C_S − C)²]‖ of a batch
    /// ([`GradientVariance`](super::GradientVariance)) and the epoch length m ≥ 2.
    ///
    /// ```
    /// use hbpca::theory::Problem;
    /// assert!(Problem::new(1.0, 0.9, 0.01, 20).is_ok());
    /// let error = Problem::new(1.0, 1.0, 0.01, 20).unwrap_err().to_string();
    /// assert!(error.starts_with("lambda2 = 1: must be below lambda1 = 1"));
    /// ```
    ///
    /// # Errors
    /// For values that are negative, not finite or out of order, and for m < 2.
    pub fn new(lambda1: f64, lambda2: f64, variance: f64, epoch: usize) -> Result<Self, Error> {
        let finite = |name, value: f64| {
            if value >= 0.0 && value.is_finite() {
                return Ok(());
            }
            let advice = "must be finite and not negative; C = (1/n)Σaaᵀ of finite data has no other values";
            Err(Error::parameter(name, value, advice))
        };
        finite("lambda1", lambda1)?;
        finite("lambda2", lambda2)?;
        finite("K", variance)?;
        if lambda2 >= lambda1 {
            let advice = format!(
                "must be below lambda1 = {lambda1}: without a gap no direction is the leading one; check that \
                 the two are not exchanged"
            );
            return Err(Error::parameter("lambda2", lambda2, advice));
        }
        check_epoch(epoch)?;
        Ok(Self { lambda1, lambda2, variance, epoch })
    }

    /// λ₁, the largest eigenvalue of C.
    pub fn lambda1(&self) -> f64 {
        self.lambda1
    }

    /// λ₂, the second eigenvalue of C.
    pub fn lambda2(&self) -> f64 {
        self.lambda2
    }

    /// K = ‖E[(C_S − C)²]‖.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// m, the length of an epoch.
    pub fn epoch(&self) -> usize {
        self.epoch
    }

    /// Δ = λ₁ − λ₂.
    pub fn gap(&self) -> f64 {
        self.lambda1 - self.lambda2
    }
}

fn check_epoch(epoch: usize) -> Result<(), Error> {
    if epoch >= 2 {
        return Ok(());
    }
    Err(Error::parameter("epoch", epoch, "give at least 2: the first inner step of an epoch uses no batch"))
}

/// The three variance-reduced methods of the paper's comparison, with their step sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// Shamir's VR-PCA, w₊ = w + ηg, any η > 0.
    VrPca {
        /// η.
        eta: f64,
    },
    /// Xu et al.'s VR Power+M: [`VrHbPower`](Self::VrHbPower) with η = 1.
    VrPowerM,
    /// The paper's w₊ = 2((1−η)w + ηg) − βw₋ with β = (1−η+ηλ₂)², η in (0, 1].
    VrHbPower {
        /// η.
        eta: f64,
    },
}

impl Method {
    /// η; 1 for VR Power+M.
    pub fn eta(self) -> f64 {
        match self {
            Self::VrPca { eta } | Self::VrHbPower { eta } => eta,
            Self::VrPowerM => 1.0,
        }
    }

    pub(super) fn check(self) -> Result<(), Error> {
        let eta = self.eta();
        if let Self::VrPca { .. } = self {
            if eta > 0.0 && eta.is_finite() {
                return Ok(());
            }
            return Err(Error::parameter("eta", eta, "VR-PCA needs a finite step above 0, such as 1/(λ₁√n)"));
        }
        check_heavy_ball_eta(eta)
    }
}

pub(super) fn check_heavy_ball_eta(eta: f64) -> Result<(), Error> {
    if eta > 0.0 && eta <= 1.0 {
        return Ok(());
    }
    let advice = "must lie in (0, 1]: 1 is the full step, smaller values damp the noise of small batches";
    Err(Error::parameter("eta", eta, advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: Result<impl std::fmt::Debug, Error>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn every_constraint_is_named() {
        let advice = "must be finite and not negative; C = (1/n)Σaaᵀ of finite data has no other values";
        assert_eq!(text(Problem::new(f64::INFINITY, 1.0, 0.0, 2)), format!("lambda1 = inf: {advice}"));
        assert_eq!(text(Problem::new(f64::NAN, 1.0, 0.0, 2)), format!("lambda1 = NaN: {advice}"));
        assert_eq!(text(Problem::new(1.0, -1.0, 0.0, 2)), format!("lambda2 = -1: {advice}"));
        assert_eq!(text(Problem::new(1.0, 0.5, -2.0, 2)), format!("K = -2: {advice}"));
        assert_eq!(
            text(Problem::new(1.0, 2.0, 0.0, 2)),
            "lambda2 = 2: must be below lambda1 = 1: without a gap no direction is the leading one; check that \
             the two are not exchanged"
        );
        assert_eq!(
            text(Problem::new(1.0, 0.5, 0.0, 1)),
            "epoch = 1: give at least 2: the first inner step of an epoch uses no batch"
        );
    }

    #[test]
    fn step_outside_zero_one_is_refused() {
        for eta in [0.0, -0.5, 1.5, f64::NAN] {
            assert_eq!(
                text(Method::VrHbPower { eta }.check()),
                format!(
                    "eta = {eta}: must lie in (0, 1]: 1 is the full step, smaller values damp the noise of small \
                     batches"
                )
            );
        }
        assert!(Method::VrPowerM.check().is_ok() && Method::VrHbPower { eta: 1.0 }.check().is_ok());
    }

    #[test]
    fn vr_pca_takes_any_positive_step() {
        assert!(Method::VrPca { eta: 7.0 }.check().is_ok());
        for eta in [0.0, f64::INFINITY] {
            assert_eq!(
                text(Method::VrPca { eta }.check()),
                format!("eta = {eta}: VR-PCA needs a finite step above 0, such as 1/(λ₁√n)")
            );
        }
    }

    #[test]
    fn the_gap_and_the_parts_come_back() {
        let problem = Problem::new(3.0, 1.0, 0.5, 7).unwrap();
        assert_eq!((problem.lambda1(), problem.lambda2(), problem.gap()), (3.0, 1.0, 2.0));
        assert_eq!((problem.variance(), problem.epoch()), (0.5, 7));
    }
}
