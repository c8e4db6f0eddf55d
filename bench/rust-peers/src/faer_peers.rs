//! faer's Krylov–Schur solvers: `partial_svd` of the matrix, and `partial_self_adjoint_eigen` of AᵀA.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::matmul::matmul;
use faer::matrix_free::eigen::{
    PartialEigenParams, partial_self_adjoint_eigen, partial_self_adjoint_eigen_scratch, partial_svd,
    partial_svd_scratch,
};
use faer::matrix_free::{BiLinOp, LinOp};
use faer::sparse::{SparseRowMatRef, SymbolicSparseRowMatRef};
use faer::{Accum, Col, Mat, MatMut, MatRef, Par};

use crate::data::{Dense, Sparse};
use crate::{Failure, Fit, Found};

/// hbpca's default tolerance.
const TOLERANCE: f32 = 1e-6;

pub fn svd_of_dense(data: &Dense, k: usize) -> Found {
    let values = prepared(data);
    svd(&MatRef::from_row_major_slice(&values, data.n, data.d), k)
}

/// AᵀA is formed: one product, after which a step costs d² instead of nd.
pub fn eigen_of_dense(data: &Dense, k: usize) -> Found {
    let values = prepared(data);
    let a = MatRef::from_row_major_slice(&values, data.n, data.d);
    let mut gram = Mat::<f32>::zeros(data.d, data.d);
    matmul(gram.as_mut(), Accum::Replace, a.transpose(), a, 1.0, Par::rayon(0));
    Found { passes: Some(1), ..eigen(&gram, k) }
}

pub fn svd_of_sparse(data: Sparse) -> Result<Fit, Failure> {
    let starts = narrow(&data.starts)?;
    Ok(Box::new(move |k| Ok(svd(&matrix(&data, &starts), k))))
}

pub fn eigen_of_sparse(data: Sparse) -> Result<Fit, Failure> {
    let starts = narrow(&data.starts)?;
    Ok(Box::new(move |k| {
        let gram = Gram { a: matrix(&data, &starts), reads: AtomicUsize::new(0) };
        let found = eigen(&gram, k);
        Ok(Found { passes: Some(gram.reads.into_inner()), ..found })
    }))
}

fn prepared(data: &Dense) -> Cow<'_, [f32]> {
    if data.raw { Cow::Owned(data.standardised()) } else { Cow::Borrowed(&data.values) }
}

/// faer has row starts of the columns' own width.
fn narrow(starts: &[u64]) -> Result<Vec<u32>, Failure> {
    Ok(starts.iter().map(|&start| u32::try_from(start)).collect::<Result<_, _>>()?)
}

fn matrix<'a>(data: &'a Sparse, starts: &'a [u32]) -> SparseRowMatRef<'a, u32, f32> {
    let pattern = SymbolicSparseRowMatRef::new_checked(data.n, data.d, starts, None, &data.columns);
    SparseRowMatRef::new(pattern, &data.values)
}

fn svd(a: &dyn BiLinOp<f32>, k: usize) -> Found {
    let (n, d, par, params) = (a.nrows(), a.ncols(), Par::rayon(0), PartialEigenParams::default());
    let mut memory = MemBuffer::new(partial_svd_scratch(a, k, par, params));
    let (mut left, mut right, mut values) = (Mat::zeros(n, k), Mat::zeros(d, k), vec![0.0; k]);
    let stack = MemStack::new(&mut memory);
    let done = partial_svd(
        left.as_mut(),
        right.as_mut(),
        &mut values,
        a,
        start(d).as_ref(),
        TOLERANCE,
        par,
        stack,
        params,
    );
    found(right.as_ref(), done.n_converged_eigen)
}

fn eigen(c: &dyn LinOp<f32>, k: usize) -> Found {
    let (d, par, params) = (c.nrows(), Par::rayon(0), PartialEigenParams::default());
    let mut memory = MemBuffer::new(partial_self_adjoint_eigen_scratch(c, k, par, params));
    let (mut vectors, mut values) = (Mat::zeros(d, k), vec![0.0; k]);
    let stack = MemStack::new(&mut memory);
    let done = partial_self_adjoint_eigen(
        vectors.as_mut(),
        &mut values,
        c,
        start(d).as_ref(),
        TOLERANCE,
        par,
        stack,
        params,
    );
    found(vectors.as_ref(), done.n_converged_eigen)
}

fn found(vectors: MatRef<'_, f32>, n_converged: usize) -> Found {
    let k = vectors.ncols();
    let components = (0..k).flat_map(|j| vectors.col(j).iter().map(|&x| f64::from(x))).collect();
    let warning = (n_converged < k).then(|| format!("{n_converged} of {k} pairs converged"));
    Found { components, passes: None, warning }
}

/// A start vector without structure: the fractional parts of multiples of the golden ratio, about 0.
fn start(d: usize) -> Col<f32> {
    Col::from_fn(d, |i| (0.618_033_988_749_895 * (i + 1) as f64).fract() as f32 - 0.5)
}

/// AᵀA as two products.
#[derive(Debug)]
struct Gram<'a> {
    a: SparseRowMatRef<'a, u32, f32>,
    reads: AtomicUsize,
}

impl LinOp<f32> for Gram<'_> {
    fn apply_scratch(&self, rhs_ncols: usize, par: Par) -> StackReq {
        self.a.apply_scratch(rhs_ncols, par).or(self.a.transpose_apply_scratch(rhs_ncols, par))
    }

    fn nrows(&self) -> usize {
        self.a.ncols()
    }

    fn ncols(&self) -> usize {
        self.a.ncols()
    }

    fn apply(&self, out: MatMut<'_, f32>, rhs: MatRef<'_, f32>, par: Par, stack: &mut MemStack) {
        self.reads.fetch_add(2, Ordering::Relaxed);
        let mut image = Mat::zeros(self.a.nrows(), rhs.ncols());
        self.a.apply(image.as_mut(), rhs, par, stack);
        self.a.transpose_apply(out, image.as_ref(), par, stack);
    }

    fn conj_apply(&self, out: MatMut<'_, f32>, rhs: MatRef<'_, f32>, par: Par, stack: &mut MemStack) {
        self.apply(out, rhs, par, stack);
    }
}
