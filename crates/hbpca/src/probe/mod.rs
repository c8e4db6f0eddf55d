//! How large λ_{k+1} is at most, with a probability that is known.
//!
//! ```text
//! given      W: k vectors, from wherever;   P = I − WWᵀ,   M = PCP on the d′ = d − k dimensions that W leaves
//! 1  Q₁ ← p random orthonormal vectors, orthogonal to W and uniform there
//! 2  Q_{j+1}Bⱼ ← MQⱼ − QⱼAⱼ − Q_{j−1}B_{j−1}ᵀ                  block Lanczos, one pass a step
//! 3  t ← the least value above which φ < q throughout          φ: the largest share that Q₁ can have in an eigenvector
//! 4  λ_{k+1}(C) ≤ λ_max(M) ≤ t, but with probability δ         q: the δ-quantile of Beta(p/2, (d′ − p)/2)
//! ```
//!
//! Line 4 holds because the leading eigenvector u of M does not depend on Q₁: ‖Q₁ᵀu‖² is distributed like Beta(p/2, (d′ − p)/2), and an eigenvalue
//! above t would leave it less than q. One eigenvector matters, so that nothing is summed over eigenvalues; it may be one of many
//! copies, and W may be wrong. The derivation, with rounding counted, is in `docs/design/0013-probe.md`.
//!
//! Source: van Dorsselaer, Hochstenbach & van der Vorst, *SIAM J. Matrix Anal. Appl.* 22 (2000) for one vector; blocks after Tropp,
//! arXiv 2110.00649. *Deviations:* φ is evaluated by pivots, not by the polynomials of the recurrence, and over intervals, because with
//! blocks it need not fall (`recurrence.rs`); rounding is part of the bound.
//!
//! When to choose it: where d is too large for a count of eigenvalues. Cost: a pass for each step, 4–6 where there is a gap.

mod beta;
mod krylov_space;
mod recurrence;

pub(crate) use beta::ln_gamma;

use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

use krylov_space::{KrylovSpace, RandomStart};

use crate::linalg::{TallBasis, orthonormal_complement};
use crate::operator::{CovarianceOperator, Products};
use crate::{Block, Error};

/// Above this a probability of failure says next to nothing.
const LARGEST_FAILURE_PROBABILITY: f64 = 0.5;

/// Where the random numbers of a probe come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeSeed {
    /// The operating system: nobody who supplied the data can have known it.
    #[default]
    FromSystem,
    /// A number. The result then holds *if the start is as good as random for this data*.
    Given(u64),
}

/// What a probe may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeConfig {
    /// δ: the bound is wrong with at most this probability.
    pub failure_probability: f64,
    /// p: vectors multiplied at a time.
    pub block: usize,
    /// Full passes, at most.
    pub max_passes: u64,
    /// Where the start comes from.
    pub seed: ProbeSeed,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self { failure_probability: 1e-9, block: 8, max_passes: 30, seed: ProbeSeed::FromSystem }
    }
}

impl ProbeConfig {
    fn check(&self) -> Result<(), Error> {
        let delta = self.failure_probability;
        if !(delta > 0.0 && delta <= LARGEST_FAILURE_PROBABILITY) {
            let advice = "give a probability above 0 and at most 0.5, such as 1e-9";
            return Err(Error::parameter("failure_probability", delta, advice));
        }
        if self.block == 0 {
            return Err(Error::parameter("block", "0 vectors", "give at least 1; 8 is a good choice"));
        }
        if self.max_passes == 0 {
            return Err(Error::parameter("max_passes", 0, "a probe needs at least 1, and mostly 4 to 6"));
        }
        Ok(())
    }
}

/// What a probe found.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProbeResult {
    /// λ_max(PCP), and hence λ_{k+1}(C), is at most this, but with probability `failure_probability`. Infinite where rounding has no bound;
    /// 0 where W spans everything, so that PCP = 0.
    pub bound: f64,
    /// λ_max(PCP) is at least this, for certain: above λ_k it proves that W does not lead.
    pub least: f64,
    /// δ.
    pub failure_probability: f64,
    /// Full passes made.
    pub passes: u64,
    /// The seed, to repeat the probe with.
    pub seed: u64,
    /// Whether the seed was given: then the probability is one *if the start is as good as random for this data*.
    pub seed_is_given: bool,
}

/// Bounds the largest eigenvalue of C that `vectors` leave. They need be neither orthonormal nor independent: the statement is about an orthonormal
/// copy of them. Ends when the bound is good `enough`, when more passes would not improve it, or when they are used up.
///
/// ```
/// use hbpca::operator::Covariance;
/// use hbpca::probe::{ProbeConfig, probe};
/// use hbpca::{Block, Dense, Matrix, Preprocessing};
/// let x: Matrix = Dense::new(vec![3.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0], 3, 3)?.into();
/// let mut c = Covariance::new(&x, Preprocessing::NONE)?;
/// let w = Block::from_vector(vec![1.0, 0.0, 0.0]);
/// let result = probe(&mut c, &w, &ProbeConfig::default(), |_| false)?;
/// // C = diag(9, 4, 1)/3.
/// assert!(result.bound >= 4.0 / 3.0 && result.bound < 1.3334);
/// # Ok::<(), hbpca::Error>(())
/// ```
pub fn probe(
    operator: &mut dyn CovarianceOperator,
    vectors: &Block,
    config: &ProbeConfig,
    enough: impl Fn(f64) -> bool,
) -> Result<ProbeResult, Error> {
    config.check()?;
    let d = operator.dim();
    if vectors.d() != d {
        return Err(Error::shape("coordinates of the vectors to probe beyond", d, vectors.d()));
    }
    if let Some(at) = vectors.values().iter().position(|x| !x.is_finite()) {
        let value = format!("{} in coordinate {}", vectors.values()[at], at / vectors.p());
        return Err(Error::parameter("vectors", value, "every entry must be finite"));
    }
    let (seed, seed_is_given) = match config.seed {
        ProbeSeed::FromSystem => (seed_from_system(), false),
        ProbeSeed::Given(seed) => (seed, true),
    };
    let failure_probability = config.failure_probability;
    let mut result =
        ProbeResult { bound: 0.0, least: 0.0, failure_probability, passes: 0, seed, seed_is_given };
    let w = orthonormal_complement(vectors.clone(), &TallBasis::with_room(d, 0))?;
    let room = d - w.p();
    if room == 0 {
        return Ok(result);
    }

    let p = config.block.min(room);
    let RandomStart { mut space, off } = KrylovSpace::random(&w, p, seed)?; //                    1
    let share = if p == room { 1.0 } else { least_share(failure_probability, p, room) - off };
    result.bound = f64::INFINITY;
    while result.passes < config.max_passes {
        space.expand(operator)?; //                                                               2
        result.passes += 1;
        let found = bound(&space, share, result.bound, operator.total_variance())?; //            3
        result.bound = found.value;
        result.least = result.least.max(found.least);
        if enough(result.bound) || found.is_final {
            break;
        }
    }
    Ok(result)
}

/// What a Krylov space says.
struct Bound {
    value: f64,
    /// From below.
    least: f64,
    /// Nothing but rounding keeps it from being smaller.
    is_final: bool,
}

/// Line 3: the smaller of `before`, the bound of the steps before, and of the one that this step gives; C is at most `total`.
fn bound(space: &KrylovSpace, share: f64, before: f64, total: f64) -> Result<Bound, Error> {
    let nothing = Bound { value: f64::INFINITY, least: 0.0, is_final: true };
    if !total.is_finite() {
        return Ok(nothing);
    }
    let theta = space.recurrence.largest()?;
    // A Ritz value above it refutes a bound: the start had less than q.
    let before = if before < theta { f64::INFINITY } else { before };
    let mut found = Bound { value: before, least: 0.0, is_final: space.next_width() == 0 };
    // The error depends on the bound: once with the one before, once with the one that follows.
    for _ in 0..2 {
        let error = space.error(found.value.min(total), total);
        if !error.is_finite() {
            return Ok(nothing);
        }
        let value =
            if space.is_everything() { theta + error } else { space.recurrence.bound(share, error)? };
        found.is_final |= value - theta <= 8.0 * error / share;
        found.value = found.value.min(value);
        found.least = theta - error;
    }
    Ok(found)
}

/// √q: ‖Q₁ᵀu‖ is less only with probability δ, for p of `room` dimensions.
fn least_share(delta: f64, p: usize, room: usize) -> f64 {
    beta::quantile(delta, 0.5 * p as f64, 0.5 * (room - p) as f64).sqrt()
}

/// 64 bits that the operating system chose: the standard library keys its hash maps with them. No file is opened and no crate is
/// needed for it. Where a platform has no such source (WebAssembly without a host), the clock alone is left.
fn seed_from_system() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    RandomState::new().hash_one(now)
}

#[cfg(test)]
mod tests;
