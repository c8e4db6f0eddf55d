//! Block Lanczos with thick restart.
//!
//! ```text
//! 1  X ← p random orthonormal directions, beside those given
//! 2  wide compressed rows: G = (1/n)AAᵀ for C             vectors are shorter, X is random; up to line 8
//!    repeat
//! 3      if the residuals are above the rounding of CQ, or CQ is fresh:
//! 4          Z ← CX                                       one full pass, two for G; in single precision, if there is such, up to line 8
//! 5          Q ← [Q, X];  X ← orth(Z − Q(QᵀZ))            the next Krylov block, fully re-orthogonalised
//! 6          fill X up to p columns at random             after a breakdown: an invariant subspace
//! 7          Rayleigh–Ritz on Q                           residuals known without forming a vector; for large Q not in every round
//!        else:
//! 8          V ← the best Ritz vectors;  of G: V ← AᵀV    back to C and to double precision
//! 9          Q ← the Ritz vectors within V, from CV       one full pass; CQ is fresh
//! 10         X ← orth(CQ − Q(QᵀCQ))                       only to go on
//!        after line 9, while pairs miss tol and this brings them closer:
//! 9a         Q ← the Ritz vectors within [Q, orth(CQₒ − QₒΘₒ)]     one pass, with those pairs' residuals; CQ is fresh
//! 11     if tol is met and p Ritz values agree: p ← k + 1, fill X up at random, on for as many steps again
//! 12     if Q is full: Q ← its best Ritz vectors          thick restart; the converged ones are locked by staying in
//! ```
//!
//! Source: Golub & Underwood 1977; Wu & Simon 2000 for the restart. Deviations: lines 2 to 4, 6 and 8 to 11; line 9a is Davidson's (1975) without a preconditioner.
//! Line 2: the vectors of G are as long as there are rows; also when pairs of C are asked for, line 8 leads back to it.
//! Line 3: CQ is known through the Lanczos relation, whose rounding adds up; in single precision 8ε₃₂θ₁ stands for it. Where X
//! is empty, since Q spans the whole space, only fresh images can help.
//! Line 6: repeated eigenvalues are found, and spaces of fewer than p directions left are used up. Lines 4 to 7 are done again while Q has
//! fewer than k vectors.
//! Line 1: beside vectors that are given there are p random ones, and these get as many looks as they would need alone: what was given may lack the
//! leading vectors.
//! Line 7: H is decomposed in O(a³) for a vectors, which from some hundred on takes longer than lines 4 to 6. Half of the rounds that residuals foretell go by
//! without it, eight at most.
//! Line 9a: single precision leaves some pairs above the tolerance; Lanczos steps would multiply all vectors for them.
//! Line 11: a repeated eigenvalue shows at most p of its copies. Where p of the values found agree, within the tolerance, there may be more: the
//! random directions get as many looks as the first ones had. The same where the trace contradicts.
//! Choose it as the best method without sampling. Cost of a step: 1 pass; 2 with G, and one more for AᵀV.

use super::krylov_sizes::{FEW, KrylovSizes, LONG};
use super::lanczos::{Lanczos, Lowdin};
use super::{Pairs, ResidualEstimate, Solver, still_to_come};
use crate::block::largest;
use crate::certificate::Next;
use crate::linalg::{TallBasis, beside, orthonormal_complement, random_complement};
use crate::operator::{CovarianceOperator, Precision, Products, RowGram};
use crate::rounding::RoundingBound;
use crate::{Archive, Block, CancelToken, Error};

/// Residuals below this, relative to θ₁, may be all that single precision has.
const SINGLE_FLOOR: f64 = 8.0 * f32::EPSILON as f64;
/// Residuals below this, relative to each θᵢ, are not sought in single precision. The image of a Ritz vector rounds in proportion to its own length.
const SINGLE_GOAL: f64 = 2.0 * f32::EPSILON as f64;
/// What a look brings residuals down to that falls.
const FALLS: f64 = 0.8;
/// The share of a tolerance that is sought before fresh images tell.
const SHARE_OF_TOL: f64 = 0.5;
/// Tolerances up to which a block of further vectors is enough for what single precision leaves.
const NEAR_TOL: f64 = 32.0;
/// What a round of polishing must bring residuals down to, for another to follow.
const POLISH_GAIN: f64 = 0.9;
/// Blocks of further vectors that stay beside the wanted ones while they are polished: all of them are rotated in every round.
const POLISH_BLOCKS: usize = 8;
/// Vectors of a basis from which on line 7 takes longer than a round of lines 4 to 6.
const LARGE: usize = 256;
/// Rounds of lines 4 to 6 with one line 7, at most.
const MOST_ROUNDS: usize = 8;
/// Looks in single precision after which residuals that do not [fall](FALLS) are its rounding.
const STALLED: u64 = 3;
/// The same for vectors of G, which cost a small part of what those of C cost in double precision. A Ritz value that comes in late looks like a
/// stall, too.
const STALLED_OF_ROWS: u64 = 6;

/// The k leading eigenvectors from a block Krylov space.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is one line of the box")]
pub struct Krylov {
    d: usize,
    k: usize,
    sizes: KrylovSizes,
    seed: u64,
    /// Whether the basis is one of G.
    of_rows: bool,
    basis: Lanczos,
    /// Z = CX, or GX.
    z: Block,
    /// Whether single precision still serves.
    single: bool,
    /// Whether the last look computed images anew, so that only new directions can help.
    fresh: bool,
    /// θ_{k+1}, with what it may be blurred by, where only k vectors have fresh images.
    beyond: Option<f64>,
    /// W and CW, once asked for.
    formed: Option<(Block, Block)>,
    steps: u64,
    /// The step before which nothing is settled, since directions joined that have not had their looks.
    search_ends: u64,
    /// Residuals that are enough, relative to each θᵢ: what is closer than that counts as copies.
    tol: f64,
    /// The smallest relative residual in single precision so far, and looks since it fell.
    best_in_single: f64,
    stalled: u64,
    /// The largest residual, relative to its tolerance, that was polished last.
    polished: f64,
    /// Whether it began with vectors that were given.
    given: bool,
    /// Random directions at the start.
    filled: usize,
    /// tr C, once known.
    trace: f64,
    /// Whether a basis that was refreshed since left directions that may hide copies.
    hides_copies: bool,
    cancel: CancelToken,
}

impl Krylov {
    /// k ≤ d components, starting from random directions and, where given, the columns of `start`.
    pub fn new(
        d: usize,
        k: usize,
        sizes: KrylovSizes,
        seed: u64,
        start: Option<&Block>,
    ) -> Result<Self, Error> {
        super::check_components(k, d)?;
        let block = sizes.block.clamp(1, d);
        let given = match start {
            None => Block::zeros(d, 0),
            Some(start) => {
                super::check_start(start, d)?;
                orthonormal_complement(start.clone(), &TallBasis::with_room(d, 0))?
            }
        };
        // As many random directions as a run of its own would have: what was given may lack the leading vectors.
        let fill = random_complement(&TallBasis::of(&given), block, seed)?;
        let memory = sizes.memory.max(k + 2 * block + given.p()).min(d);
        let basis = Lanczos::starting_with(beside(&given, &fill)); // 1
        let sizes = KrylovSizes { block, memory };
        let (given, filled) = (given.p() > 0, fill.p());
        Ok(Self {
            d,
            k,
            sizes,
            seed,
            of_rows: false,
            basis,
            z: Block::zeros(d, 0),
            single: true,
            fresh: false,
            beyond: None,
            formed: None,
            steps: 0,
            search_ends: 0,
            tol: 0.0,
            best_in_single: f64::MAX,
            stalled: 0,
            polished: f64::MAX,
            given,
            filled,
            trace: f64::MAX,
            hides_copies: false,
            cancel: CancelToken::default(),
        })
    }

    /// Begins with, and stays in, the complement of locked vectors, which those given are orthogonal to.
    pub(crate) fn orthogonal_to(mut self, locked: &Block) -> Result<Self, Error> {
        let room = self.d.saturating_sub(locked.p());
        self.sizes.block = self.sizes.block.min(room);
        self.sizes.memory = self.sizes.memory.min(room);
        let mut known = TallBasis::of(locked);
        let given = if self.given {
            self.basis.x.leading(self.basis.x.p() - self.filled)
        } else {
            Block::zeros(self.d, 0)
        };
        known.append(&given);
        let fill = random_complement(&known, self.sizes.block, self.seed)?;
        self.basis = Lanczos::starting_with(beside(&given, &fill)); // 1
        self.basis.stay_orthogonal_to(TallBasis::of(locked));
        Ok(self)
    }

    /// Residuals of `tol`·θᵢ are enough: eigenvalues closer than that count as copies of one.
    #[must_use]
    pub fn aiming_at(self, tol: f64) -> Self {
        Self { tol, ..self }
    }

    /// Whether [`beginning_with_rows`](Self::beginning_with_rows) pays for compressed rows in memory: vectors of G must be the shorter,
    /// the less time of a step the basis takes.
    pub fn gains_from_rows(n: usize, d: usize, k: usize) -> bool {
        let shorter = if k > FEW { 2 } else { 3 };
        k <= n && d >= LONG && n.saturating_mul(shorter) <= d
    }

    /// Begins with vectors of G = (1/n)AAᵀ, where the operator has products with it; n ≥ k. Other starts than random ones are left.
    pub fn beginning_with_rows(mut self, n: usize) -> Result<Self, Error> {
        super::check_components(self.k, n)?;
        self.sizes.block = self.sizes.block.min(n);
        self.sizes.memory = self.sizes.memory.min(n);
        self.basis = random_start(n, self.sizes.block, self.seed)?;
        self.of_rows = true; // 2
        Ok(self)
    }

    /// Whether what is left to see lies below the rounding of the relation: fresher images must tell.
    fn needs_refresh(&self) -> bool {
        if self.basis.len() == 0 || self.fresh || self.is_searching() {
            return false;
        }
        if !self.single {
            return self.residual() <= self.basis.image_error();
        }
        // The rounding of single precision is far below its bound: what it really spoils are the last digits of f32.
        let goal = SINGLE_GOAL.max(SHARE_OF_TOL * self.tol);
        let patience = if self.of_rows { STALLED_OF_ROWS } else { STALLED };
        self.relative_residual() <= goal || (self.stalled >= patience && self.residual() <= self.blur())
    }

    /// The largest residual of the k best pairs, each relative to its Ritz value.
    fn relative_residual(&self) -> f64 {
        largest(self.basis.residuals(self.k).iter().zip(&self.basis.theta).map(|(r, theta)| {
            // What has no variance in single precision is left to double precision.
            if *theta > self.blur() { r / theta } else { 0.0 }
        }))
    }

    /// Counts looks in single precision that do not help.
    fn see_single(&mut self) {
        if self.single {
            let now = self.relative_residual();
            self.stalled = if now > FALLS * self.best_in_single { self.stalled + 1 } else { 0 };
            self.best_in_single = self.best_in_single.min(now);
        }
    }

    /// How many Ritz vectors to compute the images of: a block, and all that single precision could not tell from the k-th.
    fn worth_keeping(&self) -> usize {
        let theta = &self.basis.theta;
        let blurred = theta.get(self.k - 1).map_or(0.0, |last| last - 2.0 * self.blur());
        let alike = theta.iter().take_while(|theta| **theta >= blurred).count();
        self.sizes.block.max(alike).max(self.k + self.worth_keeping_beyond()).min(self.basis.len())
    }

    /// How many beyond the k-th: none where the images are likely to be the last. Single precision leaves residuals of u₃₂·θ₁; where that is not good
    /// enough for the k-th, steps in double precision follow, and take fewer passes beside vectors whose values are close.
    fn worth_keeping_beyond(&self) -> usize {
        let theta = |i: usize| self.basis.theta.get(i).copied().unwrap_or(0.0);
        let left = 0.5 * f64::from(f32::EPSILON) * theta(0);
        let tolerances = left / (self.tol * theta(self.k - 1));
        match (self.single, tolerances) {
            (true, tolerances) if tolerances > NEAR_TOL => (self.k / 2).max(self.sizes.block),
            (true, tolerances) if tolerances > 1.0 => self.sizes.block,
            _ => 0,
        }
    }

    /// The pairs with fresh images whose residuals are to be brought down by products with few vectors (line 9a), and the largest of these residuals
    /// relative to its tolerance.
    fn to_polish(&self) -> (Vec<usize>, f64) {
        if self.basis.recomputed().is_none() || self.is_searching() {
            return (Vec::new(), 0.0);
        }
        let excess = |(residual, theta): (f64, &f64)| residual / (self.tol * theta);
        let excess: Vec<f64> =
            self.basis.residuals(self.k).into_iter().zip(&self.basis.theta).map(excess).collect();
        let most = largest(excess.iter().copied());
        let open: Vec<usize> = (0..excess.len()).filter(|i| excess[*i] > SHARE_OF_TOL).collect();
        let open = if most <= POLISH_GAIN * self.polished { open } else { Vec::new() };
        (open, most)
    }

    /// What single precision spoils of a Ritz value.
    fn blur(&self) -> f64 {
        SINGLE_FLOOR * self.basis.theta.first().copied().unwrap_or(0.0)
    }

    /// What is known of λ_{k+1}.
    fn next(&self) -> Next {
        // A basis that was refreshed has few vectors beyond the k: what it was before knew more.
        match self.basis.following(self.k).into_iter().chain(self.beyond).reduce(f64::max) {
            Some(next) => Next::Estimated(next),
            None if self.k == self.basis.x.d() => Next::Nothing,
            None => Next::Unknown,
        }
    }

    /// Whether random directions are still growing towards copies that the block was too narrow to see.
    fn is_searching(&self) -> bool {
        self.steps < self.search_ends && self.basis.x.p() > 0
    }

    /// Looks that a run from random directions alone would take: Chebyshev polynomials of degree j − 1 bring an angle of tangent √(d/p) down to the
    /// tolerance, with the gap from θ_k to the first value that the block does not hold beside it (Saad 1980).
    fn looks_from_random(&self) -> u64 {
        /// More than any run takes.
        const MOST: f64 = 100.0;
        let (p, theta) = (self.sizes.block, &self.basis.theta);
        let last = theta.get(self.k - 1).copied().unwrap_or(0.0);
        if last <= self.basis.image_error() {
            return 0; // nothing is left to be found but what the trace would show
        }
        let beyond = theta.get(self.k + p - 1).or(theta.last()).copied().unwrap_or(0.0).max(0.0);
        let gap = (last - beyond) / beyond.max(f64::MIN_POSITIVE);
        let tangent = (self.basis.x.d() as f64 / p as f64).sqrt().max(2.0);
        let looks = 1.0 + (tangent / self.tol.max(f64::EPSILON)).acosh() / (1.0 + 2.0 * gap).acosh();
        looks.min(MOST).ceil() as u64
    }

    /// Widens the block by random directions and gives them as many looks as the first ones had.
    fn begin_search(&mut self) -> Result<bool, Error> {
        self.basis.complete(&self.cancel)?;
        let d = self.basis.x.d();
        let block = (self.k + 1).max(self.basis.x.p() + 1).min(d);
        self.sizes = KrylovSizes { block, memory: self.sizes.memory.max(self.k + 2 * block).min(d) };
        self.basis.fill(block, self.seed ^ !self.steps)?; // 11
        self.search_ends = 2 * self.steps + 2;
        Ok(self.basis.x.p() > 0)
    }

    /// Whether one more look may show a copy of the k-th: of m copies within r dimensions a basis of a vectors holds a + m − r to rounding, which have no
    /// residuals, and mixes the others with what it has not seen. This happens where hardly any directions are left. Of the start itself nothing more is known;
    /// later the value that follows tells, once its residual no longer reaches the k-th.
    fn last_directions_may_hide_copies(&self) -> bool {
        let (p, theta) = (self.basis.x.p(), &self.basis.theta);
        let last = theta.get(self.k - 1).copied().unwrap_or(0.0);
        let left = self.trace - theta.iter().sum::<f64>();
        if p == 0 {
            return false;
        }
        if self.steps == 0 && left >= 0.5 * last {
            return true;
        }
        let few = left <= p as f64 * last || self.basis.len() + 2 * p >= self.basis.x.d();
        let following = self.basis.residuals(self.k + 1).get(self.k).copied();
        let gap = last - theta.get(self.k).copied().unwrap_or(0.0);
        let known = gap.max(self.tol * last).max(2.0 * self.basis.image_error());
        few && following.is_some_and(|residual| residual > known)
    }

    /// Whether p of the k values agree within what is known of them, or within the tolerance.
    fn block_may_hide_copies(&self) -> bool {
        let (p, theta, residuals) = (self.sizes.block, &self.basis.theta, self.basis.residuals(self.k));
        let room = 2.0 * self.basis.image_error();
        let last = |i: usize| i + p - 1;
        (0..self.k).take_while(|i| last(*i) < residuals.len()).any(|i| {
            theta[i] - theta[last(i)] <= residuals[i] + residuals[last(i)] + room.max(self.tol * theta[i])
        })
    }

    /// How many rounds of lines 4 to 6 come before line 7. A full basis is left to line 12.
    fn rounds_ahead(&self) -> usize {
        let p = self.basis.x.p();
        if self.basis.len() < LARGE || p == 0 {
            return 1;
        }
        let room = self.sizes.memory.saturating_sub(self.basis.len()) / p;
        let half = self.looks_left(self.tol).map_or(1, |left| (0.5 * left) as usize);
        half.min(room).clamp(1, MOST_ROUNDS)
    }

    /// Lines 4–6, and 7 where the basis is to be solved.
    fn widen(&mut self, operator: &mut dyn CovarianceOperator, solves: bool) -> Result<(), Error> {
        let rounding = self.multiply(operator)?; // 4
        if self.basis.len() == 0 {
            self.reserve_memory();
        }
        let (unit, seed) = (operator.total_variance(), self.seed ^ (self.steps + 1));
        self.trace = unit;
        self.basis.expand(&self.z, rounding, unit, self.sizes.block, seed, solves, &self.cancel) // 5, 6, 7
    }

    /// Z ← CX or GX. Returns a bound on its rounding.
    fn multiply(&mut self, operator: &mut dyn CovarianceOperator) -> Result<RoundingBound, Error> {
        if self.of_rows {
            if let Some(gram) = operator.row_gram() {
                return gram.apply_gram(&self.basis.x, &mut self.z);
            }
            // An operator without such products has none at the first one either.
            self.basis = random_start(self.d, self.sizes.block, self.seed)?;
            self.of_rows = false;
        }
        if let Some(first) = operator.first_pass() {
            let rounding = first.first_image(&mut self.basis.x, &mut self.z)?;
            self.single &= operator.has_single_precision();
            return Ok(rounding);
        }
        self.single &= operator.has_single_precision();
        let precision = if self.single { Precision::Single } else { Precision::Double };
        operator.apply_in(precision, &self.basis.x, &mut self.z)
    }

    /// Takes the best Ritz vectors for the basis, with images computed anew in f64.
    fn refresh(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        let next = self.basis.following(self.k).map(|next| next + self.blur());
        self.beyond = next.or(self.beyond);
        self.hides_copies = self.last_directions_may_hide_copies();
        let (theta, count) = (self.basis.theta.clone(), self.worth_keeping());
        (self.single, self.fresh, self.polished) = (false, true, f64::MAX);
        self.z = Block::zeros(self.d, 0);
        let mut vectors = self.basis.restart(count); // 8
        if std::mem::take(&mut self.of_rows) {
            // ‖Aᵀu‖² = nθ.
            let rows = operator.n_rows() as f64;
            vectors.scale_columns(|c| if theta[c] > 0.0 { (rows * theta[c]).sqrt().recip() } else { 0.0 });
            let mut combined = Block::zeros(self.d, vectors.p());
            let Some(gram) = operator.row_gram() else { unreachable!("the basis is one of G") };
            gram.combine_rows(&vectors, &mut combined)?; // 8
            vectors = combined;
        }
        let lowdin = Lowdin::new(vectors, self.seed ^ self.steps)?;
        let mut images = Block::zeros(self.d, lowdin.v.p());
        let rounding = operator.apply(&lowdin.v, &mut images)?;
        self.basis.refresh(lowdin, images, self.k, rounding) // 9
    }

    /// Line 9a.
    fn polish(
        &mut self,
        operator: &mut dyn CovarianceOperator,
        open: &[usize],
        excess: f64,
    ) -> Result<(), Error> {
        (self.fresh, self.polished) = (true, excess);
        let most = self.k + (POLISH_BLOCKS * self.sizes.block).max(2 * open.len());
        self.basis.polish(open, [self.k, most], |x, z| operator.apply(x, z))
    }

    /// Room for the basis and the block that follows it; in f32 where the images are no better and the vectors are long.
    fn reserve_memory(&mut self) {
        let most = self.sizes.memory + self.sizes.block;
        if self.single && self.basis.x.d() >= LONG {
            self.basis.reserve_in_single(most);
        } else {
            self.basis.reserve(most);
        }
    }

    /// The largest residual of the k best pairs, rounding apart.
    fn residual(&self) -> f64 {
        largest(self.basis.residuals(self.k))
    }
}

/// A basis that is to grow from random directions.
fn random_start(d: usize, p: usize, seed: u64) -> Result<Lanczos, Error> {
    Ok(Lanczos::starting_with(random_complement(&TallBasis::with_room(d, 0), p, seed)?))
}

impl Solver for Krylov {
    fn name(&self) -> &'static str {
        "krylov"
    }

    fn n_components(&self) -> usize {
        self.k
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.formed = None;
        let (open, excess) = self.to_polish();
        if !open.is_empty() {
            return self.polish(operator, &open, excess);
        }
        // 3
        if self.needs_refresh() || (self.basis.len() > 0 && self.basis.x.p() == 0) {
            return self.refresh(operator);
        }
        let rounds = self.rounds_ahead();
        self.fresh = false;
        for _ in 1..rounds {
            self.widen(operator, false)?;
            self.steps += 1;
            if self.basis.x.p() == 0 {
                return self.basis.solve();
            }
        }
        self.widen(operator, true)?;
        // A basis of fewer than k vectors has no k Ritz pairs.
        while self.basis.len() < self.k && self.basis.x.p() > 0 {
            self.steps += 1;
            let solves = self.basis.len() < LARGE || self.basis.len() + self.basis.x.p() >= self.k;
            self.widen(operator, solves)?;
        }
        self.see_single();
        Ok(())
    }

    fn residual_estimate(&self) -> Option<ResidualEstimate> {
        let theta = &self.basis.theta;
        Some(ResidualEstimate {
            theta: theta.first().copied().unwrap_or(0.0),
            thetas: theta[..self.k.min(theta.len())].to_vec(),
            residuals: self.basis.residuals(self.k),
            image_error: self.basis.image_error(),
            bound_will_fall: self.single || self.needs_refresh() || self.is_searching(),
        })
    }

    fn looks_left(&self, tol: f64) -> Option<f64> {
        let (theta, last) = (&self.basis.theta, self.k + self.sizes.block - 1);
        let residuals = self.basis.residuals(last + 1);
        let residual = *residuals.get(last).filter(|_| !self.fresh && !self.is_searching())?;
        let excess = |(residual, theta): (&f64, &f64)| residual / (tol * theta);
        let most = largest(residuals[..self.k].iter().zip(theta).map(excess));
        // Chebyshev polynomials from what is left to the tolerance, as from the start in `looks_from_random`.
        let gap = theta[self.k - 1] - theta[last];
        let beyond = theta[last].max(0.0) + still_to_come(residual, gap);
        let gap = (theta[self.k - 1] - beyond) / beyond.max(f64::MIN_POSITIVE);
        Some(1.0 + most.max(1.0).acosh() / (1.0 + 2.0 * gap.max(f64::EPSILON)).acosh())
    }

    fn form_pairs(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        if self.of_rows { self.refresh(operator) } else { Ok(()) }
    }

    fn pairs(&mut self) -> Pairs<'_> {
        let next = self.next();
        let image_error = self.basis.image_error();
        if let Some([vectors, images]) = self.basis.recomputed() {
            return Pairs::new(vectors, images, image_error, next);
        }
        let (vectors, images) = self.formed.get_or_insert_with(|| {
            let (mut vectors, mut images) = self.basis.best(self.k);
            super::sort_descending(&mut vectors, &mut images);
            (vectors, images)
        });
        Pairs::new(vectors, images, image_error, next)
    }

    fn take_vectors(&mut self) -> Block {
        let formed = self.formed.take().map(|(vectors, _)| vectors);
        formed.or_else(|| self.basis.take_recomputed()).unwrap_or_else(|| self.pairs().vectors.clone())
    }

    fn may_miss_multiplicity(&mut self) -> Result<bool, Error> {
        if self.is_searching() {
            return Ok(true);
        }
        if std::mem::take(&mut self.given) {
            self.search_ends = self.looks_from_random();
            self.basis.complete(&self.cancel)?;
            if self.is_searching() {
                return Ok(true);
            }
        }
        if std::mem::take(&mut self.hides_copies) || self.last_directions_may_hide_copies() {
            self.search_ends = self.steps + 1;
            self.basis.complete(&self.cancel)?;
            if self.is_searching() {
                return Ok(true);
            }
        }
        if self.block_may_hide_copies() { self.begin_search() } else { Ok(false) }
    }

    fn search(&mut self) -> Result<bool, Error> {
        if self.is_searching() { Ok(true) } else { self.begin_search() }
    }

    fn cancelled_by(&mut self, token: &CancelToken) {
        self.cancel = token.clone();
    }

    fn step(&mut self, _operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.steps += 1;
        if !self.to_polish().0.is_empty() {
            return Ok(());
        }
        self.basis.complete(&self.cancel)?; // 10
        self.cancel.go_on()?;
        // 12
        if self.basis.len() + self.basis.x.p() > self.sizes.memory && self.basis.x.p() > 0 {
            self.basis.compress((self.k + self.sizes.block).max(self.sizes.memory / 2));
        }
        Ok(())
    }

    fn passes_ahead(&self, _n_rows: usize) -> f64 {
        let rounds = if self.basis.len() < LARGE { 1 } else { MOST_ROUNDS } as f64;
        // Vectors of G are combined to those of C, which need images.
        if self.of_rows { rounds * <dyn RowGram>::PASSES as f64 + 1.0 + 1.0 } else { rounds }
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        // Which side a run is on may depend on limits, and these may be others now.
        archive.flag("of_rows", &mut self.of_rows)?;
        let mut length = if self.of_rows { self.basis.x.d() } else { self.d };
        if self.of_rows {
            archive.size("length", &mut length)?;
            archive.check("length", length >= self.k, "is less than components are sought")?;
        }
        if archive.is_restoring() {
            let outside = self.basis.outside();
            self.basis = Lanczos::starting_with(Block::zeros(length, 0));
            if !self.of_rows {
                self.basis.stay_orthogonal_to(outside);
            }
        }
        archive.part("basis", |archive| self.basis.archive(archive))?;
        archive.check("basis", self.basis.len() >= self.k, "has fewer vectors than components are sought")?;
        let complete = self.basis.recomputed().is_none_or(|[w, _]| w.p() == self.k);
        archive.check("basis", complete, "has not one fresh vector for each component")?;
        // Both grow where copies may hide.
        archive.size("block", &mut self.sizes.block)?;
        archive.size("memory", &mut self.sizes.memory)?;
        archive.check(
            "block",
            (1..=length).contains(&self.sizes.block),
            "is not between 1 and the length of a vector",
        )?;
        archive.check("memory", self.sizes.memory <= length, "is more than a vector is long")?;
        archive.flag("single", &mut self.single)?;
        archive.flag("fresh", &mut self.fresh)?;
        archive.optional("beyond", &mut self.beyond)?;
        archive.count("steps", &mut self.steps)?;
        archive.count("search_ends", &mut self.search_ends)?;
        if archive.has("given") {
            archive.flag("given", &mut self.given)?;
            archive.count("stalled", &mut self.stalled)?;
            archive.number("best_in_single", &mut self.best_in_single)?;
        }
        if archive.has("polished") {
            archive.number("polished", &mut self.polished)?;
            archive.number("trace", &mut self.trace)?;
            archive.flag("hides_copies", &mut self.hides_copies)?;
        }
        if archive.is_restoring() {
            self.formed = None;
            self.basis.reserve(self.sizes.memory);
        }
        Ok(())
    }
}
