//! Anchored block VR HB Power: the paper's method with a memory.
//!
//! ```text
//!    state: anchors Q (d×a, orthonormal) with exact images CQ; block W (d×p), p ≥ k
//!    start: W ← leading directions of a small sample of rows, each with a random part of length 1/10, beside those given
//!    repeat
//! 1      X ← orth(W − QQᵀW);  Z ← CX                        one full pass, on directions orthogonal to the anchors
//! 2      Rayleigh–Ritz on [Q, X] with images [CQ, Z]        no pass; the best a pairs become Q, the best p become W
//! 3      certificate from CW − WΘ, the k best pairs         no pass; m and η grow or shrink with the progress made
//! 4      W₁ ← (1 − η)W + ηCW
//! 5      for t = 1 … m − 1:  sample S_t
//! 6          W_t = Q(QᵀW_t) + R_t
//! 7          G_t ← CQ(QᵀW_t) + C_S R_t                      only the remainder is sampled
//! 8          W_{t+1} ← 2((1 − η)W_t + ηG_t) − βW_{t−1},     β = (1 − η + ηθ_{p+1})²
//! 9          orthonormalise W_{t+1}, the same transform on W_t
//! 10     W ← [CW − WΘ of the k best pairs, W_m]             exact residuals: a gradient step where all samples mislead
//! ```
//!
//! Source: algorithm 1 of Kim & Klabjan with many exact anchors instead of one, a block instead of a vector, and
//! Rayleigh–Ritz instead of hope. With one anchor (the last iterate), p = 1 and no Rayleigh–Ritz, lines 4–9 are lines 3–8 of
//! `vr-hb-power`. Line 2 never loses ground: a noisy inner loop may cost a pass, never the answer. Where W adds nothing to Q, or too
//! little for k vectors, line 1 adds random directions; where Q spans the whole space, it computes CQ anew.
//! Choose it when a pass is expensive: data on disk, data on other machines. Cost of a step: 1 + (m − 1)|S|/n passes.

mod batches;
mod epoch_control;
mod sizes;

pub use sizes::AnchoredSizes;

use batches::Batches;
use epoch_control::EpochControl;
use faer::Mat;

use super::basis::RitzBasis;
use super::{Pairs, Solver, StepParameters};
use crate::certificate::Next;
use crate::linalg::{
    TallBasis, add_product, beside, gram, orthonormal_complement, product, random_complement, residual_norms,
    svqb_transform,
};
use crate::operator::{CovarianceOperator, Products};
use crate::rounding::RoundingBound;
use crate::{Archive, Block, Error};

/// Products with the start sample.
const START_PRODUCTS: usize = 3;
/// Length of the random part of every start vector.
const RANDOM_PART: f64 = 0.1;

/// The k leading eigenvectors from anchors, mini-batches and Rayleigh–Ritz.
#[derive(Debug)]
pub struct Anchored {
    k: usize,
    sizes: AnchoredSizes,
    epoch: EpochControl,
    seed: u64,
    batches: Batches,
    /// Q, CQ and the Ritz values θ.
    basis: RitzBasis,
    /// New directions for the next look: W_m and the residuals of the k best Ritz pairs.
    w: Block,
    started: bool,
    vectors: Block,
    images: Block,
    residual: f64,
    steps: u64,
    /// Locked vectors, which everything is orthogonal to.
    outside: TallBasis<f64>,
    /// Whether the next look takes random directions along.
    searching: bool,
}

impl Anchored {
    /// k ≤ d components of n rows, starting from a sample or, where given, from the columns of `start`.
    pub fn new(
        n: usize,
        d: usize,
        k: usize,
        sizes: AnchoredSizes,
        seed: u64,
        start: Option<&Block>,
    ) -> Result<Self, Error> {
        super::check_components(k, d)?;
        let block = sizes.block.max(k).min(d);
        let sizes = AnchoredSizes { block, anchors: sizes.anchors.max(block).min(d), ..sizes };
        let w = match start {
            None => Block::zeros(d, 0),
            Some(start) => {
                super::check_start(start, d)?;
                orthonormal_complement(start.clone(), &TallBasis::with_room(d, 0))?
            }
        };
        Ok(Self {
            k,
            sizes,
            epoch: EpochControl::FIRST,
            seed,
            batches: Batches::new(n, sizes.batch, seed)?,
            basis: RitzBasis::empty(d),
            w,
            started: false,
            vectors: Block::zeros(d, k),
            images: Block::zeros(d, k),
            residual: f64::INFINITY,
            steps: 0,
            outside: TallBasis::with_room(d, 0),
            searching: false,
        })
    }

    /// At most m steps from look to look; with m = 1 there is line 4 alone and no mini-batch.
    #[must_use]
    pub fn with_longest_epoch(mut self, m: usize) -> Self {
        self.epoch = EpochControl { m: self.epoch.m.min(m.max(1)), longest: m.max(1), ..self.epoch };
        self
    }

    /// Begins with, and stays in, the complement of locked vectors.
    #[must_use]
    pub(crate) fn orthogonal_to(mut self, locked: &Block) -> Self {
        self.outside = TallBasis::of(locked);
        self
    }

    /// Draws the start sample and the mini-batches from these rows alone, ascending.
    pub fn with_pool(mut self, pool: Vec<usize>) -> Result<Self, Error> {
        self.batches = Batches::within(pool, self.sizes.batch, self.seed)?;
        Ok(self)
    }

    /// W ← leading directions of a sample of rows, from a block Krylov space of the sample's own covariance, beside those that
    /// were given.
    fn start(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        if self.w.p() > 0 && self.sizes.start_rows == 0 {
            return Ok(()); // no rows to spare: the start that was given must do
        }
        let (d, p) = (operator.dim(), self.sizes.block);
        let random = random_complement(&self.outside, p, self.seed)?;
        let mut x = random.clone();
        if let Some(rows) = self.batches.sample(self.sizes.start_rows, operator)? {
            let (mut sample, mut z) = (RitzBasis::empty(d), Block::zeros(d, p));
            sample.reserve((START_PRODUCTS * p).min(d));
            for _ in 0..START_PRODUCTS {
                operator.apply_batch(&rows, &x, &mut z)?;
                sample.append(&x, &z, RoundingBound::default())?;
                x = orthonormal_complement(z.clone(), &sample.q)?;
                if x.p() == 0 {
                    break;
                }
            }
            // The rows drawn may span an invariant subspace (those of one-hot codes do), in which everything looks converged
            // whatever lies outside: a random part leaves no direction out.
            x = sample.best(p).0;
            super::combine(&mut x, 1.0, RANDOM_PART, &random);
        }
        self.w = beside(&self.w, &x);
        Ok(())
    }

    /// Lines 4–9: heavy ball steps with exact images within the anchors and sampled ones outside. Returns W_m.
    fn inner_loop(
        &mut self,
        operator: &mut dyn CovarianceOperator,
        m: usize,
        eta: f64,
        beta: f64,
    ) -> Result<Block, Error> {
        let (mut before, image) = self.basis.best(self.sizes.block);
        let mut w = before.clone();
        super::combine(&mut w, 1.0 - eta, eta, &image); // 4
        let mut g = Block::zeros(w.d(), w.p());
        // 5
        for _ in 1..m {
            let Some(rows) = self.batches.draw(operator) else { break };
            let mut remainder = w.clone();
            let coefficients = self.basis.q.project_out(&mut remainder); // 6
            operator.apply_batch(&rows, &remainder, &mut g)?;
            self.basis.cq.add_product_to(&mut g, coefficients.as_ref()); // 7
            for ((before, w), g) in before.values_mut().iter_mut().zip(w.values()).zip(g.values()) {
                *before = 2.0 * ((1.0 - eta) * w + eta * g) - beta * *before; // 8
            }
            std::mem::swap(&mut w, &mut before);
            orthonormalize_pair(&mut w, &mut before)?; // 9
        }
        Ok(w)
    }

    /// X ← orth(W − QQᵀW), filled up at random where nothing is new, or too little for k vectors: the anchors then span an
    /// invariant subspace. Empty where they span the whole space.
    fn new_directions(&mut self) -> Result<Block, Error> {
        let w = std::mem::replace(&mut self.w, Block::zeros(0, 0));
        let x = orthonormal_complement(w, &self.basis.q)?;
        if x.p() > 0 && self.basis.len() + x.p() >= self.k && !std::mem::take(&mut self.searching) {
            return Ok(x);
        }
        let mut known = self.basis.q.clone();
        known.append(&x);
        known.append(&self.outside.to_block());
        let fill = random_complement(&known, self.sizes.block, self.seed ^ self.steps)?;
        Ok(beside(&x, &fill))
    }

    /// Z ← CX, and Rayleigh–Ritz on [Q, X].
    fn widen(&mut self, mut x: Block, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        // Anchors, a block, and the residuals of the k pairs beside it.
        self.basis.reserve((self.sizes.anchors + self.sizes.block + self.k).min(x.d()));
        let mut z = Block::zeros(x.d(), x.p());
        let rounding = match operator.first_pass() {
            Some(first) => first.first_image(&mut x, &mut z)?, // 1
            None => operator.apply(&x, &mut z)?,               // 1
        };
        self.basis.append(&x, &z, rounding) // 2
    }

    /// What is known of λ_{k+1}.
    fn next(&self) -> Next {
        let Some(theta) = self.basis.theta.get(self.k) else {
            return if self.k == self.vectors.d() { Next::Nothing } else { Next::Unknown };
        };
        let s = self.basis.s.as_ref().subcols(self.k, 1);
        let (w, image) = (self.basis.q.product(s), self.basis.cq.product(s));
        let residual = residual_norms(&w, &image, &[*theta])[0];
        super::suggested_next(&self.basis.theta, self.k, residual).map_or(Next::Unknown, Next::Estimated)
    }

    /// θ_{i+1}, 0 where the basis has no so many.
    fn theta(&self, i: usize) -> f64 {
        self.basis.theta.get(i).copied().unwrap_or(0.0)
    }

    /// η and β of the next inner loop.
    fn step_and_momentum(&self) -> (f64, f64) {
        let eta = self.epoch.eta(self.theta(0));
        (eta, (1.0 - eta + eta * self.theta(self.sizes.block)).powi(2))
    }

    /// CW − WΘ of the k best Ritz pairs.
    fn residuals(&self) -> Block {
        let theta = Mat::from_fn(self.k, self.k, |i, j| if i == j { self.basis.theta[i] } else { 0.0 });
        let mut residuals = self.images.clone();
        add_product(&mut residuals, &self.vectors, theta.as_ref(), -1.0);
        residuals
    }
}

/// Orthonormalises W_{t+1} and applies the same transform to W_t; for one vector this is the paper's scaling scheme. Weak
/// directions are not dropped but brought up, so that W_t can follow.
fn orthonormalize_pair(w: &mut Block, before: &mut Block) -> Result<(), Error> {
    let (transform, _) = svqb_transform(&gram(w, w))?;
    *w = product(w, transform.as_ref());
    *before = product(before, transform.as_ref());
    Ok(())
}

impl Solver for Anchored {
    fn name(&self) -> &'static str {
        "anchored"
    }

    fn n_components(&self) -> usize {
        self.k
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        if !self.started {
            self.start(operator)?;
            self.started = true;
        }
        let x = self.new_directions()?; // 1
        if x.p() == 0 {
            self.basis.refresh(operator)?; // the anchors span the whole space: only fresher images can help
        } else {
            self.widen(x, operator)?;
        }
        (self.vectors, self.images) = self.basis.best(self.k);
        super::sort_descending(&mut self.vectors, &mut self.images);
        let before = self.residual;
        self.residual = self.residuals().norm();
        if before.is_finite() && before > 0.0 {
            let (eta, beta) = self.step_and_momentum();
            let predicted = self.epoch.predicted(eta, beta, self.theta(self.k - 1));
            self.epoch = self.epoch.adapted(predicted, self.residual / before); // 3
        }
        Ok(())
    }

    fn pairs(&mut self) -> Pairs<'_> {
        let next = self.next();
        Pairs::new(&self.vectors, &self.images, self.basis.image_error(), next) // 3
    }

    fn search(&mut self) -> Result<bool, Error> {
        self.searching = self.basis.len() + self.outside.len() < self.vectors.d();
        Ok(self.searching)
    }

    fn step(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.steps += 1;
        let residuals = self.residuals();
        self.basis.compress(self.sizes.anchors); // 2
        let (eta, beta) = self.step_and_momentum();
        let w = self.inner_loop(operator, self.epoch.m, eta, beta)?;
        // The exact residuals ride along: even where all samples mislead, the pass makes a gradient step.
        self.w = beside(&residuals, &w); // 10
        Ok(())
    }

    fn passes_ahead(&self, n_rows: usize) -> f64 {
        1.0 + (self.epoch.m - 1) as f64 * self.batches.size as f64 / n_rows as f64
    }

    fn parameters(&self) -> StepParameters {
        let (eta, beta) = self.step_and_momentum();
        StepParameters {
            eta: Some(eta),
            beta: Some(beta),
            lambda2: self.basis.theta.get(self.sizes.block).copied(),
        }
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.part("basis", |archive| self.basis.archive(archive))?;
        archive.check("basis", self.basis.len() >= self.k, "has fewer vectors than components are sought")?;
        archive.block("vectors", &mut self.vectors)?;
        archive.block("images", &mut self.images)?;
        archive.size("m", &mut self.epoch.m)?;
        archive.check("m", (1..=self.epoch.longest).contains(&self.epoch.m), "is no length of an epoch")?;
        archive.number("tau", &mut self.epoch.tau)?;
        archive.number("residual", &mut self.residual)?;
        archive.count("steps", &mut self.steps)?;
        archive.flag("started", &mut self.started)?;
        if archive.has("searching") {
            archive.flag("searching", &mut self.searching)?;
        }
        archive.part("sampler", |archive| self.batches.archive(archive))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Covariance;
    use crate::policy::{FixedMomentum, Start};
    use crate::solver::{Epoch, VrHbPower};
    use crate::{Dense, Matrix, Preprocessing, Replacement, Sampler};

    /// Makes w the only anchor.
    fn anchor_at(anchored: &mut Anchored, operator: &mut dyn CovarianceOperator, w: &Block) {
        let mut image = Block::zeros(0, 0);
        let rounding = operator.apply(w, &mut image).unwrap();
        anchored.basis = RitzBasis::empty(w.d());
        anchored.basis.append(w, &image, rounding).unwrap();
    }

    #[test]
    fn one_anchor_and_one_vector_make_the_steps_of_vr_hb_power() {
        let (n, d, batch, seed) = (40, 6, 7, 3);
        let (eta, beta) = (0.3, 0.4);
        let x: Matrix = Dense::new(crate::matrix::random_direction(1, n * d), n, d).unwrap().into();
        let mut c = Covariance::new(&x, Preprocessing::CENTER).unwrap();
        let sizes = AnchoredSizes { block: 1, anchors: 1, batch, start_rows: 0 };
        for m in 2..=12 {
            let mut anchored = Anchored::new(n, d, 1, sizes, seed, None).unwrap();
            let mut paper = VrHbPower::new(
                d,
                eta,
                Epoch::new(m).unwrap(),
                Box::new(FixedMomentum::new(beta).unwrap()),
                Sampler::new(n, batch, Replacement::Without, seed).unwrap(),
                &Start::Random { seed },
            )
            .unwrap();
            // Three epochs, each from the last iterate of the one before.
            for epoch in 0..3 {
                paper.look(&mut c).unwrap();
                let before = paper.pairs().vectors.clone();
                anchor_at(&mut anchored, &mut c, &before);
                let w = anchored.inner_loop(&mut c, m, eta, beta).unwrap();
                paper.step(&mut c).unwrap();
                let want = paper.pairs().vectors;
                // Every step rounds sums over |S| rows and d columns; lengths are brought to 1 in between.
                let bound = 8.0 * m as f64 * (batch + d) as f64 * f64::EPSILON;
                let sign = w.dot(want).signum();
                for j in 0..d {
                    let off = (sign * w.get(j, 0) - want.get(j, 0)).abs();
                    assert!(off <= bound, "m = {m}, epoch {epoch}, coordinate {j}: off by {off:e}");
                }
                assert!(squared_distance(want, &before) > 1e-6, "m = {m}, epoch {epoch}: nothing moved");
            }
        }
    }

    fn squared_distance(a: &Block, b: &Block) -> f64 {
        a.values().iter().zip(b.values()).map(|(a, b)| (a - b).powi(2)).sum()
    }
}
