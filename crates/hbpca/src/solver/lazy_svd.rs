//! LazySVD: one component after another, each by shift-and-invert on what is left.
//!
//! ```text
//!    V ← nothing;  v, R ← k orthonormal vectors, random or given;  P = I − VVᵀ
//!    repeat
//! 1      R ← an orthonormal basis of (I − vvᵀ)PR
//! 2      [g, Z] ← C[v, R]                                     one full pass
//! 3      Rayleigh–Ritz on [V, v, R]                           no pass; what is certified
//! 4      if v is exact enough, and not the last:  V ← [V, v];  v ← the best Ritz vector of R, which loses it
//! 5      a step of shift-invert-agd for v, on PCP             its lines 2 to 4, with Pg for the image of v
//! 6      R ← Z                                                a power step
//! ```
//!
//! Source: Allen-Zhu & Li 2016 (LazySVD: k times the leading vector of the deflated matrix by an approximate shift-and-invert method), with the accelerated gradient of
//! `shift-invert-agd` inside. Deviations: the vectors that wait in R, whose images the certificate needs anyhow, take power steps (line 6), and the next one begins with the
//! best of them and not at random; Rayleigh–Ritz (line 3) shows the best of the k vectors, and does not change them. v is exact enough where its residual and rounding
//! are half of what the tolerance allows, or rounding is all there is.
//! Their theory needs no gap inside the k sought: a vector is left at a relative accuracy, and may be a mixture of close eigenvectors. Here v waits for its own residual, which
//! in a cluster tighter than the k-th gap takes 1/√(gap inside) passes; before that lines 3 and 6 may end the run, without acceleration.
//! Choose it to compare with: the passes of all components add up, where blocks share them (`krylov`, `anchored`). Cost of a step: 1 pass.

use super::shift_invert_agd::AcceleratedSteps;
use super::shifted::ShiftedSystem;
use super::{Pairs, Solver, StepParameters};
use crate::certificate::Next;
use crate::linalg::{
    TallBasis, beside, gram, orthonormal_complement, product, random_complement, small_eigen,
};
use crate::operator::{CovarianceOperator, Products, project_out};
use crate::policy::Start;
use crate::rounding::rounding_of_sum;
use crate::{Archive, Block, Error};

/// k components by deflation.
#[derive(Clone, Debug)]
pub struct LazySvd {
    k: usize,
    tol: f64,
    seed: u64,
    /// V and CV.
    found: Block,
    found_images: Block,
    /// v as the iterate of its system.
    system: ShiftedSystem,
    inner: AcceleratedSteps,
    /// R and Z.
    waiting: Block,
    waiting_images: Block,
    /// Cv, of which the system sees PCv.
    g: Block,
    trace: f64,
    image_error: f64,
    /// Ritz vectors of all k and their images.
    ritz: Block,
    ritz_images: Block,
}

impl LazySvd {
    /// k ≤ d components, from random directions and, where given, the columns of `start`.
    pub fn new(d: usize, k: usize, seed: u64, start: Option<&Block>) -> Result<Self, Error> {
        super::check_components(k, d)?;
        let nothing = || TallBasis::with_room(d, 0);
        let given = match start {
            Some(start) => {
                super::check_start(start, d)?;
                orthonormal_complement(start.leading(start.p().min(k)), &nothing())?
            }
            None => Block::zeros(d, 0),
        };
        let mut all = beside(&given, &random_complement(&TallBasis::of(&given), k - given.p(), seed)?);
        let waiting = all.split_off(1);
        let system = ShiftedSystem::new(d, &Start::Given(all))?;
        let none = || Block::zeros(d, 0);
        Ok(Self {
            k,
            tol: 0.0,
            seed,
            found: none(),
            found_images: none(),
            system,
            inner: AcceleratedSteps::new(d),
            waiting_images: Block::zeros(d, waiting.p()),
            waiting,
            g: Block::zeros(d, 1),
            trace: 0.0,
            image_error: 0.0,
            ritz: Block::zeros(d, k),
            ritz_images: Block::zeros(d, k),
        })
    }

    /// Residuals of `tol`·θ are enough.
    #[must_use]
    pub fn aiming_at(self, tol: f64) -> Self {
        Self { tol, ..self }
    }

    /// Line 1: v and R orthonormal, and orthogonal to V.
    fn orthonormalize(&mut self) -> Result<(), Error> {
        let mut basis = TallBasis::of(&self.found);
        self.system.keep_orthogonal_to(&basis);
        basis.append(self.system.vector());
        let p = self.waiting.p();
        let mut waiting =
            orthonormal_complement(std::mem::replace(&mut self.waiting, Block::zeros(0, 0)), &basis)?;
        if waiting.p() < p {
            basis.append(&waiting);
            waiting = beside(&waiting, &random_complement(&basis, p - waiting.p(), self.seed)?);
        }
        self.waiting = waiting;
        Ok(())
    }

    /// Line 3.
    fn rayleigh_ritz(&mut self) -> Result<(), Error> {
        let vectors = beside(&beside(&self.found, self.system.vector()), &self.waiting);
        let images = beside(&beside(&self.found_images, &self.g), &self.waiting_images);
        let (_, rotation) = small_eigen(&gram(&vectors, &images))?;
        self.ritz = product(&vectors, rotation.as_ref());
        self.ritz_images = product(&images, rotation.as_ref());
        super::sort_descending(&mut self.ritz, &mut self.ritz_images);
        Ok(())
    }

    /// Whether v is as exact as it need be, or can be.
    fn is_found(&self) -> bool {
        let (theta, residual) = self.system.rayleigh_quotient_and_residual();
        let enough = residual + self.image_error <= 0.5 * self.tol * theta;
        enough || residual <= 2.0 * self.image_error
    }

    /// Line 4.
    fn deflate(&mut self) -> Result<(), Error> {
        self.found = beside(&self.found, self.system.vector());
        self.found_images = beside(&self.found_images, &self.g);
        let (_, rotation) = small_eigen(&gram(&self.waiting, &self.waiting_images))?;
        let mut waiting = product(&self.waiting, rotation.as_ref());
        let mut images = product(&self.waiting_images, rotation.as_ref());
        (self.waiting, self.waiting_images) = (waiting.split_off(1), images.split_off(1));
        self.system = ShiftedSystem::new(waiting.d(), &Start::Given(waiting))?;
        self.g = images;
        self.show_image();
        Ok(())
    }

    /// Lets the system see PCv, and tr PCP.
    fn show_image(&mut self) {
        let mut image = self.g.clone();
        project_out(&TallBasis::of(&self.found), &mut image);
        let known: f64 = crate::certificate::ritz_values(&self.found, &self.found_images).iter().sum();
        // What rounding leaves of a trace that is used up.
        let rest = (self.trace - known).max(self.image_error * self.k as f64);
        self.system.see(&image, self.image_error, rest);
    }
}

impl Solver for LazySvd {
    fn name(&self) -> &'static str {
        "lazy-svd"
    }

    fn n_components(&self) -> usize {
        self.k
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.orthonormalize()?; // 1
        let both = beside(self.system.vector(), &self.waiting);
        let mut images = Block::zeros(both.d(), both.p());
        let rounding = operator.apply(&both, &mut images)?; // 2
        self.trace = operator.total_variance();
        // Rotating images rounds once more.
        self.image_error = self.image_error.max(rounding.of_image() + rounding_of_sum(self.k) * self.trace);
        self.waiting_images = images.split_off(1);
        self.g = images;
        self.show_image();
        self.rayleigh_ritz() // 3
    }

    fn pairs(&mut self) -> Pairs<'_> {
        let next = if self.k == self.ritz.d() { Next::Nothing } else { Next::Unknown };
        Pairs::new(&self.ritz, &self.ritz_images, self.image_error, next)
    }

    fn step(&mut self, _operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        if self.waiting.p() > 0 && self.is_found() {
            self.deflate()?; // 4
        }
        self.inner.step(&mut self.system); // 5
        self.waiting.copy_from(&self.waiting_images); // 6
        Ok(())
    }

    fn passes_ahead(&self, _n_rows: usize) -> f64 {
        1.0
    }

    fn parameters(&self) -> StepParameters {
        StepParameters { beta: Some(AcceleratedSteps::beta(&self.system)), ..StepParameters::default() }
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        for (name, block) in [
            ("found", &mut self.found),
            ("found_images", &mut self.found_images),
            ("waiting", &mut self.waiting),
            ("waiting_images", &mut self.waiting_images),
        ] {
            archive.columns(name, block)?;
        }
        let (found, waiting) = (self.found.p(), self.waiting.p());
        archive.check("found", found + 1 + waiting == self.k, "and what waits are not k vectors")?;
        archive.check(
            "found_images",
            self.found_images.p() == found,
            "has not one column for each vector",
        )?;
        let images = self.waiting_images.p();
        archive.check("waiting_images", images == waiting, "has not one column for each vector")?;
        archive.part("inner", |archive| self.inner.archive(archive))?;
        archive.block("g", &mut self.g)?;
        archive.number("trace", &mut self.trace)?;
        archive.number("image_error", &mut self.image_error)?;
        archive.part("system", |archive| self.system.archive(archive))?;
        if archive.is_restoring() {
            self.rayleigh_ritz()?;
        }
        Ok(())
    }
}
