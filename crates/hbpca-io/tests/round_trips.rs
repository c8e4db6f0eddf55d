//! What is written is read again, through every format and compression.

#![allow(clippy::unwrap_used, clippy::needless_for_each, reason = "a test fails where it unwraps")]

use std::path::Path;

use hbpca::{Csr, Dense, Matrix};
use hbpca_io::{
    Compression, Format, Input, Labels, Precision, ReadOptions, WriteOptions, convert, read, write,
};
use proptest::prelude::*;

fn plain_extensions() -> [&'static str; 8] {
    Format::ALL.map(Format::name)
}

/// Every extension with every compression.
fn compressed_extensions() -> Vec<String> {
    let pairs = Compression::ALL.into_iter().flat_map(|how| Format::ALL.map(|format| (how, format)));
    pairs.map(|(how, format)| format!("{}.{}", format.name(), how.extension())).collect()
}

fn is_single(x: &Matrix<'_>) -> bool {
    matches!(x, Matrix::DenseF32(_) | Matrix::CsrF32(_))
}

/// All values with their places, zeros left out, bit by bit.
fn entries(x: &Matrix<'_>) -> Vec<(usize, usize, u64)> {
    let mut all = Vec::new();
    for l in 0..x.n_rows() {
        x.for_each_in_row(l, |j, v| {
            if v != 0.0 {
                all.push((l, j, v.to_bits()));
            }
        });
    }
    all
}

/// Reads in the precision of `like`, and LIBSVM with its number of columns.
fn options(path: &Path, like: &Matrix<'_>) -> ReadOptions {
    let libsvm = Format::from_path(path) == Some(Format::Libsvm);
    ReadOptions {
        precision: if is_single(like) { Precision::F32 } else { Precision::F64 },
        n_columns: libsvm.then(|| like.n_cols()),
        ..ReadOptions::default()
    }
}

fn assert_same(found: &Matrix<'_>, expected: &Matrix<'_>, what: &str) {
    assert_eq!((found.n_rows(), found.n_cols()), (expected.n_rows(), expected.n_cols()), "{what}");
    assert_eq!(is_single(found), is_single(expected), "{what}");
    assert_eq!(entries(found), entries(expected), "{what}");
}

fn round_trip(matrix: &Matrix<'_>, extension: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("x.{extension}"));
    write(&path, matrix, &WriteOptions::default()).unwrap();
    let data = read(Input::path(&path), &options(&path, matrix)).unwrap();
    assert_same(&data.matrix, matrix, extension);
    assert!(data.bytes_read > 0, "{extension}");
}

fn finite_f32() -> impl Strategy<Value = f32> {
    prop_oneof![any::<f32>().prop_filter("finite", |x| x.is_finite()), (-20_i8..20).prop_map(f32::from)]
}

fn finite_f64() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>().prop_filter("finite", |x| x.is_finite()), (-20_i8..20).prop_map(f64::from)]
}

fn dense_f32() -> impl Strategy<Value = Matrix<'static>> {
    (1_usize..8, 1_usize..6).prop_flat_map(|(n, d)| {
        let values = prop::collection::vec(finite_f32(), n * d);
        values.prop_map(move |x| Dense::new(x, n, d).unwrap().into())
    })
}

fn dense_f64() -> impl Strategy<Value = Matrix<'static>> {
    (1_usize..8, 1_usize..6).prop_flat_map(|(n, d)| {
        let values = prop::collection::vec(finite_f64(), n * d);
        values.prop_map(move |x| Dense::new(x, n, d).unwrap().into())
    })
}

fn sparse() -> impl Strategy<Value = Matrix<'static>> {
    (1_usize..8, 1_usize..9, any::<bool>()).prop_flat_map(|(n, d, single)| {
        let places = prop::collection::btree_map((0..n, 0..d as u32), finite_f32(), 0..=n * d / 2);
        places.prop_map(move |places| {
            let mut starts = vec![0; n + 1];
            places.keys().for_each(|&(row, _)| starts[row + 1] += 1);
            (0..n).for_each(|l| starts[l + 1] += starts[l]);
            let columns: Vec<u32> = places.keys().map(|&(_, column)| column).collect();
            if single {
                Csr::new(d, starts, columns, places.values().copied().collect::<Vec<f32>>()).unwrap().into()
            } else {
                let values: Vec<f64> = places.values().map(|&x| f64::from(x) * 1.1).collect();
                Csr::new(d, starts, columns, values).unwrap().into()
            }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn dense_single_precision(matrix in dense_f32()) {
        plain_extensions().iter().for_each(|extension| round_trip(&matrix, extension));
    }

    #[test]
    fn dense_double_precision(matrix in dense_f64()) {
        plain_extensions().iter().for_each(|extension| round_trip(&matrix, extension));
    }

    #[test]
    fn sparse_of_either_precision(matrix in sparse()) {
        plain_extensions().iter().for_each(|extension| round_trip(&matrix, extension));
    }
}

fn sparse_rows(n: usize) -> Matrix<'static> {
    let d = 40;
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for l in 0..n {
        for j in (l % 7..d).step_by(1 + l % 5) {
            columns.push(j as u32);
            values.push((l * 31 + j) as f64 / 7.0);
        }
        starts.push(columns.len());
    }
    Csr::new(d, starts, columns, values).unwrap().into()
}

fn dense_rows(n: usize) -> Matrix<'static> {
    let d = 17;
    Dense::new((0..n * d).map(|i| (i as f64).sin()).collect(), n, d).unwrap().into()
}

#[test]
fn every_format_passes_through_every_compression() {
    for extension in compressed_extensions() {
        round_trip(&sparse_rows(100), &extension);
        round_trip(&dense_rows(100), &extension);
    }
}

#[test]
fn every_format_converts_to_every_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: String| folder.path().join(name);
    for matrix in [sparse_rows(700), dense_rows(700)] {
        for from in Format::ALL {
            let input = path(format!("from.{}.zst", from.name()));
            write(&input, &matrix, &WriteOptions::default()).unwrap();
            for to in Format::ALL {
                let output = path(format!("to.{}.gz", to.name()));
                let done = convert(
                    Input::path(&input),
                    &options(&input, &matrix),
                    &output,
                    &WriteOptions::default(),
                )
                .unwrap();
                assert_eq!((done.from, done.to), (from, to));
                assert_eq!((done.summary.n_rows, done.summary.n_columns), (matrix.n_rows(), matrix.n_cols()));
                let back = read(Input::path(&output), &options(&output, &matrix)).unwrap();
                assert_same(&back.matrix, &matrix, &format!("{from} to {to}"));
            }
        }
    }
}

#[test]
fn every_format_converts_to_a_chunk_folder_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: String| folder.path().join(name);
    let small_parts = WriteOptions { part_bytes: 12_000, ..WriteOptions::default() };
    for matrix in [sparse_rows(700), dense_rows(700)] {
        for (from, packed) in Format::ALL.into_iter().flat_map(|from| [(from, ""), (from, ".zst")]) {
            let input = path(format!("from.{}{packed}", from.name()));
            write(&input, &matrix, &WriteOptions::default()).unwrap();
            let chunks = path("x.chunks".into());
            let done =
                convert(Input::path(&input), &options(&input, &matrix), &chunks, &small_parts).unwrap();
            assert_eq!((done.from, done.to), (from, Format::Chunks));
            let data = read(Input::path(&chunks), &ReadOptions::default()).unwrap();
            assert_same(&data.matrix, &matrix, &format!("{from}{packed} to chunks"));
            let output = path(format!("back.{}", from.name()));
            let done =
                convert(Input::path(&chunks), &options(&chunks, &matrix), &output, &WriteOptions::default());
            assert_eq!(done.unwrap().from, Format::Chunks);
            let back = read(Input::path(&output), &options(&output, &matrix)).unwrap();
            assert_same(&back.matrix, &matrix, &format!("chunks to {from}"));
        }
    }
}

#[test]
fn text_of_many_chunks_keeps_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("x.csv"), folder.path().join("y.npy"));
    let n = 1_300_000;
    let text: Vec<String> = (0..n).map(|i| format!("{i},0.5\n")).collect();
    std::fs::write(&input, text.concat()).unwrap();
    convert(Input::path(&input), &ReadOptions::default(), &output, &WriteOptions::default()).unwrap();
    for path in [&input, &output] {
        let Matrix::DenseF32(x) = read(Input::path(path), &ReadOptions::default()).unwrap().matrix else {
            panic!("these numbers are exact in f32")
        };
        assert_eq!(x.n_rows(), n);
        assert!((0..n).all(|l| x.row(l) == [l as f32, 0.5]));
    }
}

#[test]
fn a_stream_is_converted_like_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("x.svm.xz"), folder.path().join("y.npz"));
    let matrix = sparse_rows(3000);
    write(&input, &matrix, &WriteOptions::default()).unwrap();
    let stream = std::fs::File::open(&input).unwrap();
    let options = ReadOptions { format: Some(Format::Libsvm), ..ReadOptions::default() };
    convert(Input::reader("pipe", stream), &options, &output, &WriteOptions::default()).unwrap();
    assert_same(&read(Input::path(&output), &ReadOptions::default()).unwrap().matrix, &matrix, "stream");
}

#[test]
fn labels_and_names_go_along_where_they_fit() {
    let folder = tempfile::tempdir().unwrap();
    let x: Matrix = Dense::new(vec![1.0, 2.0, 3.0, 4.0], 2, 2).unwrap().into();
    for labels in [Labels::Numbers(vec![-1.0, 2.5]), Labels::Texts(vec!["a \"b\", c".into(), "#d".into()])] {
        let options = WriteOptions {
            column_names: Some(vec!["first".into(), "a, b".into()]),
            labels: Some(labels.clone()),
            label_column: Some("kind".into()),
            ..WriteOptions::default()
        };
        for extension in ["csv", "tsv.gz", "parquet"] {
            let path = folder.path().join(format!("x.{extension}"));
            write(&path, &x, &options).unwrap();
            let label = Some(hbpca_io::ColumnRef::parse("kind"));
            let read_options = ReadOptions { label_column: label, ..ReadOptions::default() };
            let data = read(Input::path(&path), &read_options).unwrap();
            assert_eq!(
                data.column_names.as_deref(),
                Some(&["first".to_string(), "a, b".into()][..]),
                "{extension}"
            );
            assert_eq!(data.labels.as_ref(), Some(&labels), "{extension}");
            let again = folder.path().join("again.parquet");
            convert(
                Input::path(&path),
                &read_options,
                &again,
                &WriteOptions { labels: None, column_names: None, ..options.clone() },
            )
            .unwrap();
            let data = read(Input::path(&again), &read_options).unwrap();
            assert_eq!((data.labels.as_ref(), data.matrix.n_cols()), (Some(&labels), 2), "{extension}");
        }
    }
    let path = folder.path().join("x.svm");
    let labels = Some(Labels::Numbers(vec![-1.0, 2.5]));
    write(&path, &x, &WriteOptions { labels: labels.clone(), ..WriteOptions::default() }).unwrap();
    assert_eq!(read(Input::path(&path), &ReadOptions::default()).unwrap().labels, labels);
}

#[test]
fn bytes_stay_bytes_in_idx() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x-ubyte");
    let x: Matrix = Dense::new(vec![0.0_f32, 255.0, 7.0, 1.0], 2, 2).unwrap().into();
    write(&path, &x, &WriteOptions::default()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 4 + 8 + 4);
    let half: Matrix = Dense::new(vec![0.5_f32, 255.0], 1, 2).unwrap().into();
    write(&path, &half, &WriteOptions::default()).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 4 + 8 + 8);
}

#[test]
fn sparse_rows_are_not_made_dense_beyond_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let options = WriteOptions { dense_limit: 1000, ..WriteOptions::default() };
    let error = write(&path, &sparse_rows(3000), &options).unwrap_err().to_string();
    assert!(
        error.contains("takes 960000 bytes, more than the limit of 1000: write .npz, .mtx or .svm"),
        "{error}"
    );
    assert!(!path.exists());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing half-written remains");
}

#[test]
fn a_name_without_a_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = write(&folder.path().join("x.bin"), &dense_rows(50), &WriteOptions::default()).unwrap_err();
    assert!(error.to_string().contains("the name shows no format"), "{error}");
}
