//! A matrix in memory that pretends to lie on disk.
#![allow(dead_code, reason = "each test file uses its part")]

use std::ops::Range;

use hbpca::missing::Missing;
use hbpca::{CancelToken, Csr, Dense, Error, Matrix, RowChunks, RowSurvey};

/// Hands out copies of the rows of a matrix, chunk by chunk.
pub struct Chunked<'a> {
    matrix: &'a Matrix<'a>,
    starts: Vec<usize>,
    failing_at: Option<usize>,
    abandoning: Option<(usize, CancelToken)>,
    in_order: bool,
}

impl<'a> Chunked<'a> {
    pub fn new(matrix: &'a Matrix<'a>, starts: &[usize]) -> Self {
        Self { matrix, starts: starts.to_vec(), failing_at: None, abandoning: None, in_order: false }
    }

    /// Fails to read chunk i.
    pub fn failing_at(self, i: usize) -> Self {
        Self { failing_at: Some(i), ..self }
    }

    /// Has whole chunks alone: no single rows.
    pub fn in_order(self) -> Self {
        Self { in_order: true, ..self }
    }

    /// What a pass finds before the fit.
    pub fn survey(&mut self, weights: Option<&[f64]>, missing: Missing) -> Result<RowSurvey, Error> {
        let mut survey = RowSurvey::of_columns(self.n_cols()).completed_by(missing);
        for i in 0..self.starts.len() - 1 {
            let chunk = self.read_chunk(i, None)?;
            match weights {
                None => survey.add(&chunk)?,
                Some(weights) => survey.add_weighted(&chunk, &weights[self.starts[i]..self.starts[i + 1]])?,
            }
        }
        Ok(survey)
    }

    fn rows(&self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        let (n, d) = (rows.len(), self.n_cols());
        Ok(match self.matrix {
            Matrix::DenseF32(x) => Dense::deferring_finite_check(dense(x, rows).into(), n, d)?.into(),
            Matrix::DenseF64(x) => Dense::deferring_finite_check(dense(x, rows).into(), n, d)?.into(),
            Matrix::CsrF32(x) => csr(x, rows)?.into(),
            Matrix::CsrF64(x) => csr(x, rows)?.into(),
        })
    }

    /// Abandons the run when chunk i is read.
    pub fn abandoning_at(self, i: usize, token: &CancelToken) -> Self {
        Self { abandoning: Some((i, token.clone())), ..self }
    }
}

impl RowChunks for Chunked<'_> {
    fn n_rows(&self) -> usize {
        self.matrix.n_rows()
    }
    fn n_cols(&self) -> usize {
        self.matrix.n_cols()
    }
    fn nnz(&self) -> usize {
        self.matrix.nnz()
    }
    fn is_sparse(&self) -> bool {
        self.matrix.is_sparse()
    }
    fn bytes(&self) -> u64 {
        self.matrix.bytes_per_pass() as u64
    }
    fn starts(&self) -> &[usize] {
        &self.starts
    }
    fn read_chunk(&mut self, i: usize, _recycled: Option<Matrix<'static>>) -> Result<Matrix<'static>, Error> {
        if self.failing_at == Some(i) {
            return Err(Error::Source(format!("chunk {i} is gone").into()));
        }
        if let Some((at, token)) = &self.abandoning
            && *at == i
        {
            token.abandon();
        }
        self.rows(self.starts[i]..self.starts[i + 1])
    }
    fn read_rows(&mut self, rows: Range<usize>) -> Result<Matrix<'static>, Error> {
        if self.in_order {
            return Err(Error::Source("single rows cannot be read".into()));
        }
        self.rows(rows)
    }
}

fn dense<T: hbpca::Real>(x: &Dense<'_, T>, rows: Range<usize>) -> Vec<T> {
    rows.flat_map(|l| x.row(l)).copied().collect()
}

fn csr<T: hbpca::Real>(x: &Csr<'_, T>, rows: Range<usize>) -> Result<Csr<'static, T>, Error> {
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for l in rows {
        let (row_columns, row_values) = x.row_slices(l);
        columns.extend_from_slice(row_columns);
        values.extend_from_slice(row_values);
        starts.push(columns.len());
    }
    Csr::deferring_finite_check(x.n_cols(), starts, columns, values)
}

/// Uniform numbers in (−1, 1), the same every time.
fn uniform(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// Dense f32 rows with means, falling deviations and correlations.
pub fn dense_problem(n: usize, d: usize) -> Matrix<'static> {
    let mut random = uniform(1);
    let mut values = Vec::with_capacity(n * d);
    for _ in 0..n {
        let common = random();
        for j in 0..d {
            let own = random() * 0.8_f32.powi(i32::try_from(j).unwrap());
            values.push(3.0 + j as f32 + common + 2.0 * own);
        }
    }
    Dense::new(values, n, d).unwrap().into()
}

/// Compressed f32 rows of counts, a third of them not zero.
pub fn sparse_problem(n: usize, d: usize) -> Matrix<'static> {
    let mut random = uniform(2);
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..n {
        for j in 0..d {
            if random() > 0.3 + 0.5 * j as f32 / d as f32 {
                columns.push(j as u32);
                values.push((random().abs() * 9.0).ceil());
            }
        }
        starts.push(columns.len());
    }
    Csr::new(d, starts, columns, values).unwrap().into()
}

/// Dense f32 rows whose covariance has eigenvalues that fall by `ratio`.
pub fn decaying_problem(n: usize, d: usize, ratio: f32) -> Matrix<'static> {
    let mut random = uniform(3);
    let scales: Vec<f32> = (0..d).map(|j| ratio.powf(j as f32 / 2.0)).collect();
    let values = (0..n * d).map(|i| 1.0 + scales[i % d] * random()).collect();
    Dense::new(values, n, d).unwrap().into()
}
