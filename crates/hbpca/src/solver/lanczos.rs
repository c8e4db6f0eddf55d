//! The Lanczos relation: a basis whose images need no memory of their own.
//!
//! ```text
//!            CQ = QH + XB                      [Q, X] orthonormal, H = QᵀCQ
//!
//! expand     Z ← CX;  Q ← [Q, X],  H ← [QᵀCQ, QᵀZ; ·, XᵀZ]     one pass
//!            X ← orth(Z − QQᵀZ),  B ← [0, XᵀZ]
//! ritz       H = SΘSᵀ;  W = QS,  CW = WΘ + X·BS                 no pass; the residual of pair i is ‖Bsᵢ‖
//! compress   Q ← QS_a,  H ← Θ_a,  B ← BS_a                      keeps the a best Ritz pairs
//! refresh    Q ← QS_a;  Z ← CQ;  H ← QᵀZ,  X ← orth(Z − QH),  B ← XᵀZ     one pass; all rounding gathered is gone
//! ```
//!
//! Everything is combined with orthonormal coefficients only, so that the rounding of the relation adds up in squares and
//! is never amplified. That sum is tracked.

use std::ops::AddAssign;

use faer::{Mat, MatRef};

use crate::linalg::{
    Tall, add_product, add_product_of_block, beside, gram_of_blocks, orthonormal_complement, product,
    project_out_block, random_complement, rounding_of_gram, small_eigen,
};
use crate::operator::rounding_of_sum;
use crate::{Archive, Block, Error};

/// Q, H, X and B.
#[derive(Clone, Debug)]
pub(super) struct Lanczos {
    q: Tall,
    h: Mat<f64>,
    /// X: the next block, orthonormal and orthogonal to Q.
    pub(super) x: Block,
    /// B = XᵀCQ.
    b: Mat<f64>,
    /// How many of the last columns of B can be other than zero.
    coupled: usize,
    /// ‖CQ − QH − XB‖ from above.
    error: f64,
    /// Eigenvalues of H, descending, and its eigenvectors S.
    pub(super) theta: Vec<f64>,
    s: Mat<f64>,
}

impl Lanczos {
    /// An empty basis, to be expanded by X.
    pub(super) fn starting_with(x: Block) -> Self {
        let (q, p) = (Tall::empty(x.d()), x.p());
        let empty = Mat::zeros(0, 0);
        Self {
            q,
            h: empty.clone(),
            x,
            b: Mat::zeros(p, 0),
            coupled: 0,
            error: 0.0,
            theta: Vec::new(),
            s: empty,
        }
    }

    /// a, the number of vectors in Q.
    pub(super) fn len(&self) -> usize {
        self.q.len()
    }

    /// Makes room for bases of up to `most` vectors.
    pub(super) fn reserve(&mut self, most: usize) {
        self.q.reserve(most.saturating_sub(self.len()));
    }

    /// Takes X into the basis with its image Z = CX, each column's error at most `image_rounding`. The next X has at
    /// least `width` columns where the space has room for them: what a breakdown takes away is filled up at random.
    pub(super) fn expand(
        &mut self,
        z: &Block,
        image_rounding: f64,
        width: usize,
        seed: u64,
    ) -> Result<(), Error> {
        let (a, p) = (self.len(), self.x.p());
        // QᵀZ = (XᵀCQ)ᵀ = Bᵀ is known up to rounding: what it leaves of Z needs but one look at all of Q.
        let mut left = z.clone();
        let coupled = self.q.view().subcols(a - self.coupled, self.coupled);
        let known = self.b.as_ref().subcols(a - self.coupled, self.coupled).transpose().to_owned();
        add_product(&mut left, coupled, known.as_ref(), -1.0);
        let own = project_out_block(&mut left, &self.x);
        self.q.append(&self.x);
        let mut along = self.leave(left, z)?;
        along.submatrix_mut(a - self.coupled, 0, self.coupled, p).add_assign(&known);
        along.submatrix_mut(a, 0, p, p).add_assign(&own);
        self.h = Mat::from_fn(a + p, a + p, |i, j| match (i < a, j < a) {
            (true, true) => self.h[(i, j)],
            (_, false) if i < a => along[(i, j - a)],
            (false, true) => along[(j, i - a)],
            _ => 0.5 * (along[(i, j - a)] + along[(j, i - a)]),
        });
        self.fill(width, seed)?;
        self.coupled = p;
        self.b = Mat::from_fn(self.x.p(), a + p, |i, j| if j < a { 0.0 } else { self.b[(i, j - a)] });
        self.solve(p, image_rounding)
    }

    /// X ← orth(Y − QQᵀY) and B ← XᵀZ, for the image Z of the last columns of Q and what is left of it, Y; returns QᵀY.
    fn leave(&mut self, y: Block, z: &Block) -> Result<Mat<f64>, Error> {
        let found = orthonormal_complement(y, self.q.view())?;
        self.b = gram_of_blocks(&found.x, z);
        self.x = found.x;
        Ok(found.along)
    }

    /// Fills X up to `width` columns with random ones, whose rows of B are zero.
    pub(super) fn fill(&mut self, width: usize, seed: u64) -> Result<(), Error> {
        let missing = width.min(self.x.d() - self.len()).saturating_sub(self.x.p());
        if missing == 0 {
            return Ok(());
        }
        let mut known = self.q.clone();
        known.append(&self.x);
        let random = random_complement(known.view(), missing, seed)?;
        let (before, p) = (std::mem::replace(&mut self.b, Mat::zeros(0, 0)), self.x.p());
        self.x = beside(&self.x, &random);
        self.b = Mat::from_fn(self.x.p(), before.ncols(), |i, j| if i < p { before[(i, j)] } else { 0.0 });
        Ok(())
    }

    /// Solves the small problem after `p` columns joined whose images have the given rounding.
    fn solve(&mut self, p: usize, image_rounding: f64) -> Result<(), Error> {
        (self.theta, self.s) = small_eigen(&self.h)?;
        // p columns of Z, of length θ₁ at most, were split along a + p directions: every coefficient is a rounded dot.
        let coefficients = ((p * (self.len() + self.x.p())) as f64).sqrt();
        let splitting = coefficients * rounding_of_gram(self.x.d()) * self.largest();
        self.error = self.error.hypot((p as f64).sqrt() * image_rounding).hypot(splitting);
        Ok(())
    }

    fn largest(&self) -> f64 {
        self.theta.first().copied().unwrap_or(0.0)
    }

    /// S_count: the coefficients of the `count` best Ritz vectors.
    fn coefficients(&self, count: usize) -> MatRef<'_, f64> {
        self.s.as_ref().subcols(0, count.min(self.len()))
    }

    /// ‖Bsᵢ‖ of the `count` best Ritz pairs, rounding apart.
    pub(super) fn residuals(&self, count: usize) -> Vec<f64> {
        let bs = &self.b * self.coefficients(count);
        (0..bs.ncols()).map(|c| bs.col(c).norm_l2()).collect()
    }

    /// The `count` best Ritz vectors W and CW = WΘ + X·BS.
    pub(super) fn best(&self, count: usize) -> (Block, Block) {
        let s = self.coefficients(count);
        let w = product(self.q.view(), s);
        let mut image = w.clone();
        let count = w.p().max(1);
        for row in image.values_mut().chunks_exact_mut(count) {
            row.iter_mut().zip(&self.theta).for_each(|(z, theta)| *z *= theta);
        }
        add_product_of_block(&mut image, &self.x, (&self.b * s).as_ref(), 1.0);
        (w, image)
    }

    /// Keeps the `count` best Ritz pairs. X stays orthogonal to them.
    pub(super) fn compress(&mut self, count: usize) {
        let (a, count) = (self.len(), count.min(self.len()));
        self.b = &self.b * self.coefficients(count);
        self.coupled = count;
        self.q.combine(self.s.as_ref().subcols(0, count));
        // The products round once more.
        self.error = self.error.hypot((count as f64).sqrt() * rounding_of_sum(a) * self.largest());
        self.theta.truncate(count);
        self.h = Mat::from_fn(count, count, |i, j| if i == j { self.theta[i] } else { 0.0 });
        self.s = Mat::identity(count, count);
    }

    /// The basis as a block, for [`refresh`](Self::refresh).
    pub(super) fn vectors(&self) -> Block {
        self.q.to_block()
    }

    /// Takes Z = CQ, computed anew, for the images of the basis.
    pub(super) fn refresh(&mut self, z: &Block, image_rounding: f64) -> Result<(), Error> {
        let along = self.leave(z.clone(), z)?;
        let a = self.len();
        self.h = Mat::from_fn(a, a, |i, j| 0.5 * (along[(i, j)] + along[(j, i)]));
        self.error = 0.0;
        self.coupled = a;
        self.solve(a, image_rounding)
    }

    /// Walks over everything.
    pub(super) fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.tall("q", &mut self.q)?;
        archive.columns("x", &mut self.x)?;
        let (d, a, p) = (self.x.d(), self.len(), self.x.p());
        archive.check("q", a.saturating_add(p) <= d, "has, with X, more vectors than coordinates")?;
        archive.matrix("h", a, a, &mut self.h)?;
        archive.matrix("b", p, a, &mut self.b)?;
        archive.size("coupled", &mut self.coupled)?;
        archive.check("coupled", self.coupled <= a, "is more than the vectors there are")?;
        archive.number("error", &mut self.error)?;
        archive.list("theta", &mut self.theta)?;
        archive.check("theta", self.theta.len() == a, "has not one value for each vector")?;
        archive.matrix("s", a, a, &mut self.s)
    }

    /// A bound on the error of the image of any unit vector within the basis.
    pub(super) fn image_error(&self) -> f64 {
        self.error + rounding_of_sum(self.len() + self.x.p()) * self.largest()
    }
}
