//! The paper's analysis, executable.
//!
//! In the order of the argument: the recurrence polynomials p_t, q_t, r_t ([`p`], [`q`], [`r`]); the variance
//! K = ‖E[(C_S − C)²]‖ of a mini-batch, from the data ([`GradientVariance`]); a [`Problem`] (λ₁, λ₂, K, m) and a
//! [`Method`] with its step size η; the rate g without noise ([`Problem::g`]); a sharp model of the contraction of
//! one epoch with noise ([`Problem::contraction`]) and the theorem's own bound, valid and hugely pessimistic
//! ([`LiteralBound`], [`theorem_bound`]), with its polynomial in K ([`NoisePolynomial`]) and the largest step that it allows
//! ([`LiteralBound::largest_step_size`]); the step size that makes either smallest ([`best_step_size`],
//! [`LiteralBound::best_step_size`]); and what noise does to power iteration without variance reduction ([`NoisyPower`]).
//!
//! ```
//! use hbpca::theory::{Method, Problem, best_step_size};
//! // ijcnn1, standardised, with batches of 1 % of the rows.
//! let problem = Problem::new(2.524_889_52, 2.505_059_24, 0.155, 100)?;
//! let best = best_step_size(&problem);
//! let full_step = problem.contraction(Method::VrPowerM)?;
//! assert!(best.contraction.rate() < 1.0 && full_step.rate() > 1.0); // η = 1 diverges, a smaller η converges
//! # Ok::<(), hbpca::Error>(())
//! ```
//!
//! Notation, and what the paper prints differently, is in `docs/paper/algorithms.md` and `docs/paper/errata.md`.

mod anchors;
mod bound;
mod bound_terms;
mod contraction;
#[cfg(test)]
mod epochs;
#[cfg(test)]
mod lemma2;
#[cfg(test)]
mod lemmas;
mod noisy_power;
mod problem;
mod rates;
mod recurrences;
mod step_size;
mod variance;

pub use anchors::AnchoredVariance;
pub use bound::{BoundConstants, LiteralBound, LiteralRate, ProvedStep, theorem_bound};
pub use bound_terms::NoisePolynomial;
pub use contraction::{Contraction, ErrorDirection};
pub use noisy_power::NoisyPower;
pub use problem::{Method, Problem};
pub use recurrences::{
    ln_p, ln_q, ln_r, p, p_by_recurrence, q, q_by_recurrence, q_deficit, r, r_by_recurrence,
};
pub use step_size::{BestStep, best_step_size, best_step_size_vr_pca};
pub use variance::GradientVariance;
