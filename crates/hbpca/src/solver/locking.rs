//! Locking: components after a dominating one, as exact as the first.
//!
//! ```text
//!    L ← nothing, k′ ← k;  a solver for k′ components of C
//!    repeat
//! 1      a look and a step of the solver, on PCP with P = I − LLᵀ
//! 2      if rounding is too much for a later component, and m earlier ones are exact enough:
//! 3          L ← [L, w₁, …, w_m],  k′ ← k′ − m
//! 4          a new solver for k′ components of PCP, beginning with w_{m+1}, …
//! ```
//!
//! Source: locking with explicit projection (Stathopoulos 2005; Parlett 1998, section 13.2). Line 1: P is applied before and after every product, so that
//! the [rounding](crate::rounding) along L goes with it. Line 2: [`LockRule`] says when. Where one component is 10¹² times another, the first look
//! finds the one and the second all others. Cost: none where rounding is small enough; else a solver's own passes, anew for every group.

use super::{Pairs, ResidualEstimate, Solver, StepParameters};
use crate::certificate::{LockRule, Locked, Next, Prospect, rest_of, ritz_values};
use crate::linalg::{TallBasis, beside, gram, product, residual_norms, small_eigen};
use crate::operator::{CovarianceOperator, Projected, project_out};
use crate::{Archive, Block, CancelToken, Error, Limits};
use faer::Mat;

/// Makes a solver for what is left.
pub(crate) type Rebuild = Box<dyn Fn(Rest<'_>) -> Result<Box<dyn Solver>, Error>>;

/// What a solver that follows others is to find.
pub(crate) struct Rest<'a> {
    /// How many components.
    pub(crate) k: usize,
    /// Vectors to begin with, orthogonal to the locked ones.
    pub(crate) start: Option<&'a Block>,
    /// L.
    pub(crate) locked: &'a Block,
}

/// A solver, with what it found so far locked.
pub(crate) struct Locking {
    k: usize,
    limits: Limits,
    inner: Box<dyn Solver>,
    rebuild: Rebuild,
    /// L and PCL, group by group.
    vectors: Block,
    images: Block,
    basis: TallBasis<f64>,
    locked: Vec<Locked>,
    /// tr C, and tr PCP from above.
    trace: f64,
    rest: f64,
    /// A bound on λ_{k+1} that an earlier solver proved.
    proved: Option<f64>,
    prospect: Prospect,
    /// L beside the solver's vectors, and images.
    formed: Option<(Block, Block)>,
    cancel: CancelToken,
}

impl Locking {
    /// Lets `inner` find k of d components to within `limits`; `rebuild` makes the solvers that follow it.
    pub(crate) fn new(d: usize, inner: Box<dyn Solver>, limits: Limits, rebuild: Rebuild) -> Self {
        Self {
            k: inner.n_components(),
            limits,
            inner,
            rebuild,
            vectors: Block::zeros(d, 0),
            images: Block::zeros(d, 0),
            basis: TallBasis::with_room(d, 0),
            locked: Vec::new(),
            trace: 0.0,
            rest: 0.0,
            proved: None,
            prospect: Prospect::Nothing,
            formed: None,
            cancel: CancelToken::default(),
        }
    }

    /// How many vectors are locked.
    fn count(&self) -> usize {
        self.vectors.p()
    }

    /// Does `work` with the solver, and PCP.
    fn with_rest<T>(
        &mut self,
        operator: &mut dyn CovarianceOperator,
        work: impl FnOnce(&mut dyn Solver, &mut dyn CovarianceOperator) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.locked.is_empty() {
            return work(&mut *self.inner, operator);
        }
        work(&mut *self.inner, &mut Projected::new(operator, &self.basis, self.rest))
    }

    /// Line 2.
    fn see_prospect(&mut self) {
        let estimate = self.inner.residual_estimate();
        if estimate.as_ref().is_some_and(|estimate| estimate.bound_will_fall) {
            self.prospect = Prospect::Later; // of an image in single precision nothing is lasting
            return;
        }
        let trace = if self.locked.is_empty() { self.trace } else { self.rest };
        let (theta, residuals, image_error) =
            if let Some(ResidualEstimate { thetas, residuals, image_error, .. }) = estimate {
                (thetas, residuals, image_error)
            } else {
                let Pairs { vectors, images, image_error, .. } = self.inner.pairs();
                let theta = ritz_values(vectors, images);
                let residuals = residual_norms(vectors, images, &theta);
                (theta, residuals, image_error)
            };
        let Limits { tol, accuracy, .. } = self.limits;
        let rule = LockRule { theta: &theta, residuals: &residuals, image_error, trace, tol, accuracy };
        // An operator whose rounding did not fall by projecting will not do so next time.
        let falls = self.locked.last().is_none_or(|group| image_error <= 0.5 * group.image_error);
        // A solver that can do no better will not have more exact ones later.
        self.prospect = match rule.prospect() {
            Prospect::Later if self.inner.is_final() => Prospect::Nothing,
            prospect if falls => prospect,
            _ => Prospect::Nothing,
        };
    }

    /// Lines 3 and 4.
    fn lock(&mut self, m: usize) -> Result<(), Error> {
        let before = self.count();
        let image_error = self.inner.pairs().image_error;
        if let Next::Proved(bound) = self.inner.pairs().next {
            self.proved = Some(self.proved.map_or(bound, |known: f64| known.min(bound)));
        }
        let (mut vectors, mut images) = self.take_formed();
        let start = vectors.split_off(before + m);
        images.split_off(before + m);
        self.locked.push(Locked { end: before + m, image_error }); // 3
        (self.vectors, self.images) = (vectors, images);
        self.know_locked();
        let start = (start.p() > 0).then_some(&start);
        self.inner = (self.rebuild)(Rest { k: self.k - self.count(), start, locked: &self.vectors })?; // 4
        self.inner.cancelled_by(&self.cancel);
        Ok(())
    }

    /// Sets what follows from the locked vectors.
    fn know_locked(&mut self) {
        self.basis = TallBasis::of(&self.vectors);
        self.rest = rest_of(self.trace, &ritz_values(&self.vectors, &self.images), &self.locked);
    }

    fn take_formed(&mut self) -> (Block, Block) {
        self.form();
        self.formed.take().unwrap_or_else(|| unreachable!("just formed"))
    }

    /// L beside the solver's vectors, made orthogonal to L; PCPw is the image of Pw.
    fn form(&mut self) {
        if self.formed.is_some() {
            return;
        }
        let Pairs { vectors, images, .. } = self.inner.pairs();
        let (mut w, mut z) = (vectors.clone(), images.clone());
        if self.vectors.p() > 0 {
            project_out(&self.basis, &mut w);
            // (WᵀW)^−½, which is nearly the identity, for both: an eigen-solve that fails leaves W as it is, and the certificate its loss.
            if let Ok(root) = inverse_root(&gram(&w, &w)) {
                (w, z) = (product(&w, root.as_ref()), product(&z, root.as_ref()));
            }
            super::sort_descending(&mut w, &mut z);
        }
        self.formed = Some((beside(&self.vectors, &w), beside(&self.images, &z)));
    }

    /// What is known of λ_{k+1}.
    fn next(&self, next: Next) -> Next {
        match (self.proved, next) {
            (Some(known), Next::Proved(bound)) => Next::Proved(known.min(bound)),
            (Some(known), Next::Unknown) => Next::Proved(known),
            (_, next) => next,
        }
    }
}

/// G^−½; directions that vanished stay as they are.
fn inverse_root(gram: &Mat<f64>) -> Result<Mat<f64>, Error> {
    let (values, vectors) = small_eigen(gram)?;
    let root = |x: f64| if x > f64::EPSILON { x.sqrt().recip() } else { 1.0 };
    let scaled = Mat::from_fn(values.len(), values.len(), |i, j| vectors[(i, j)] * root(values[j]));
    Ok(scaled * vectors.transpose())
}

impl Solver for Locking {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn n_components(&self) -> usize {
        self.k
    }

    fn look(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.formed = None;
        self.with_rest(operator, |solver, operator| solver.look(operator))?; // 1
        self.trace = operator.total_variance();
        self.see_prospect();
        Ok(())
    }

    fn form_pairs(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        self.formed = None;
        self.with_rest(operator, |solver, operator| solver.form_pairs(operator))?;
        self.see_prospect();
        Ok(())
    }

    fn pairs(&mut self) -> Pairs<'_> {
        let may_lock = self.prospect != Prospect::Nothing;
        if self.locked.is_empty() {
            return Pairs { may_lock, ..self.inner.pairs() };
        }
        self.form();
        let Pairs { image_error, next, .. } = self.inner.pairs();
        let next = self.next(next);
        let (vectors, images) = self.formed.as_ref().unwrap_or_else(|| unreachable!("just formed"));
        Pairs { vectors, images, image_error, next, locked: &self.locked, may_lock }
    }

    fn take_vectors(&mut self) -> Block {
        if self.locked.is_empty() { self.inner.take_vectors() } else { self.take_formed().0 }
    }

    fn residual_estimate(&self) -> Option<ResidualEstimate> {
        let mut estimate = self.inner.residual_estimate()?;
        estimate.bound_will_fall |= self.prospect != Prospect::Nothing;
        if let Some(theta) = ritz_values(&self.vectors, &self.images).first() {
            estimate.theta = *theta;
        }
        Some(estimate)
    }

    fn looks_left(&self, tol: f64) -> Option<f64> {
        if self.locked.is_empty() { self.inner.looks_left(tol) } else { None }
    }

    fn may_miss_multiplicity(&mut self) -> Result<bool, Error> {
        self.inner.may_miss_multiplicity()
    }

    fn is_final(&self) -> bool {
        self.prospect == Prospect::Nothing && self.inner.is_final()
    }

    fn search(&mut self) -> Result<bool, Error> {
        self.inner.search()
    }

    fn cancelled_by(&mut self, token: &CancelToken) {
        self.cancel = token.clone();
        self.inner.cancelled_by(token);
    }

    fn step(&mut self, operator: &mut dyn CovarianceOperator) -> Result<(), Error> {
        if let Prospect::Now(m) = self.prospect {
            return self.lock(m); // 2
        }
        self.formed = None;
        self.with_rest(operator, |solver, operator| solver.step(operator))
    }

    fn passes_ahead(&self, n_rows: usize) -> f64 {
        // A solver that begins anew looks once.
        if let Prospect::Now(_) = self.prospect { 1.0 } else { self.inner.passes_ahead(n_rows) }
    }

    fn parameters(&self) -> StepParameters {
        self.inner.parameters()
    }

    fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        // Runs of earlier versions had nothing locked, and did not say so.
        let mut groups = self.locked.len();
        if archive.has("locked.groups") {
            archive.size("locked.groups", &mut groups)?;
            archive.check("locked.groups", groups < self.k, "is as large as the number of components")?;
            archive.number("locked.trace", &mut self.trace)?;
        } else {
            groups = 0;
        }
        if groups > 0 {
            archive.part("locked", |archive| self.archive_locked(groups, archive))?;
        }
        self.inner.archive(archive)?;
        if archive.is_restoring() {
            self.formed = None;
            self.see_prospect();
        }
        Ok(())
    }
}

impl Locking {
    fn archive_locked(&mut self, groups: usize, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.columns("vectors", &mut self.vectors)?;
        archive.columns("images", &mut self.images)?;
        let count = self.vectors.p();
        archive.check("images", self.images.p() == count, "has not one column for each vector")?;
        archive.check("vectors", count > 0 && count < self.k, "has not between 1 and k − 1 columns")?;
        let mut ends: Vec<f64> = self.locked.iter().map(|group| group.end as f64).collect();
        let mut errors: Vec<f64> = self.locked.iter().map(|group| group.image_error).collect();
        archive.list("ends", &mut ends)?;
        archive.list("errors", &mut errors)?;
        archive.optional("proved", &mut self.proved)?;
        let ascending = ends.iter().all(|end| *end >= 1.0) && ends.is_sorted_by(|a, b| a < b);
        let fits = ends.len() == groups && errors.len() == groups && ends.last() == Some(&(count as f64));
        archive.check("ends", ascending && fits, "are not the ends of so many groups")?;
        if archive.is_restoring() {
            let group =
                |(end, image_error): (&f64, &f64)| Locked { end: *end as usize, image_error: *image_error };
            self.locked = ends.iter().zip(&errors).map(group).collect();
            self.know_locked();
            self.inner = (self.rebuild)(Rest { k: self.k - count, start: None, locked: &self.vectors })?;
            self.inner.cancelled_by(&self.cancel);
        }
        Ok(())
    }
}
