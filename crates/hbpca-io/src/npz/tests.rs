use std::io::{Cursor, Write};

use hbpca::Matrix;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::npy::Header;
use crate::{Format, ReadError, ReadOptions, read_bytes};

type Part<'a> = (&'a str, &'a str, &'a [usize], Vec<u8>);

fn archive(parts: &[Part]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, descr, shape, bytes) in parts {
        zip.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
        zip.write_all(&Header::bytes(descr, shape)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn ints(x: &[i32]) -> Vec<u8> {
    x.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn floats(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn read(bytes: &[u8]) -> Result<Matrix<'static>, ReadError> {
    read_bytes(bytes, Format::Npz, &ReadOptions::default()).map(|data| data.matrix)
}

fn rows(x: &Matrix<'_>) -> Vec<Vec<(usize, f64)>> {
    let mut rows = vec![Vec::new(); x.n_rows()];
    (0..x.n_rows()).for_each(|l| x.for_each_in_row(l, |j, v| rows[l].push((j, v))));
    rows
}

/// The matrix [[5, 0, 1], [0, 0, 2]] with `name` replaced by another array.
fn with(format: &'static str, replaced: Option<Part<'static>>) -> Vec<u8> {
    let mut parts: Vec<Part> = vec![
        ("format", "|S3", &[], format.as_bytes().to_vec()),
        ("shape", "<i4", &[2], ints(&[2, 3])),
        ("data", "<f4", &[3], floats(&[5.0, 1.0, 2.0])),
    ];
    match format {
        "csr" => {
            parts.push(("indptr", "<i4", &[3], ints(&[0, 2, 3])));
            parts.push(("indices", "<i4", &[3], ints(&[0, 2, 2])));
        }
        "csc" => {
            parts.push(("indptr", "<i4", &[4], ints(&[0, 1, 1, 3])));
            parts.push(("indices", "<i4", &[3], ints(&[0, 0, 1])));
        }
        _ => {
            parts.push(("row", "<i4", &[3], ints(&[0, 0, 1])));
            parts.push(("col", "<i4", &[3], ints(&[0, 2, 2])));
        }
    }
    if let Some(replaced) = replaced {
        for part in parts.iter_mut().filter(|part| part.0 == replaced.0) {
            *part = replaced.clone();
        }
    }
    archive(&parts)
}

#[test]
fn the_three_sparse_formats_give_the_same_matrix() {
    for format in ["csr", "csc", "coo"] {
        let x = read(&with(format, None)).unwrap();
        assert_eq!((x.n_cols(), rows(&x)), (3, vec![vec![(0, 5.0), (2, 1.0)], vec![(2, 2.0)]]), "{format}");
        assert!(matches!(x, Matrix::CsrF32(_)));
    }
}

#[test]
fn unsorted_columns_are_sorted_and_duplicates_summed() {
    let x = read(&with("csr", Some(("indices", "<i4", &[3], ints(&[2, 0, 1]))))).unwrap();
    assert_eq!(rows(&x), [vec![(0, 1.0), (2, 5.0)], vec![(1, 2.0)]]);
    let x = read(&with("csr", Some(("indices", "<i4", &[3], ints(&[1, 1, 1]))))).unwrap();
    assert_eq!(rows(&x), [[(1, 6.0)], [(1, 2.0)]]);
}

#[test]
fn one_dense_array_is_a_matrix() {
    let x = read(&archive(&[("x", "<f4", &[2, 2], floats(&[1.0, 2.0, 3.0, 4.0]))])).unwrap();
    assert_eq!(rows(&x), [[(0, 1.0), (1, 2.0)], [(0, 3.0), (1, 4.0)]]);
    let two = archive(&[("x", "<f4", &[1], floats(&[1.0])), ("y", "<f4", &[1], floats(&[1.0]))]);
    assert!(read(&two).unwrap_err().to_string().contains("holds 2 arrays"));
}

#[test]
fn each_fault_is_named() {
    let error = |bytes: Vec<u8>| read(&bytes).unwrap_err().to_string();
    let with_csr = |part: Part<'static>| error(with("csr", Some(part)));
    assert!(with_csr(("format", "|S3", &[], b"bsr".to_vec())).contains("sparse format `bsr` is not read"));
    assert!(with_csr(("format", "|O", &[], vec![])).contains("type `|O` are not read"));
    assert!(with_csr(("format", "|S999", &[], vec![0; 999])).contains("no name of a format"));
    assert!(with_csr(("shape", "<i4", &[3], ints(&[1, 2, 3]))).contains("`shape` has 3 numbers"));
    assert!(with_csr(("shape", "<i4", &[2], ints(&[-1, 2]))).contains("`shape` holds something else"));
    assert!(with_csr(("shape", "<f4", &[2], floats(&[1.0, 2.0]))).contains("`shape` holds something else"));
    let huge = [u64::MAX, 3].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert!(with_csr(("shape", "<u8", &[2], huge)).contains("at most 2³² of each"));
    assert!(with_csr(("indptr", "<i4", &[2], ints(&[0, 3]))).contains("`indptr` has 2 numbers where 3"));
    assert!(
        with_csr(("indptr", "<i4", &[3], ints(&[0, 4, 3]))).contains("must ascend from 0 to the 3 entries")
    );
    assert!(
        with_csr(("indices", "<i4", &[3], ints(&[0, 3, 1])))
            .contains("`indices` holds something else than numbers from 0 to below 3")
    );
    assert!(
        with_csr(("indices", "<i4", &[2], ints(&[0, 1]))).contains("`indices` has 2 numbers, `data` has 3")
    );
    assert!(
        with_csr(("data", "<f4", &[4], floats(&[1.0; 3])))
            .contains("shape [4] needs 16 bytes, but there are only 12")
    );
    assert!(with_csr(("data", "<f2", &[3], vec![0; 6])).contains("type `<f2` are not read"));
    assert!(
        with_csr(("data", "<f4", &[3], floats(&[1.0, f32::NAN, 2.0]))).contains("row 1, column 3 holds NaN")
    );
    assert!(error(with("coo", Some(("row", "<i4", &[2], ints(&[0, 1]))))).contains("`row` has 2 numbers"));
    let tall: Part = ("shape", "<i4", &[2], ints(&[i32::MAX, 3]));
    assert!(error(with("coo", Some(tall))).contains("2147483647 rows are claimed by a file of"));
    assert!(error(archive(&[("format", "|S3", &[], b"csr".to_vec())])).contains("no array `shape`"));
    assert!(error(archive(&[])).contains("holds 0 arrays"));
    assert!(error(b"PK\x03\x04 and then nothing".to_vec()).contains("zip"));
}
