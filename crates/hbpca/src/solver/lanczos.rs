//! The Lanczos relation: a basis whose images need no memory of their own.
//!
//! ```text
//!            CQ = QH + XB                      [Q, X] orthonormal, H = QᵀCQ
//!
//! expand     Z ← CX;  Q ← [Q, X],  H ← [QᵀCQ, QᵀZ; ·, XᵀZ]     one pass
//!            X·R ← Z − QQᵀZ,  B ← [0, R]
//! ritz       H = SΘSᵀ;  W = QS,  CW = W·SᵀHS + X·BS             no pass; the residual of pair i is ‖Bsᵢ‖
//! compress   Q ← QS_a,  H ← S_aᵀHS_a,  B ← BS_a                 keeps the a best Ritz pairs
//! refresh    Q ← QS_a;  Z ← CQ;  H ← QᵀZ                        one pass; all rounding gathered is gone
//! complete   X·R ← Z − QH,  B ← R                               no pass; needed only to go on from there
//! polish     X ← orth(Zₒ − QₒHₒ);  Z ← [Z, CX];  Q ← the Ritz vectors within [Q, X]     one pass with few vectors, after a refresh
//! ```
//!
//! Everything is combined with orthonormal coefficients only, so that the rounding of the relation adds up in squares and
//! is never amplified. That sum is tracked.

use faer::{Mat, MatRef};

use super::recomputed::{Recomputed, Widened};
use crate::linalg::{
    BasisStorage, BlockQr, TallBasis, add_product, beside, gram, orthonormal_complement, product,
    random_complement, residual_norms, rotate_block, rounding_of_gram, small_eigen,
};
use crate::rounding::{RoundingBound, rounding_of_sum};
use crate::{Archive, Block, CancelToken, Error};

/// Q, H, X and B.
#[derive(Clone, Debug)]
pub(super) struct Lanczos {
    q: BasisStorage,
    h: Mat<f64>,
    /// X: the next block, orthonormal and orthogonal to Q.
    pub(super) x: Block,
    /// B = XᵀCQ.
    b: Mat<f64>,
    /// Q and CQ themselves, where they were computed anew: X is then empty, and B has the norms of their residuals alone.
    recomputed: Option<Recomputed>,
    /// Vectors that the basis shall be orthogonal to.
    outside: TallBasis<f64>,
    /// Vectors to make room for.
    most: usize,
    /// ‖CQ − QH − XB‖ from above.
    error: f64,
    /// Eigenvalues of H, descending, and its eigenvectors S.
    pub(super) theta: Vec<f64>,
    s: Mat<f64>,
}

impl Lanczos {
    /// An empty basis, to be expanded by X.
    pub(super) fn starting_with(x: Block) -> Self {
        let (d, p) = (x.d(), x.p());
        let q = BasisStorage::with_room(d, 0, false);
        let empty = Mat::zeros(0, 0);
        Self {
            q,
            h: empty.clone(),
            x,
            b: Mat::zeros(p, 0),
            recomputed: None,
            outside: TallBasis::with_room(d, 0),
            most: 0,
            error: 0.0,
            theta: Vec::new(),
            s: empty,
        }
    }

    /// Fills up at random only with directions that are orthogonal to these, too, as X is.
    pub(super) fn stay_orthogonal_to(&mut self, outside: TallBasis<f64>) {
        self.outside = outside;
    }

    /// What it stays orthogonal to.
    pub(super) fn outside(&self) -> TallBasis<f64> {
        self.outside.clone()
    }

    /// a, the number of vectors in Q.
    pub(super) fn len(&self) -> usize {
        self.recomputed.as_ref().map_or_else(|| self.q.len(), Recomputed::len)
    }

    /// Makes room for bases of up to `most` vectors.
    pub(super) fn reserve(&mut self, most: usize) {
        self.most = most;
        self.q.reserve(most);
    }

    /// The same for a basis that is still empty, and keeps its vectors in f32.
    pub(super) fn reserve_in_single(&mut self, most: usize) {
        self.most = most;
        self.q = BasisStorage::with_room(self.x.d(), most, true);
    }

    /// Takes X into the basis with its image Z = CX, each column's error at most `image_rounding`. The next X has at
    /// least `width` columns where the space has room for them: what a breakdown takes away is filled up at random. C is about
    /// as large as `unit`. Θ and S are found anew where that is asked for, and stay those of the smaller basis otherwise.
    pub(super) fn expand(
        &mut self,
        z: &Block,
        image_rounding: RoundingBound,
        unit: f64,
        width: usize,
        seed: u64,
        solves: bool,
        cancel: &CancelToken,
    ) -> Result<(), Error> {
        let (a, p) = (self.len(), self.x.p());
        self.q.append(&self.x);
        let BlockQr { h, r } = self.q.orthogonalize(z, unit, self.outside.len(), &mut self.x, cancel)?;
        let r = self.without_outside(r, cancel)?;
        self.h = Mat::from_fn(a + p, a + p, |i, j| match (i < a, j < a) {
            (true, true) => self.h[(i, j)],
            (_, false) if i < a => h[(i, j - a)],
            (false, true) => h[(j, i - a)],
            _ => 0.5 * (h[(i, j - a)] + h[(j, i - a)]),
        });
        self.b = r;
        self.fill(width, seed)?;
        self.b = Mat::from_fn(self.x.p(), a + p, |i, j| if j < a { 0.0 } else { self.b[(i, j - a)] });
        if solves {
            self.solve()?;
        }
        self.count_error(p, image_rounding);
        Ok(())
    }

    /// X without its part along the vectors outside, and what becomes of R in XR. Images have no such part but for rounding; of residuals that are rounding
    /// it may be most, and X, which has length 1, must not bring it into the basis.
    fn without_outside(&mut self, mut r: Mat<f64>, cancel: &CancelToken) -> Result<Mat<f64>, Error> {
        /// Overlaps that matter to nobody.
        const NONE: f64 = 1e-12;
        /// Each takes out all but the rounding of what it leaves.
        const ROUNDS: usize = 4;
        for _ in 0..ROUNDS {
            if self.outside.len() == 0 || self.x.p() == 0 {
                break;
            }
            let mut inside = self.x.clone();
            if self.outside.project_out(&mut inside).norm_max() <= NONE {
                break;
            }
            let BlockQr { h, r: rest } =
                self.q.orthogonalize(&inside, 1.0, self.outside.len(), &mut self.x, cancel)?;
            self.error = self.error.hypot((h * &r).norm_l2());
            r = rest * r;
        }
        Ok(r)
    }

    /// Finds Θ and S. Where values agree to rounding any combination of their vectors serves, and copies that just came in
    /// are no match for those that have been there: small residuals come first. In single precision values that agree so may still be two: they are, once
    /// their residuals are smaller than what is between them.
    pub(super) fn solve(&mut self) -> Result<(), Error> {
        (self.theta, self.s) = small_eigen(&self.h)?;
        let in_double = rounding_of_gram(self.x.d()) * self.largest();
        let rounding = self.q.unit_ratio() * in_double;
        let residuals = self.residuals(self.theta.len());
        let mut next = 0;
        while next < self.theta.len() {
            let first = next;
            let gap = |i: usize| self.theta[first] - self.theta[i];
            let is_alike = |i: &usize| {
                gap(*i) <= in_double || gap(*i) <= rounding.min(residuals[first].max(residuals[*i]))
            };
            let alike = (first..self.theta.len()).take_while(is_alike).count();
            let spread = gap(first + alike.max(1) - 1);
            next += alike.max(1); // none is like one that is not a number
            if alike > 1 {
                let copies = self.s.as_ref().subcols(first, alike);
                let residuals = &self.b * copies;
                let (_, by_residual) = small_eigen(&(residuals.transpose() * &residuals))?;
                let rotated = copies * by_residual.as_ref().reverse_cols();
                self.s.as_mut().subcols_mut(first, alike).copy_from(rotated);
                self.error = self.error.hypot(spread.max(in_double));
            }
        }
        Ok(())
    }

    /// SᵀHS of the `count` best Ritz vectors: Θ, but for copies that were rotated.
    fn projected(&self, count: usize) -> Mat<f64> {
        let s = self.coefficients(count);
        let t = s.transpose() * &self.h * s;
        Mat::from_fn(t.nrows(), t.ncols(), |i, j| 0.5 * (t[(i, j)] + t[(j, i)]))
    }

    /// Fills X up to `width` columns with random ones, whose rows of B are zero.
    pub(super) fn fill(&mut self, width: usize, seed: u64) -> Result<(), Error> {
        let taken = self.len() + self.outside.len();
        let missing = width.min(self.x.d().saturating_sub(taken)).saturating_sub(self.x.p());
        if missing == 0 {
            return Ok(());
        }
        let mut known = TallBasis::from_columns(self.x.d(), &self.q.to_columns());
        known.append(&self.x);
        if self.outside.len() > 0 {
            known.append(&self.outside.to_block());
        }
        let random = random_complement(&known, missing, seed)?;
        let (before, p) = (std::mem::replace(&mut self.b, Mat::zeros(0, 0)), self.x.p());
        self.x = beside(&self.x, &random);
        self.b = Mat::from_fn(self.x.p(), before.ncols(), |i, j| if i < p { before[(i, j)] } else { 0.0 });
        Ok(())
    }

    /// Adds the rounding of `p` columns that joined, whose images have the given one.
    fn count_error(&mut self, p: usize, image_rounding: RoundingBound) {
        // p columns of Z, of length θ₁ at most, were split along a + p directions: every coefficient is a rounded dot.
        let coefficients = ((p * (self.len() + self.x.p())) as f64).sqrt();
        let splitting = coefficients * self.q.unit_ratio() * rounding_of_gram(self.x.d()) * self.largest();
        self.error = self.error.hypot((p as f64).sqrt() * image_rounding.of_image()).hypot(splitting);
    }

    fn largest(&self) -> f64 {
        self.theta.first().copied().unwrap_or(0.0)
    }

    /// S_count: the coefficients of the `count` best Ritz vectors.
    fn coefficients(&self, count: usize) -> MatRef<'_, f64> {
        self.s.as_ref().subcols(0, count.min(self.len()))
    }

    /// What θ_{k+1} and its residual suggest for λ_{k+1}.
    pub(super) fn following(&self, k: usize) -> Option<f64> {
        super::suggested_next(&self.theta, k, *self.residuals(k + 1).get(k)?)
    }

    /// ‖Bsᵢ‖ of the `count` best Ritz pairs, rounding apart.
    pub(super) fn residuals(&self, count: usize) -> Vec<f64> {
        let bs = &self.b * self.coefficients(count);
        (0..bs.ncols()).map(|c| bs.col(c).norm_l2()).collect()
    }

    /// The wanted Ritz vectors and their images, where they were computed anew.
    pub(super) fn recomputed(&self) -> Option<[&Block; 2]> {
        self.recomputed.as_ref().map(|Recomputed { wanted: [w, image], .. }| [w, image])
    }

    /// Gives up the wanted Ritz vectors, where their images were computed anew.
    pub(super) fn take_recomputed(&mut self) -> Option<Block> {
        self.recomputed.take().map(|Recomputed { wanted: [w, _], .. }| w)
    }

    /// The `count` best Ritz vectors W and CW = WΘ + X·BS.
    pub(super) fn best(&self, count: usize) -> (Block, Block) {
        let s = self.coefficients(count);
        let mut w = self.q.product(s);
        let mut image = product(&w, self.projected(w.p()).as_ref());
        add_product(&mut image, &self.x, (&self.b * s).as_ref(), 1.0);
        if self.q.is_single() {
            // WᵀW = I + E with E of the last digits of f32: W(I − E/2) is orthonormal but for E².
            let gram = gram(&w, &w);
            let half = |i, j| f64::from(u8::from(i == j)) * 1.5 - 0.5 * gram[(i, j)];
            let correction = Mat::from_fn(gram.nrows(), gram.ncols(), half);
            (w, image) = (product(&w, correction.as_ref()), product(&image, correction.as_ref()));
        }
        (w, image)
    }

    /// Keeps the `count` best Ritz pairs. X stays orthogonal to them.
    pub(super) fn compress(&mut self, count: usize) {
        let (a, count) = (self.len(), count.min(self.len()));
        self.b = &self.b * self.coefficients(count);
        self.h = self.projected(count);
        self.q.combine(self.s.as_ref().subcols(0, count));
        // The products round once more.
        let rounding = self.q.unit_ratio() * rounding_of_sum(a);
        self.error = self.error.hypot((count as f64).sqrt() * rounding * self.largest());
        self.theta.truncate(count);
        self.s = Mat::identity(count, count);
    }

    /// Leaves the basis but for its `count` best Ritz vectors, which it returns, orthonormal as far as the basis is, for
    /// [`refresh`](Self::refresh).
    pub(super) fn restart(&mut self, count: usize) -> Block {
        let d = self.x.d();
        let vectors = match self.recomputed.take() {
            Some(recomputed) => {
                let [w, _] = recomputed.together();
                w
            }
            None => self.q.product(self.coefficients(count)),
        };
        (self.q, self.x) = (BasisStorage::with_room(d, 0, false), Block::zeros(d, 0));
        vectors
    }

    /// Takes for the basis the Ritz vectors within span(V), from the images Z = CV. V may be of another length than what was there
    /// before. The first k are wanted.
    pub(super) fn refresh(
        &mut self,
        lowdin: Lowdin,
        mut z: Block,
        k: usize,
        image_rounding: RoundingBound,
    ) -> Result<(), Error> {
        let Lowdin { mut v, rotation, stretch } = lowdin;
        (self.q, self.x) = (BasisStorage::with_room(v.d(), 0, false), Block::zeros(v.d(), 0));
        let (theta, s) = small_eigen(&(rotation.transpose() * gram(&v, &z) * &rotation))?;
        let rotation = rotation * s;
        rotate_block(&mut v, rotation.as_ref());
        rotate_block(&mut z, rotation.as_ref());
        let (a, residuals) = (v.p(), residual_norms(&v, &z, &theta));
        self.know_ritz(theta, &residuals);
        let others = [v.split_off(k), z.split_off(k)];
        super::sort_descending(&mut v, &mut z);
        self.error = 0.0;
        self.count_error(a, RoundingBound::new(stretch * image_rounding.of_image()));
        let wanted = (0..k.min(a)).map(|c| rotation.col(c).norm_l1()).fold(0.0, f64::max);
        let rotating = rounding_of_sum(a) * self.largest();
        let error = wanted * (image_rounding.of_image() + rotating);
        self.recomputed = Some(Recomputed { wanted: [v, z], others, error });
        Ok(())
    }

    /// Widens recomputed vectors, of which the first k are wanted, by where the residuals of the `open` ones point, and leaves the `most` best Ritz
    /// vectors; `apply` multiplies by C.
    pub(super) fn polish(
        &mut self,
        open: &[usize],
        [k, most]: [usize; 2],
        apply: impl FnOnce(&Block, &mut Block) -> Result<RoundingBound, Error>,
    ) -> Result<(), Error> {
        let Some(pairs) = &self.recomputed else { return Ok(()) };
        let x = pairs.directions(&self.theta, open, &self.outside.to_block())?;
        let (mut z, p) = (Block::zeros(x.d(), x.p()), x.p());
        let rounding = apply(&x, &mut z)?;
        let Some(pairs) = self.recomputed.take() else { return Ok(()) };
        let Widened { pairs, theta, residuals } =
            pairs.widened(&self.theta, [x, z], [k, most], rounding, self.error)?;
        let a = pairs.len();
        self.recomputed = Some(pairs);
        self.know_ritz(theta, &residuals);
        let rotating = rounding_of_sum(a + p) * self.largest();
        self.error = self.error.hypot((a as f64).sqrt() * rotating);
        self.count_error(p, rounding);
        Ok(())
    }

    /// Sets what follows from Ritz pairs that are the basis: H = Θ, and the norms of their residuals for B.
    fn know_ritz(&mut self, theta: Vec<f64>, residuals: &[f64]) {
        let a = theta.len();
        self.h = Mat::from_fn(a, a, |i, j| if i == j { theta[i] } else { 0.0 });
        self.b = Mat::from_fn(a, a, |i, j| if i == j { residuals[i] } else { 0.0 });
        (self.theta, self.s) = (theta, Mat::identity(a, a));
    }

    /// Finds the X and B that go with recomputed images.
    pub(super) fn complete(&mut self, cancel: &CancelToken) -> Result<(), Error> {
        let Some(recomputed) = self.recomputed.take() else { return Ok(()) };
        let [w, image] = recomputed.together();
        self.q = BasisStorage::with_room(w.d(), self.most.max(2 * w.p()), false);
        self.q.append(&w);
        let BlockQr { h, r } =
            self.q.orthogonalize(&image, self.largest(), self.outside.len(), &mut self.x, cancel)?;
        let r = self.without_outside(r, cancel)?;
        self.h = Mat::from_fn(w.p(), w.p(), |i, j| 0.5 * (h[(i, j)] + h[(j, i)]));
        self.b = r;
        self.solve()
    }

    /// Walks over everything.
    pub(super) fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        self.q.archive("q", self.x.d(), archive)?;
        archive.columns("x", &mut self.x)?;
        let mut is_recomputed = self.recomputed.is_some();
        archive.flag("recomputed", &mut is_recomputed)?;
        if is_recomputed {
            let none = || [Block::zeros(self.x.d(), 0), Block::zeros(self.x.d(), 0)];
            let recomputed = self.recomputed.get_or_insert_with(|| Recomputed {
                wanted: none(),
                others: none(),
                error: f64::INFINITY,
            });
            archive.part("anew", |archive| recomputed.archive(archive))?;
        }
        let (d, a, p) = (self.x.d(), self.len(), self.x.p());
        archive.check("q", a.saturating_add(p) <= d, "has, with X, more vectors than coordinates")?;
        archive.matrix("h", a, a, &mut self.h)?;
        let rows = if is_recomputed { a } else { p };
        archive.matrix("b", rows, a, &mut self.b)?;
        archive.number("error", &mut self.error)?;
        archive.list("theta", &mut self.theta)?;
        archive.check("theta", self.theta.len() == a, "has not one value for each vector")?;
        archive.matrix("s", a, a, &mut self.s)
    }

    /// A bound on the error of the image of any unit vector within the basis, or of those that were recomputed.
    pub(super) fn image_error(&self) -> f64 {
        let rounding = self.q.unit_ratio() * rounding_of_sum(self.len() + self.x.p());
        let of_any = self.error + rounding * self.largest();
        self.recomputed.as_ref().map_or(of_any, |recomputed| recomputed.error.min(of_any))
    }
}

/// Löwdin orthonormalisation, put off: V·`rotation` is orthonormal. V and its images are rotated once, together with the Ritz
/// vectors.
pub(super) struct Lowdin {
    pub(super) v: Block,
    rotation: Mat<f64>,
    /// The most by which a combination of V grows longer than its coefficients were.
    stretch: f64,
}

impl Lowdin {
    /// V itself with (VᵀV)^−½, where its columns are nearly orthonormal, or else an orthonormal basis of its span. Should they not be
    /// independent, random ones take the place of those that are not.
    pub(super) fn new(v: Block, seed: u64) -> Result<Self, Error> {
        /// Gram matrices are the identity up to this; their roots then keep all digits.
        const NEARLY: f64 = 0.1;
        let (d, p) = (v.d(), v.p());
        let gram = gram(&v, &v);
        let (values, vectors) = small_eigen(&gram)?;
        if values.iter().all(|value| (value - 1.0).abs() <= NEARLY) {
            let root = Mat::from_fn(p, p, |i, j| vectors[(i, j)] / values[j].sqrt());
            let stretch = values.last().map_or(1.0, |least| least.sqrt().recip());
            return Ok(Self { v, rotation: root * vectors.transpose(), stretch });
        }
        let mut v = orthonormal_complement(v, &TallBasis::with_room(d, 0))?;
        if v.p() < p {
            v = beside(&v, &random_complement(&TallBasis::of(&v), p - v.p(), seed)?);
        }
        Ok(Self { v, rotation: Mat::identity(p, p), stretch: 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: usize = 2000;
    const P: usize = 4;

    /// C = diag(λ): twenty pairs of values that are 10⁻⁴ apart, and a tail.
    fn image(v: &Block) -> Block {
        let lambda = |j: usize| 0.9_f64.powf((j / 2) as f64) - if j < 40 && j % 2 == 1 { 1e-4 } else { 0.0 };
        let mut z = v.clone();
        let p = v.p();
        for (j, row) in z.values_mut().chunks_exact_mut(p).enumerate() {
            row.iter_mut().for_each(|x| *x *= lambda(j));
        }
        z
    }

    /// ‖CQ − QH − XB‖.
    fn error_of_relation(lanczos: &Lanczos) -> f64 {
        let q = lanczos.q.product(Mat::<f64>::identity(lanczos.len(), lanczos.len()).as_ref());
        let mut rest = image(&q);
        add_product(&mut rest, &q, lanczos.h.as_ref(), -1.0);
        add_product(&mut rest, &lanczos.x, lanczos.b.as_ref(), -1.0);
        rest.norm()
    }

    /// A restart used to replace values that are as close as the worst rounding of single precision by Rayleigh quotients of mixed vectors.
    #[test]
    fn the_relation_survives_restarts_beside_values_that_nearly_agree() {
        for single in [true, false] {
            let start = random_complement(&TallBasis::with_room(D, 0), P, 5).unwrap();
            let mut lanczos = Lanczos::starting_with(start);
            if single {
                lanczos.reserve_in_single(64);
            }
            let roundoff = 0.5 * if single { f64::from(f32::EPSILON) } else { f64::EPSILON };
            let cancel = CancelToken::default();
            for step in 0..60 {
                let z = image(&lanczos.x);
                lanczos.expand(&z, RoundingBound::new(roundoff), 1.0, P, step, true, &cancel).unwrap();
                // In each step P columns are split along all vectors, by dots of D products in sixteen sums; their errors add up in squares.
                let dots = (P * (lanczos.len() + P)) as f64;
                let bound = roundoff * ((step + 1) as f64 * dots * D as f64 / 16.0).sqrt();
                let error = error_of_relation(&lanczos);
                assert!(error <= bound, "step {step}, {single}: {error:e} > {bound:e}");
                let (w, z) = lanczos.best(12);
                let mut off = image(&w);
                off.values_mut().iter_mut().zip(z.values()).for_each(|(x, z)| *x -= z);
                assert!(off.norm() <= bound, "step {step}, {single}: images off by {:e}", off.norm());
                if lanczos.len() + P > 60 {
                    lanczos.compress(30);
                }
            }
            assert!(lanczos.residuals(12).iter().all(|residual| *residual <= 1e-5));
        }
    }
}
