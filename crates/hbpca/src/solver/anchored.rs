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
//! Choose it when a pass is dear: data on disk, data on other machines. Cost of a step: 1 + (m − 1)|S|/n passes.

use faer::Mat;

use super::basis::RitzBasis;
use super::{Pairs, Solver, StepParameters};
use crate::linalg::{
    Tall, add_product, beside, gram, orthonormal_complement, product, project_out, random_complement,
    small_eigen, view,
};
use crate::operator::{CovarianceOperator, Products};
use crate::rounding::RoundingBound;
use crate::{Archive, Block, Error, Replacement, Sampler};

/// Products with the start sample.
const START_PRODUCTS: usize = 3;
/// Length of the random part of every start vector.
const RANDOM_PART: f64 = 0.1;

/// Sizes of an anchored run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnchoredSizes {
    /// p, vectors iterated on.
    pub block: usize,
    /// a, anchors kept.
    pub anchors: usize,
    /// |S|, rows of a mini-batch.
    pub batch: usize,
    /// Rows of the start sample; 0 for a random start.
    pub start_rows: usize,
}

impl AnchoredSizes {
    /// Sizes that suit k components of n rows.
    ///
    /// A pass is counted by its rows, whatever p is, so that the block is generous; a start sample of at least 1,500 rows
    /// (but a tenth of the data at most) is worth one to two passes; batches of 1 % are read in the shadow of a pass.
    /// What each part buys is measured in `docs/design/0004-anchored.md`.
    pub fn suiting(n: usize, k: usize) -> Self {
        let block = (k + k / 2).max(40);
        let start_rows = (n / 50).max(1500.min(n / 10));
        Self { block, anchors: 4 * block, batch: n.div_ceil(100), start_rows }
    }

    /// The same without a start sample where the sample and the first look would read more than `max_passes`.
    #[must_use]
    pub fn within(self, max_passes: f64, n: usize) -> Self {
        let passes = 1.0 + (START_PRODUCTS * self.start_rows) as f64 / n as f64;
        Self { start_rows: if passes <= max_passes { self.start_rows } else { 0 }, ..self }
    }
}

/// The k leading eigenvectors from anchors, mini-batches and Rayleigh–Ritz.
#[derive(Debug)]
pub struct Anchored {
    k: usize,
    sizes: AnchoredSizes,
    inner: InnerLoop,
    seed: u64,
    sampler: Sampler,
    /// Rows the sampler's numbers stand for, where only a pool is at hand.
    pool: Option<Vec<usize>>,
    /// Q, CQ and the Ritz values θ.
    basis: RitzBasis,
    /// New directions for the next look: W_m and the residuals of the k best Ritz pairs.
    w: Block,
    started: bool,
    vectors: Block,
    images: Block,
    residual: f64,
    steps: u64,
}

/// Length m and step of the inner loop, adapted like the radius of a trust region: measured progress against predicted.
///
/// The step is kept free of the data's scale as τ = η/(1 − η)·θ₁.
#[derive(Clone, Copy, Debug, PartialEq)]
struct InnerLoop {
    m: usize,
    tau: f64,
    /// m at most.
    longest: usize,
}

impl InnerLoop {
    const FIRST: Self = Self { m: 3, tau: 0.5, longest: 9 };

    fn eta(self, theta: f64) -> f64 {
        if theta > 0.0 { self.tau / (self.tau + theta) } else { 0.5 }
    }

    /// After an epoch that was to shrink the residual by `predicted` and shrank it by `measured` (factors below 1): less
    /// than a quarter of the predicted digits means that noise rules, three quarters that there is room.
    fn adapted(self, predicted: f64, measured: f64) -> Self {
        let share = measured.ln() / predicted.min(0.999).ln();
        if share < 0.25 {
            Self { m: (self.m / 2).max(1), tau: self.tau / 2.0, ..self }
        } else if share > 0.75 {
            Self { m: (self.m + 1).min(self.longest), tau: (self.tau * 1.5).min(4.0), ..self }
        } else {
            self
        }
    }
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
                orthonormal_complement(start.clone(), Tall::empty(d).view())?
            }
        };
        Ok(Self {
            k,
            sizes,
            inner: InnerLoop::FIRST,
            seed,
            sampler: Sampler::new(n, sizes.batch, Replacement::Without, seed)?,
            pool: None,
            basis: RitzBasis::empty(d),
            w,
            started: false,
            vectors: Block::zeros(d, k),
            images: Block::zeros(d, k),
            residual: f64::INFINITY,
            steps: 0,
        })
    }

    /// At most m steps from look to look; with m = 1 there is line 4 alone and no mini-batch.
    #[must_use]
    pub fn with_longest_epoch(mut self, m: usize) -> Self {
        self.inner = InnerLoop { m: self.inner.m.min(m.max(1)), longest: m.max(1), ..self.inner };
        self
    }

    /// Draws the start sample and the mini-batches from these rows alone, ascending: what is at hand when the rest is on
    /// disk.
    pub fn with_pool(mut self, pool: Vec<usize>) -> Result<Self, Error> {
        let batch = self.sizes.batch.min(pool.len());
        self.sampler = Sampler::new(pool.len(), batch, Replacement::Without, self.seed)?;
        self.sizes = AnchoredSizes { batch, start_rows: self.sizes.start_rows.min(pool.len()), ..self.sizes };
        self.pool = Some(pool);
        Ok(self)
    }

    /// Leading directions of a sample of rows, from a block Krylov space of the sample's own covariance, beside those that were
    /// given.
    fn sample_start(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        if self.w.p() > 0 && self.sizes.start_rows == 0 {
            return Ok(()); // no rows to spare: what was given must do
        }
        let (d, p) = (operator.dim(), self.sizes.block);
        let random = random_complement(Tall::empty(d).view(), p, self.seed)?;
        let mut x = random.clone();
        let none_resident = operator.resident_rows().is_some_and(<[usize]>::is_empty);
        if self.sizes.start_rows > 0 && !none_resident {
            let n_rows = operator.n_rows();
            let pool = operator.resident_rows().or(self.pool.as_deref());
            let n = pool.map_or(n_rows, <[usize]>::len);
            let count = self.sizes.start_rows.min(n);
            let drawn = Sampler::new(n, count, Replacement::Without, self.seed)?.draw().to_vec();
            let rows = pooled(pool, &drawn);
            let (mut sample, mut z) = (RitzBasis::empty(d), Block::zeros(d, p));
            sample.reserve((START_PRODUCTS * p).min(d));
            for _ in 0..START_PRODUCTS {
                operator.apply_batch(&rows, &x, &mut z)?;
                sample.append(&x, &z, RoundingBound::default())?;
                x = orthonormal_complement(z.clone(), sample.q.view())?;
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
            let Some(rows) = self.draw(operator) else { break };
            let mut remainder = w.clone();
            let along = project_out(&mut remainder, self.basis.q.view()); // 6
            operator.apply_batch(&rows, &remainder, &mut g)?;
            add_product(&mut g, self.basis.cq.view(), along.as_ref(), 1.0); // 7
            for ((before, w), g) in before.values_mut().iter_mut().zip(w.values()).zip(g.values()) {
                *before = 2.0 * ((1.0 - eta) * w + eta * g) - beta * *before; // 8
            }
            std::mem::swap(&mut w, &mut before);
            orthonormalize_pair(&mut w, &mut before)?; // 9
        }
        Ok(w)
    }

    /// The next mini-batch: from the resident rows of the operator, else from the pool, else from all rows. Nothing where
    /// an operator that keeps rows in memory has none yet.
    fn draw(&mut self, operator: &mut dyn CovarianceOperator) -> Option<Vec<usize>> {
        let pool = operator.resident_rows().or(self.pool.as_deref());
        if let Some(pool) = pool {
            if pool.is_empty() {
                return None;
            }
            self.sampler.resize(pool.len(), self.sizes.batch.min(pool.len()));
        }
        Some(pooled(pool, self.sampler.draw()).into_owned())
    }

    /// η and β of the next inner loop.
    fn step_and_momentum(&self) -> (f64, f64) {
        let eta = self.inner.eta(self.basis.theta.first().copied().unwrap_or(0.0));
        let next = self.basis.theta.get(self.sizes.block).copied().unwrap_or(0.0);
        (eta, (1.0 - eta + eta * next).powi(2))
    }

    /// What m noiseless heavy ball steps make of the k-th residual: 1/cosh(m·arcosh x), x the ratio of the growth of
    /// component k to that of component p + 1.
    fn predicted(&self) -> f64 {
        let (eta, beta) = self.step_and_momentum();
        let last = self.basis.theta.get(self.k - 1).copied().unwrap_or(0.0);
        let ratio = (1.0 - eta + eta * last) / beta.sqrt();
        if ratio > 1.0 { 1.0 / (self.inner.m as f64 * ratio.acosh()).cosh() } else { 1.0 }
    }

    /// ‖CW − WΘ‖_F of the k best Ritz pairs, and the residuals themselves.
    fn residuals(&self) -> Block {
        let theta = Mat::from_fn(self.k, self.k, |i, j| if i == j { self.basis.theta[i] } else { 0.0 });
        let mut residuals = self.images.clone();
        add_product(&mut residuals, view(&self.vectors), theta.as_ref(), -1.0);
        residuals
    }
}

/// The rows of a pool that `drawn` numbers, or `drawn` itself where there is no pool.
fn pooled<'a>(pool: Option<&[usize]>, drawn: &'a [usize]) -> std::borrow::Cow<'a, [usize]> {
    match pool {
        None => drawn.into(),
        Some(pool) => drawn.iter().map(|&i| pool[i]).collect(),
    }
}

/// Orthonormalises W_{t+1} and applies the same transform to W_t; for one vector this is the paper's scaling scheme. Weak
/// directions are not dropped but brought up, so that W_t can follow.
fn orthonormalize_pair(w: &mut Block, before: &mut Block) -> Result<(), Error> {
    let inverse = |x: f64| if x > 0.0 { 1.0 / x } else { 0.0 };
    let p = w.p();
    let g = gram(view(w), view(w));
    let scaled = Mat::from_fn(p, p, |i, j| if i == j { inverse(g[(i, i)].sqrt()) } else { 0.0 });
    let (values, vectors) = small_eigen(&(&scaled * &g * &scaled))?;
    let floor = f64::EPSILON * values.first().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
    let transform = scaled * Mat::from_fn(p, p, |i, j| vectors[(i, j)] / values[j].max(floor).sqrt());
    *w = product(view(w), transform.as_ref());
    *before = product(view(before), transform.as_ref());
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
            self.sample_start(operator)?;
            self.started = true;
        }
        let w = std::mem::replace(&mut self.w, Block::zeros(0, 0));
        let mut x = orthonormal_complement(w, self.basis.q.view())?; // 1
        if x.p() == 0 || self.basis.len() + x.p() < self.k {
            // Nothing new, or too little for k vectors (an invariant subspace): random directions find the rest.
            let mut known = self.basis.q.clone();
            known.append(&x);
            let fill = random_complement(known.view(), self.sizes.block, self.seed ^ self.steps)?;
            x = beside(&x, &fill);
        }
        if x.p() == 0 {
            self.basis.refresh(operator)?; // the anchors span the whole space: only fresher images can help
        } else {
            // Anchors, a block, and the residuals of the k pairs beside it.
            self.basis.reserve((self.sizes.anchors + self.sizes.block + self.k).min(x.d()));
            let mut z = Block::zeros(x.d(), x.p());
            let rounding = match operator.first_pass() {
                Some(first) => first.first_image(&mut x, &mut z)?, // 1
                None => operator.apply(&x, &mut z)?,               // 1
            };
            self.basis.append(&x, &z, rounding)?; // 2
        }
        (self.vectors, self.images) = self.basis.best(self.k);
        super::sort_descending(&mut self.vectors, &mut self.images);
        let before = self.residual;
        self.residual = self.residuals().norm();
        if before.is_finite() && before > 0.0 {
            self.inner = self.inner.adapted(self.predicted(), self.residual / before); // 3
        }
        Ok(())
    }

    fn pairs(&mut self) -> Pairs<'_> {
        let next = super::next_of(&self.basis.theta, self.k, self.vectors.d());
        Pairs { vectors: &self.vectors, images: &self.images, image_error: self.basis.image_error(), next } // 3
    }

    fn step(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.steps += 1;
        let residuals = self.residuals();
        self.basis.compress(self.sizes.anchors); // 2
        let (eta, beta) = self.step_and_momentum();
        let w = self.inner_loop(operator, self.inner.m, eta, beta)?;
        // The exact residuals ride along: even where all samples mislead, the pass makes a gradient step.
        self.w = beside(&residuals, &w); // 10
        Ok(())
    }

    fn passes_ahead(&self, n_rows: usize) -> f64 {
        1.0 + (self.inner.m - 1) as f64 * self.sizes.batch as f64 / n_rows as f64
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
        archive.size("m", &mut self.inner.m)?;
        archive.check("m", (1..=self.inner.longest).contains(&self.inner.m), "is no length of an epoch")?;
        archive.number("tau", &mut self.inner.tau)?;
        archive.number("residual", &mut self.residual)?;
        archive.count("steps", &mut self.steps)?;
        archive.flag("started", &mut self.started)?;
        archive.part("sampler", |archive| self.sampler.archive(archive))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Covariance;
    use crate::policy::{FixedMomentum, Start};
    use crate::solver::{Epoch, VrHbPower};
    use crate::{Dense, Matrix, Preprocessing};

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
