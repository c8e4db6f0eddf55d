//! An orthonormal basis whose exact images are known, and the best that can be drawn from it.
//!
//! What `anchored` does with new directions X, wherever they come from:
//!
//! ```text
//! append     Q ← [Q, X],  CQ ← [CQ, CX],  H = QᵀCQ          X orthonormal, orthogonal to Q
//! ritz       H = SΘSᵀ;  W = Q·S_k,  CW = CQ·S_k             no pass; never loses ground
//! compress   Q ← Q·S_a,  CQ ← CQ·S_a                        keeps the a best Ritz pairs
//! ```
//!
//! Images are only ever combined with orthonormal coefficients. If E is the error of CQ, then ‖\[E, E_X\]‖² ≤ ‖E‖² + ‖E_X‖²
//! and ‖ES‖ ≤ ‖E‖: rounding adds up in squares and is never amplified. That sum is tracked.

use faer::{Mat, MatRef};

use crate::linalg::{TallBasis, gram, small_eigen};
use crate::operator::{CovarianceOperator, Products};
use crate::rounding::{RoundingBound, rounding_of_sum};
use crate::{Archive, Block, Error};

/// Q, CQ and H = QᵀCQ.
#[derive(Clone, Debug)]
pub(super) struct RitzBasis {
    /// Q: d×a, orthonormal.
    pub(super) q: TallBasis<f64>,
    /// CQ: d×a.
    pub(super) cq: TallBasis<f64>,
    /// H = QᵀCQ, a×a.
    h: Mat<f64>,
    /// ‖fl(CQ) − CQ‖ from above; squares of it would leave the range of f64 for data in extreme units.
    error: f64,
    /// Eigenvalues of H, descending, and its eigenvectors S.
    pub(super) theta: Vec<f64>,
    pub(super) s: Mat<f64>,
}

impl RitzBasis {
    pub(super) fn empty(d: usize) -> Self {
        Self {
            q: TallBasis::with_room(d, 0),
            cq: TallBasis::with_room(d, 0),
            h: Mat::zeros(0, 0),
            error: 0.0,
            theta: Vec::new(),
            s: Mat::zeros(0, 0),
        }
    }

    /// Makes room for `a` vectors: growing little by little would take up to three times as much.
    pub(super) fn reserve(&mut self, a: usize) {
        self.q.reserve(a);
        self.cq.reserve(a);
    }

    /// a, the number of vectors.
    pub(super) fn len(&self) -> usize {
        self.q.len()
    }

    /// Appends X with its image Z = CX, each column's error at most `image_rounding`, and solves the small problem.
    pub(super) fn append(
        &mut self,
        x: &Block,
        z: &Block,
        image_rounding: RoundingBound,
    ) -> Result<(), Error> {
        let (a, p) = (self.len(), x.p());
        let (cross, corner) = (self.q.gram(z), gram(x, z));
        let h = Mat::from_fn(a + p, a + p, |i, j| match (i < a, j < a) {
            (true, true) => self.h[(i, j)],
            (true, false) => cross[(i, j - a)],
            (false, true) => cross[(j, i - a)],
            (false, false) => 0.5 * (corner[(i - a, j - a)] + corner[(j - a, i - a)]),
        });
        self.q.append(x);
        self.cq.append(z);
        self.h = h;
        self.error = self.error.hypot((p as f64).sqrt() * image_rounding.of_image());
        (self.theta, self.s) = small_eigen(&self.h)?;
        Ok(())
    }

    /// The `count` best Ritz vectors and their images.
    pub(super) fn best(&self, count: usize) -> (Block, Block) {
        let s = self.coefficients(count);
        (self.q.product(s), self.cq.product(s))
    }

    /// S_count: the coefficients of the `count` best Ritz vectors.
    pub(super) fn coefficients(&self, count: usize) -> MatRef<'_, f64> {
        self.s.as_ref().subcols(0, count.min(self.len()))
    }

    /// Keeps the `count` best Ritz pairs.
    pub(super) fn compress(&mut self, count: usize) {
        let (before, count) = (self.len(), count.min(self.len()));
        let s = self.s.as_ref().subcols(0, count);
        self.q.combine(s);
        self.cq.combine(s);
        // The products round once more.
        let rounding = rounding_of_sum(before) * self.theta.first().copied().unwrap_or(0.0);
        self.error = self.error.hypot((count as f64).sqrt() * rounding);
        self.theta.truncate(count);
        self.h = Mat::from_fn(count, count, |i, j| if i == j { self.theta[i] } else { 0.0 });
        self.s = Mat::identity(count, count);
    }

    /// A bound on the error of the image of any unit vector within the basis.
    pub(super) fn image_error(&self) -> f64 {
        let largest = self.theta.first().copied().unwrap_or(0.0);
        self.error + rounding_of_sum(self.len()) * largest
    }

    /// Walks over everything.
    pub(super) fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        self.q.archive("q", archive)?;
        self.cq.archive("cq", archive)?;
        let (d, a) = (self.q.dim(), self.len());
        archive.check("q", a <= d, "has more vectors than coordinates")?;
        archive.check("cq", self.cq.len() == a, "has not one image for each vector")?;
        archive.matrix("h", a, a, &mut self.h)?;
        archive.number("error", &mut self.error)?;
        archive.list("theta", &mut self.theta)?;
        archive.check("theta", self.theta.len() == a, "has not one value for each vector")?;
        archive.matrix("s", a, a, &mut self.s)
    }

    /// Computes the images anew: one pass, and all rounding gathered so far is gone.
    pub(super) fn refresh(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        let (q, mut z) = (self.q.to_block(), Block::zeros(0, 0));
        let rounding = operator.apply(&q, &mut z)?;
        *self = Self::empty(operator.dim());
        self.append(&q, &z, rounding)
    }
}
