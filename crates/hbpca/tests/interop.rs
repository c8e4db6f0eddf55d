//! Matrices of other crates: what is promised to be borrowed is, what is copied has the same values, and fits have the same bits
//! as those of plain rows.
#![cfg(any(feature = "faer", feature = "nalgebra", feature = "ndarray", feature = "sprs"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hbpca::{Block, Dense, Error, FitConfig, Matrix, Model, Real};

const N: usize = 70;
const D: usize = 37;

/// Entry (i, j) of the test matrix.
fn entry(i: usize, j: usize) -> f64 {
    ((i * 31 + j * 17 + i * j * 7) % 101) as f64 - 50.0 + if j == i % 5 { 40.0 } else { 0.0 }
}

/// n×d values, row-major.
fn values<T: Real>(n: usize, d: usize) -> Vec<T> {
    (0..n).flat_map(|i| (0..d).map(move |j| T::from_f64(entry(i, j)))).collect()
}

fn fit(x: impl Into<Matrix<'static>>) -> Model {
    fit_of(&x.into())
}

fn fit_of(x: &Matrix<'_>) -> Model {
    FitConfig { k: 3, ..FitConfig::default() }.fit(x).unwrap().model
}

fn bits(model: &Model) -> Vec<u64> {
    model.components().iter().chain(model.eigenvalues()).map(|x| x.to_bits()).collect()
}

#[track_caller]
fn assert_rows<T: Real>(x: &Dense<'_, T>, n: usize, d: usize, at: impl Fn(usize, usize) -> f64) {
    assert_eq!((x.n_rows(), x.n_cols()), (n, d));
    for i in 0..n {
        let want: Vec<T> = (0..d).map(|j| T::from_f64(at(i, j))).collect();
        assert_eq!(x.row(i), want, "row {i}");
    }
}

#[track_caller]
fn assert_too_large<T: std::fmt::Debug>(x: Result<T, Error>) {
    let text = x.unwrap_err().to_string();
    assert!(text.starts_with("view = ") && text.contains("give fewer rows"), "{text}");
}

#[track_caller]
fn assert_empty<T: std::fmt::Debug>(x: Result<T, Error>, n: usize, d: usize) {
    match x.unwrap_err() {
        Error::Empty { n: rows, d: columns } => assert_eq!((rows, columns), (n, d)),
        other => panic!("{other}"),
    }
}

#[track_caller]
fn assert_not_finite<T: std::fmt::Debug>(x: Result<T, Error>, at: (usize, usize)) {
    match x.unwrap_err() {
        Error::NotFinite { row, column, .. } => assert_eq!((row, column), at),
        other => panic!("{other}"),
    }
}

#[allow(dead_code, reason = "sparse matrices are no blocks")]
fn block() -> Block {
    Block::from_values(5, 3, values(5, 3)).unwrap()
}

#[cfg(feature = "ndarray")]
mod arrays {
    use super::*;
    use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, ShapeBuilder, arr0, arr1, s};

    fn array<T: Real>() -> Array2<T> {
        Array2::from_shape_vec((N, D), values(N, D)).unwrap()
    }

    fn standard_layout_is_borrowed<T: Real>() {
        let x = array::<T>();
        for rows in [Dense::try_from(x.view()).unwrap(), Dense::try_from(&x).unwrap()] {
            assert_eq!(rows.values().as_ptr(), x.as_ptr());
            assert_rows(&rows, N, D, entry);
        }
        let some = x.slice(s![3..9, ..]);
        let rows = Dense::try_from(some).unwrap();
        assert_eq!(rows.values().as_ptr(), some.as_ptr());
        assert_rows(&rows, 6, D, |i, j| entry(i + 3, j));
        // One row, or one column of one: the stride of an axis with one entry does not matter.
        let row = Dense::try_from(x.slice(s![4..5, 2..9])).unwrap();
        assert_eq!(row.values().as_ptr(), &raw const x[[4, 2]]);
        assert_rows(&row, 1, 7, |_, j| entry(4, j + 2));
    }

    #[test]
    fn standard_layout_is_borrowed_in_both_precisions() {
        standard_layout_is_borrowed::<f32>();
        standard_layout_is_borrowed::<f64>();
    }

    #[test]
    fn every_other_layout_is_copied() {
        let x = array::<f64>();
        let copied = |view: ArrayView2<'_, f64>, at: &dyn Fn(usize, usize) -> f64| {
            let rows = Dense::try_from(view).unwrap();
            assert_ne!(rows.values().as_ptr(), view.as_ptr());
            assert_rows(&rows, view.nrows(), view.ncols(), at);
        };
        copied(x.t(), &|i, j| entry(j, i));
        copied(x.slice(s![..;-1, ..]), &|i, j| entry(N - 1 - i, j));
        copied(x.slice(s![.., ..;-1]), &|i, j| entry(i, D - 1 - j));
        copied(x.slice(s![..;-3, ..;-2]), &|i, j| entry(N - 1 - 3 * i, D - 1 - 2 * j));
        copied(x.slice(s![..;2, ..]), &|i, j| entry(2 * i, j));
        copied(x.slice(s![.., 1..4]), &|i, j| entry(i, j + 1));
        copied(arr1(&values::<f64>(1, 4)).broadcast((6, 4)).unwrap(), &|_, j| entry(0, j));
        let by_columns = Array2::from_shape_fn((N, D).f(), |(i, j)| entry(i, j));
        copied(by_columns.view(), &entry);
    }

    #[test]
    fn the_other_half_of_a_split_array_may_be_written_to() {
        let mut x = array::<f64>();
        let (left, mut right) = x.view_mut().split_at(Axis(1), 4);
        let rows = Dense::try_from(&left).unwrap();
        right.fill(0.0);
        assert_rows(&rows, N, 4, entry);
    }

    #[test]
    fn fits_have_the_same_bits() {
        let x = array::<f64>();
        let want = bits(&fit(Dense::new(values::<f64>(N, D), N, D).unwrap()));
        assert_eq!(bits(&fit_of(&Matrix::try_from(x.view()).unwrap())), want);
        assert_eq!(bits(&fit_of(&Matrix::try_from(&x.t().to_owned().reversed_axes()).unwrap())), want);
        let single = array::<f32>();
        let want = bits(&fit(Dense::new(values::<f32>(N, D), N, D).unwrap()));
        assert_eq!(bits(&fit_of(&Matrix::try_from(&single).unwrap())), want);
    }

    #[test]
    fn no_view_panics() {
        for (n, d) in [(0, 0), (0, 3), (3, 0)] {
            let x = Array2::<f64>::zeros((n, d));
            assert_empty(Dense::try_from(x.view()), n, d);
            assert_empty(Matrix::try_from(x.t()), d, n);
        }
        let nothing = Array2::<f32>::zeros((0, 1 << 60));
        assert_empty(Dense::try_from(nothing.slice(s![..;-1, ..;-1])), 0, 1 << 60);
        let mut x = array::<f64>();
        x[[5, 6]] = f64::NAN;
        assert_not_finite(Dense::try_from(&x), (5, 6));
        assert_not_finite(Dense::try_from(x.t()), (6, 5));
        let one = arr0(1.0);
        assert_too_large(Dense::try_from(one.broadcast((1 << 40, 1 << 20)).unwrap()));
        assert_too_large(Block::try_from(one.broadcast((1 << 40, 1 << 20)).unwrap()));
    }

    #[test]
    fn results_are_borrowed() {
        let model = fit(Dense::new(values::<f64>(N, D), N, D).unwrap());
        let components = model.components_ndarray();
        assert_eq!((components.dim(), components.as_ptr()), ((3, D), model.components().as_ptr()));
        assert_eq!(components.row(1).to_slice().unwrap(), model.component(1));

        let mut block = block();
        let view = ArrayView2::from(&block);
        assert_eq!((view.dim(), view.as_ptr()), ((5, 3), block.values().as_ptr()));
        assert_eq!(Block::try_from(view).unwrap(), block);
        assert_eq!(Block::try_from(view.t()).unwrap().column(2), &block.values()[6..9]);
        ArrayViewMut2::from(&mut block)[[4, 1]] = 7.5;
        assert_eq!(block.get(4, 1).to_bits(), 7.5_f64.to_bits());
        assert_eq!(ArrayView2::from(&Block::zeros(4, 0)).dim(), (4, 0));
    }
}

#[cfg(feature = "faer")]
mod faer_views {
    use super::*;
    use faer::{Mat, MatMut, MatRef};

    fn row_major_is_borrowed<T: Real>() {
        let values = values::<T>(N, D);
        let x = MatRef::from_row_major_slice(&values, N, D);
        let rows = Dense::try_from(x).unwrap();
        assert_eq!(rows.values().as_ptr(), values.as_ptr());
        assert_rows(&rows, N, D, entry);
        let some = Dense::try_from(x.subrows(3, 6)).unwrap();
        assert_eq!(some.values().as_ptr(), values[3 * D..].as_ptr());
        assert_rows(&some, 6, D, |i, j| entry(i + 3, j));
        let row = Dense::try_from(x.submatrix(4, 2, 1, 7)).unwrap();
        assert_eq!(row.values().as_ptr(), values[4 * D + 2..].as_ptr());
        assert_rows(&row, 1, 7, |_, j| entry(4, j + 2));
        // A column of a column-major matrix is one of rows of one value.
        let column = MatRef::from_column_major_slice(&values, D, N).subcols(5, 1);
        let rows = Dense::try_from(column).unwrap();
        assert_eq!(rows.values().as_ptr(), values[5 * D..].as_ptr());
        assert_rows(&rows, D, 1, |i, _| entry(5, i));
        // Strides that the type knows.
        assert!(Dense::try_from(x.try_as_row_major().unwrap()).is_ok());
    }

    #[test]
    fn row_major_is_borrowed_in_both_precisions() {
        row_major_is_borrowed::<f32>();
        row_major_is_borrowed::<f64>();
    }

    #[test]
    fn every_other_layout_is_copied() {
        let values = values::<f64>(N, D);
        let x = MatRef::from_row_major_slice(&values, N, D);
        let copied = |view: MatRef<'_, f64>, at: &dyn Fn(usize, usize) -> f64| {
            let rows = Dense::try_from(view).unwrap();
            assert_ne!(rows.values().as_ptr(), view.as_ptr());
            assert_rows(&rows, view.nrows(), view.ncols(), at);
        };
        copied(x.transpose(), &|i, j| entry(j, i));
        copied(x.reverse_rows(), &|i, j| entry(N - 1 - i, j));
        copied(x.reverse_cols(), &|i, j| entry(i, D - 1 - j));
        copied(x.reverse_rows_and_cols(), &|i, j| entry(N - 1 - i, D - 1 - j));
        copied(x.subcols(1, 3), &|i, j| entry(i, j + 1));
        copied(MatRef::from_repeated_row(x.row(2), 6), &|_, j| entry(2, j));
        let own = Mat::from_fn(N, D, entry);
        copied(own.as_ref(), &entry);
        // With faer's padding between the columns, which nobody has written.
        copied(own.transpose(), &|i, j| entry(j, i));
        assert_rows(&Dense::try_from(&own).unwrap(), N, D, entry);
    }

    #[test]
    fn fits_have_the_same_bits() {
        let double = values::<f64>(N, D);
        let want = bits(&fit(Dense::new(double.clone(), N, D).unwrap()));
        let x = MatRef::from_row_major_slice(&double, N, D);
        assert_eq!(bits(&fit_of(&Matrix::try_from(x).unwrap())), want);
        assert_eq!(bits(&fit_of(&Matrix::try_from(&Mat::from_fn(N, D, entry)).unwrap())), want);
        let single = values::<f32>(N, D);
        let want = bits(&fit(Dense::new(single.clone(), N, D).unwrap()));
        let x = MatRef::from_row_major_slice(&single, N, D);
        assert_eq!(bits(&fit_of(&Matrix::try_from(x).unwrap())), want);
    }

    #[test]
    fn no_view_panics() {
        for (n, d) in [(0, 0), (0, 3), (3, 0)] {
            let x = Mat::<f64>::zeros(n, d);
            assert_empty(Dense::try_from(&x), n, d);
            assert_empty(Matrix::try_from(x.transpose()), d, n);
            assert_empty(Dense::try_from(x.as_ref().reverse_rows_and_cols()), n, d);
        }
        let mut x = Mat::from_fn(N, D, entry);
        x[(5, 6)] = f64::NEG_INFINITY;
        assert_not_finite(Dense::try_from(&x), (5, 6));
        assert_not_finite(Dense::try_from(x.transpose()), (6, 5));
        assert_too_large(Dense::try_from(MatRef::from_repeated_ref(&1.0, 1_usize << 40, 1_usize << 40)));
        assert_too_large(Block::try_from(MatRef::from_repeated_ref(&1.0, 1_usize << 40, 1_usize << 20)));
    }

    #[test]
    fn results_are_borrowed() {
        let model = fit(Dense::new(values::<f64>(N, D), N, D).unwrap());
        let components = model.components_faer();
        assert_eq!((components.shape(), components.as_ptr()), ((3, D), model.components().as_ptr()));
        assert_eq!(components[(1, 4)].to_bits(), model.component(1)[4].to_bits());

        let mut block = block();
        let view = MatRef::from(&block);
        assert_eq!((view.shape(), view.as_ptr()), ((5, 3), block.values().as_ptr()));
        assert_eq!(Block::try_from(view).unwrap(), block);
        assert_eq!(Block::try_from(view.transpose()).unwrap().column(2), &block.values()[6..9]);
        MatMut::from(&mut block)[(4, 1)] = 7.5;
        assert_eq!(block.get(4, 1).to_bits(), 7.5_f64.to_bits());
        assert_eq!(MatRef::from(&Block::zeros(4, 0)).shape(), (4, 0));
    }
}

#[cfg(feature = "nalgebra")]
mod nalgebra_views {
    use super::*;
    use hbpca::interop::nalgebra::{RowMajorView, RowMajorViewMut, columns_as_rows};
    use nalgebra::{DMatrix, DMatrixView, Dyn, Matrix2x3};

    /// Observations in the columns.
    fn observations<T: Real>() -> DMatrix<T> {
        DMatrix::from_vec(D, N, values(N, D))
    }

    fn columns_are_borrowed_as_rows<T: Real>() {
        let x = observations::<T>();
        let rows = columns_as_rows(&x).unwrap();
        assert_eq!(rows.values().as_ptr(), x.as_slice().as_ptr());
        assert_rows(&rows, N, D, entry);
        let some = x.columns(3, 6);
        let rows = columns_as_rows(&some).unwrap();
        assert_eq!(rows.values().as_ptr(), x.as_slice()[3 * D..].as_ptr());
        assert_rows(&rows, 6, D, |i, j| entry(i + 3, j));
        let gaps = x.rows(1, 4);
        assert_rows(&columns_as_rows(&gaps).unwrap(), N, 4, |i, j| entry(i, j + 1));
        assert_ne!(columns_as_rows(&gaps).unwrap().values().as_ptr(), &raw const x[(1, 0)]);
    }

    #[test]
    fn columns_are_borrowed_as_rows_in_both_precisions() {
        columns_are_borrowed_as_rows::<f32>();
        columns_are_borrowed_as_rows::<f64>();
    }

    #[test]
    fn row_major_views_and_single_columns_are_borrowed() {
        let values = values::<f64>(N, D);
        let x = DMatrixView::<f64, Dyn, Dyn>::from_slice_with_strides(&values, N, D, D, 1);
        let rows = Dense::try_from(&x).unwrap();
        assert_eq!(rows.values().as_ptr(), values.as_ptr());
        assert_rows(&rows, N, D, entry);
        let whole = observations::<f64>();
        let column = whole.column(5);
        let rows = Dense::try_from(&column).unwrap();
        assert_eq!(rows.values().as_ptr(), &raw const whole[(0, 5)]);
        assert_rows(&rows, D, 1, |i, _| entry(5, i));
    }

    #[test]
    fn every_other_layout_is_copied() {
        let x = DMatrix::from_fn(N, D, entry);
        assert_rows(&Dense::try_from(&x).unwrap(), N, D, entry);
        let steps = x.view_with_steps((1, 2), (9, 5), (2, 3));
        assert_rows(&Dense::try_from(&steps).unwrap(), 9, 5, |i, j| entry(1 + 3 * i, 2 + 4 * j));
        assert_rows(&columns_as_rows(&steps).unwrap(), 5, 9, |i, j| entry(1 + 3 * j, 2 + 4 * i));
        let small = Matrix2x3::from_fn(entry);
        assert_rows(&Dense::try_from(&small).unwrap(), 2, 3, entry);
        let repeated = DMatrixView::<f64, Dyn, Dyn>::from_slice_with_strides(&[2.0, 3.0], 4, 2, 0, 1);
        assert_rows(&Dense::try_from(&repeated).unwrap(), 4, 2, |_, j| 2.0 + j as f64);
    }

    #[test]
    fn fits_have_the_same_bits() {
        let want = bits(&fit(Dense::new(values::<f64>(N, D), N, D).unwrap()));
        assert_eq!(bits(&fit_of(&columns_as_rows(&observations::<f64>()).unwrap().into())), want);
        assert_eq!(bits(&fit_of(&Matrix::try_from(&DMatrix::from_fn(N, D, entry)).unwrap())), want);
        let want = bits(&fit(Dense::new(values::<f32>(N, D), N, D).unwrap()));
        assert_eq!(bits(&fit_of(&Matrix::try_from(&observations::<f32>().transpose()).unwrap())), want);
    }

    #[test]
    fn no_view_panics() {
        for (n, d) in [(0, 0), (0, 3), (3, 0)] {
            let x = DMatrix::<f64>::zeros(n, d);
            assert_empty(Dense::try_from(&x), n, d);
            assert_empty(columns_as_rows(&x), d, n);
        }
        let mut x = observations::<f64>();
        x[(6, 5)] = f64::NAN;
        assert_not_finite(columns_as_rows(&x), (5, 6));
        assert_not_finite(Matrix::try_from(&x), (6, 5));
        let huge = DMatrixView::<f64, Dyn, Dyn>::from_slice_with_strides(&[1.0], 1 << 40, 1 << 20, 0, 0);
        assert_too_large(Dense::try_from(&huge));
        assert_too_large(columns_as_rows(&huge));
        assert_too_large(Block::try_from(&huge));
        let far = DMatrixView::<f64, Dyn, Dyn>::from_slice_with_strides(&[1.0, 2.0], 1, 2, 1 << 62, 1);
        assert_rows(&Dense::try_from(&far).unwrap(), 1, 2, |_, j| 1.0 + j as f64);
    }

    #[test]
    fn results_are_borrowed() {
        let model = fit(Dense::new(values::<f64>(N, D), N, D).unwrap());
        let components = model.components_nalgebra();
        assert_eq!((components.shape(), components.as_ptr()), ((3, D), model.components().as_ptr()));
        assert_eq!(components[(1, 4)].to_bits(), model.component(1)[4].to_bits());

        let mut block = block();
        let view = RowMajorView::from(&block);
        assert_eq!((view.shape(), view.as_ptr()), ((5, 3), block.values().as_ptr()));
        assert_eq!(Block::try_from(&view).unwrap(), block);
        assert_eq!(Block::try_from(&view.transpose()).unwrap().column(2), &block.values()[6..9]);
        RowMajorViewMut::from(&mut block)[(4, 1)] = 7.5;
        assert_eq!(block.get(4, 1).to_bits(), 7.5_f64.to_bits());
        for (d, p) in [(4, 0), (0, 4), (0, 0)] {
            assert_eq!(RowMajorView::from(&Block::zeros(d, p)).shape(), (d, p));
            assert_eq!(RowMajorViewMut::from(&mut Block::zeros(d, p)).shape(), (d, p));
        }
    }
}

#[cfg(feature = "sprs")]
mod compressed {
    use super::*;
    use hbpca::Csr;
    use hbpca::interop::sprs::Index;
    use sprs::{CsMatI, TriMatI};

    /// About every third entry of the test matrix; row 4 is empty.
    fn entries<T: Real, I: Index>() -> TriMatI<T, I> {
        let mut entries = TriMatI::new((N, D));
        for i in (0..N).rev().filter(|i| *i != 4) {
            for j in (0..D).rev().filter(|j| (i + j * j) % 3 == 0) {
                entries.add_triplet(i, j, T::from_f64(entry(i, j)));
            }
        }
        entries
    }

    /// The same as the core takes it.
    fn plain<T: Real>() -> Csr<'static, T> {
        let (mut starts, mut columns, mut values) = (vec![0], vec![], vec![]);
        for i in 0..N {
            for j in (0..D).filter(|j| i != 4 && (i + j * j) % 3 == 0) {
                columns.push(j as u32);
                values.push(T::from_f64(entry(i, j)));
            }
            starts.push(columns.len());
        }
        Csr::new(D, starts, columns, values).unwrap()
    }

    #[track_caller]
    fn assert_same<T: Real>(x: &Csr<'_, T>, want: &Csr<'_, T>) {
        assert_eq!(x.n_cols(), want.n_cols());
        assert_eq!((x.row_starts(), x.columns()), (want.row_starts(), want.columns()));
        assert_eq!(x.values(), want.values());
    }

    fn u32_and_usize_are_borrowed<T: Real + std::ops::Add<Output = T>>() {
        let x: CsMatI<T, u32, usize> = entries::<T, u32>().to_csr();
        for rows in [Csr::try_from(&x).unwrap(), Csr::try_from(x.view()).unwrap()] {
            assert_eq!(rows.row_starts().as_ptr(), x.indptr().raw_storage().as_ptr());
            assert_eq!(rows.columns().as_ptr(), x.indices().as_ptr());
            assert_eq!(rows.values().as_ptr(), x.data().as_ptr());
            assert_same(&rows, &plain());
        }
    }

    #[test]
    fn u32_and_usize_are_borrowed_in_both_precisions() {
        u32_and_usize_are_borrowed::<f32>();
        u32_and_usize_are_borrowed::<f64>();
    }

    /// Values are borrowed whatever the indices are; columns and starts have the same values.
    fn other_indices_are_converted<I: Index, P: Index>() {
        let x: CsMatI<f64, I, P> = entries::<f64, I>().to_csr();
        let rows = Csr::try_from(&x).unwrap();
        assert_eq!(rows.values().as_ptr(), x.data().as_ptr());
        assert_same(&rows, &plain());
        let x: CsMatI<f64, I, P> = entries::<f64, I>().to_csc();
        assert_same(&Csr::try_from(&x).unwrap(), &plain());
        let some = x.slice_outer(0..0);
        assert_empty(Csr::try_from(some), N, 0);
    }

    #[test]
    fn every_other_index_type_is_converted() {
        other_indices_are_converted::<usize, usize>();
        other_indices_are_converted::<u32, u32>();
        other_indices_are_converted::<i32, i32>();
        other_indices_are_converted::<i32, usize>();
        other_indices_are_converted::<u64, i64>();
        other_indices_are_converted::<i64, u64>();
        other_indices_are_converted::<u16, i16>();
        other_indices_are_converted::<isize, u16>();
    }

    #[test]
    fn slices_and_transposes_are_right() {
        let want = plain::<f64>();
        let x: CsMatI<f64, u32, usize> = entries::<f64, u32>().to_csr();
        let some = x.slice_outer(3..9);
        let rows = Csr::try_from(some).unwrap();
        assert_eq!(rows.values().as_ptr(), want_ptr(&x, 3));
        assert_eq!((rows.n_rows(), rows.row_starts()[0]), (6, 0));
        (0..6).for_each(|i| assert_eq!(rows.row_slices(i), want.row_slices(i + 3)));

        let wide = Csr::try_from(x.transpose_view()).unwrap();
        assert_eq!((wide.n_rows(), wide.n_cols(), wide.nnz()), (D, N, want.nnz()));
        for j in 0..D {
            let column: Vec<(usize, f64)> =
                (0..N).flat_map(|i| want.row(i).filter(|e| e.0 == j).map(move |e| (i, e.1))).collect();
            assert_eq!(wide.row(j).collect::<Vec<_>>(), column, "column {j}");
        }
        // Columns 3 to 8 of a matrix in CSC.
        let by_columns: CsMatI<f64, u32, u32> = entries::<f64, u32>().to_csc();
        let some = Csr::try_from(by_columns.slice_outer(3..9)).unwrap();
        assert_eq!((some.n_rows(), some.n_cols()), (N, 6));
        for i in 0..N {
            let row: Vec<(usize, f64)> =
                want.row(i).filter(|e| (3..9).contains(&e.0)).map(|e| (e.0 - 3, e.1)).collect();
            assert_eq!(some.row(i).collect::<Vec<_>>(), row, "row {i}");
        }
    }

    /// Where the values of a row start.
    fn want_ptr(x: &CsMatI<f64, u32, usize>, row: usize) -> *const f64 {
        x.data()[x.indptr().raw_storage()[row]..].as_ptr()
    }

    #[test]
    fn fits_have_the_same_bits() {
        let want = bits(&fit(plain::<f64>()));
        let x: CsMatI<f64, u32, usize> = entries::<f64, u32>().to_csr();
        assert_eq!(bits(&fit_of(&Matrix::try_from(&x).unwrap())), want);
        let x: CsMatI<f64, usize> = entries::<f64, usize>().to_csc();
        assert_eq!(bits(&fit_of(&Matrix::try_from(x.view()).unwrap())), want);
        let want = bits(&fit(plain::<f32>()));
        let x: CsMatI<f32, i32> = entries::<f32, i32>().to_csr();
        assert_eq!(bits(&fit_of(&Matrix::try_from(&x).unwrap())), want);
    }

    #[test]
    fn no_matrix_panics() {
        for (n, d) in [(0, 0), (0, 3), (3, 0)] {
            let x = CsMatI::<f64, u32, usize>::zero((n, d));
            assert_empty(Csr::try_from(&x), n, d);
            assert_empty(Csr::try_from(x.transpose_view()), d, n);
        }
        let x = CsMatI::<f64, usize>::new((2, 3), vec![0, 1, 2], vec![0, 2], vec![1.0, f64::NAN]);
        assert_not_finite(Csr::try_from(&x), (1, 2));
        assert_not_finite(Matrix::try_from(x.transpose_view()), (2, 1));
        let wide = CsMatI::<f64, usize>::new((1, 1 << 40), vec![0, 1], vec![1 << 35], vec![1.0]);
        let text = Csr::try_from(&wide).unwrap_err().to_string();
        assert!(text.contains("column 34359738368") && text.contains("renumber"), "{text}");
        let tall = CsMatI::<f64, usize>::new_csc((1 << 61, 2), vec![0, 1, 1], vec![5], vec![1.0]);
        assert_too_large(Csr::try_from(&tall));
        let taller = CsMatI::<f32, usize>::new_csc((usize::MAX, 1), vec![0, 1], vec![5], vec![1.0]);
        assert_too_large(Csr::try_from(&taller));
    }
}
