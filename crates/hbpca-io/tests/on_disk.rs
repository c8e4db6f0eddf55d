//! Rows read in chunks are the rows of the file, wherever they are cut; files that cannot be read so say why.

#![allow(clippy::unwrap_used, reason = "what cannot go on in a test has failed")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use hbpca::{CountTransform, Csr, Dense, Matrix, RowChunks};
use hbpca_io::{CellOptions, Input, OnDisk, ReadOptions, Storage, WriteOptions, on_disk, read, write};
use zip::write::SimpleFileOptions;

fn dense(n: usize, d: usize) -> Vec<f32> {
    (0..n * d).map(|i| i as f32 - 7.5).collect()
}

fn open(paths: &[PathBuf]) -> Result<Storage, hbpca_io::ReadError> {
    on_disk(&Input::paths(paths.iter().cloned()), &ReadOptions::default())
}

fn pieces(paths: &[PathBuf]) -> Box<dyn OnDisk> {
    match open(paths).unwrap() {
        Storage::OnDisk(rows) => rows,
        Storage::Whole { reason, .. } => panic!("{reason}"),
    }
}

fn refusal(path: &Path) -> (String, u64) {
    match open(&[path.to_owned()]).unwrap() {
        Storage::OnDisk(_) => panic!("{} can be read in pieces", path.display()),
        Storage::Whole { reason, least_memory } => (reason, least_memory.unwrap()),
    }
}

/// All entries, zeros left out, by row.
fn entries(matrix: &Matrix<'_>) -> Vec<Vec<(usize, f64)>> {
    let row = |l: usize| {
        let mut row = Vec::new();
        matrix.for_each_in_row(l, |j, x| row.push((j, x)));
        row
    };
    (0..matrix.n_rows()).map(row).collect()
}

/// The rows of all chunks, each read into the memory of the one before.
fn by_chunks(rows: &mut dyn OnDisk) -> Vec<Vec<(usize, f64)>> {
    let mut all = Vec::new();
    let mut recycled = None;
    for i in 0..rows.starts().len() - 1 {
        let chunk = rows.read_chunk(i, recycled.take()).unwrap();
        assert_eq!(chunk.n_rows(), rows.starts()[i + 1] - rows.starts()[i]);
        all.extend(entries(&chunk));
        recycled = Some(chunk);
    }
    all
}

fn check_all_cuts(rows: &mut dyn OnDisk, expected: &[Vec<(usize, f64)>], parts: usize) {
    let n = rows.n_rows();
    // A byte: a row is longer than the chunk. Then a few rows with a short last chunk, and everything.
    for bytes in [1, 100, 1 << 20] {
        rows.cut(bytes).unwrap();
        let starts = rows.starts().to_vec();
        assert!(starts[0] == 0 && *starts.last().unwrap() == n && starts.is_sorted());
        assert!(bytes > 1 || starts.len() == n + 1, "{starts:?}");
        assert!(bytes < 1 << 20 || starts.len() == parts + 1, "{starts:?}");
        assert_eq!(by_chunks(rows), expected);
    }
    for (from, to) in [(0, n), (1, 2), (n / 3, n), (2, n - 1)] {
        assert_eq!(entries(&rows.read_rows(from..to).unwrap()), expected[from..to]);
    }
}

#[test]
fn arrays_in_one_file_or_several_are_read_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let values = dense(11, 3);
    let whole: Matrix = Dense::new(values.clone(), 11, 3).unwrap().into();
    write(&path("x.npy"), &whole, &WriteOptions::default()).unwrap();
    check_all_cuts(&mut *pieces(&[path("x.npy")]), &entries(&whole), 1);
    let mut parts = Vec::new();
    for (i, (from, to)) in [(0, 4), (4, 5), (5, 11)].into_iter().enumerate() {
        let part: Matrix = Dense::new(values[from * 3..to * 3].to_vec(), to - from, 3).unwrap().into();
        parts.push(path(&format!("part-{i}.npy")));
        write(&parts[i], &part, &WriteOptions::default()).unwrap();
    }
    check_all_cuts(&mut *pieces(&parts), &entries(&whole), 3);
    let wide: Vec<f64> = values.iter().map(|x| f64::from(*x) + 1e-9).collect();
    let wide: Matrix = Dense::new(wide, 11, 3).unwrap().into();
    write(&path("wide.npy"), &wide, &WriteOptions::default()).unwrap();
    let mut rows = pieces(&[path("wide.npy")]);
    check_all_cuts(&mut *rows, &entries(&wide), 1);
    assert_eq!((rows.bytes(), rows.memory(), rows.nnz(), rows.is_sparse()), (264, 264, 33, false));
}

/// A SciPy archive as `save_npz(…, compressed=False)` writes it, or compressed.
fn save_npz(path: &Path, arrays: &[(&str, &str, String, Vec<u8>)], compressed: bool) {
    let method = if compressed { zip::CompressionMethod::Deflated } else { zip::CompressionMethod::Stored };
    let mut zip = zip::ZipWriter::new(fs::File::create(path).unwrap());
    for (name, descr, shape, bytes) in arrays {
        zip.start_file(format!("{name}.npy"), SimpleFileOptions::default().compression_method(method))
            .unwrap();
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        zip.write_all(b"\x93NUMPY\x01\x00").unwrap();
        zip.write_all(&(text.len() as u16).to_le_bytes()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
}

fn le<T: Copy, const N: usize>(numbers: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    numbers.iter().flat_map(|x| bytes(*x)).collect()
}

type Arrays = Vec<(&'static str, &'static str, String, Vec<u8>)>;

/// Rows [(1, 1), (4, 2)], [], [(0, 3)], [(2, 4), (3, 5), (4, 6)], with 32-bit or 64-bit indices.
fn csr_arrays(wide: bool) -> Arrays {
    let (starts, columns) = ([0, 2, 2, 3, 6], [1, 4, 0, 2, 3, 4]);
    let values = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let index = |numbers: &[i32]| {
        if wide { le(numbers, |x| i64::from(x).to_le_bytes()) } else { le(numbers, i32::to_le_bytes) }
    };
    let kind = if wide { "<i8" } else { "<i4" };
    vec![
        ("indices", kind, "(6,)".into(), index(&columns)),
        ("indptr", kind, "(5,)".into(), index(&starts)),
        ("format", "|S3", "()".into(), b"csr".to_vec()),
        ("shape", "<i8", "(2,)".into(), le(&[4_i64, 5], i64::to_le_bytes)),
        ("data", "<f4", "(6,)".into(), le(&values, f32::to_le_bytes)),
    ]
}

fn csr() -> Matrix<'static> {
    let (starts, columns) = (vec![0, 2, 2, 3, 6], vec![1, 4, 0, 2, 3, 4]);
    Csr::new(5, starts, columns, vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap().into()
}

#[test]
fn compressed_rows_of_uncompressed_archives_are_read_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let expected = entries(&csr());
    for wide in [false, true] {
        save_npz(&path("x.npz"), &csr_arrays(wide), false);
        let mut rows = pieces(&[path("x.npz")]);
        assert_eq!((rows.n_rows(), rows.n_cols(), rows.nnz(), rows.is_sparse()), (4, 5, 6, true));
        assert_eq!(rows.bytes(), 6 * 4 + if wide { 8 * 11 } else { 4 * 11 });
        check_all_cuts(&mut *rows, &expected, 1);
        let twice = [expected.clone(), expected.clone()].concat();
        check_all_cuts(&mut *pieces(&[path("x.npz"), path("x.npz")]), &twice, 2);
    }
}

#[test]
fn columns_in_any_order_are_sorted_and_duplicates_summed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    let mut arrays = csr_arrays(false);
    arrays[0].3 = le(&[4, 1, 0, 3, 3, 2], i32::to_le_bytes);
    save_npz(&path, &arrays, false);
    let rows = pieces(&[path]).read_rows(0..4).unwrap();
    let expected = [vec![(1, 2.0), (4, 1.0)], vec![], vec![(0, 3.0)], vec![(2, 6.0), (3, 9.0)]];
    assert_eq!(entries(&rows), expected);
}

#[test]
fn what_cannot_be_read_in_pieces_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let npy = |descr: &str, order: &str, bytes: usize| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': (2, 3), }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.as_bytes());
        file.extend(vec![0; bytes]);
        fs::write(path("y.npy"), &file).unwrap();
        refusal(&path("y.npy"))
    };
    let (reason, least) = npy("|u1", "False", 6);
    assert!(reason.contains("whole numbers") && least >= 24, "{reason} {least}");
    assert!(npy("<i4", "False", 24).1 >= 48);
    assert!(npy("<f4", "True", 24).0.contains("Fortran order"));
    assert!(npy(">f8", "False", 48).0.contains("byte order"));
    fs::write(path("x.csv"), "1,2\n3,4\n").unwrap();
    assert!(refusal(&path("x.csv")).0.contains("csv files are not stored row by row"));
    save_npz(&path("c.npz"), &csr_arrays(false), true);
    assert!(refusal(&path("c.npz")).0.contains("compressed=False"));
    let mut arrays = csr_arrays(false);
    arrays[2].3 = b"csc".to_vec();
    save_npz(&path("c.npz"), &arrays, false);
    assert!(refusal(&path("c.npz")).0.contains("not stored one after the other (csc)"));
    let mut arrays = csr_arrays(false);
    arrays[4] = ("data", "<i4", "(6,)".into(), vec![0; 24]);
    save_npz(&path("c.npz"), &arrays, false);
    assert!(refusal(&path("c.npz")).0.contains("whole numbers"));
    save_npz(&path("c.npz"), &[("arr_0", "<f4", "(1, 1)".into(), vec![0; 4])], false);
    assert!(refusal(&path("c.npz")).0.contains("dense array"));
    let matrix: Matrix = Dense::new(dense(2, 2), 2, 2).unwrap().into();
    write(&path("x.npy.gz"), &matrix, &WriteOptions::default()).unwrap();
    assert!(refusal(&path("x.npy.gz")).0.contains("compressed"));
    write(&path("x.npy"), &matrix, &WriteOptions::default()).unwrap();
    let options = ReadOptions { n_columns: Some(2), ..ReadOptions::default() };
    let chosen = on_disk(&Input::path(path("x.npy")), &options).unwrap();
    assert!(matches!(chosen, Storage::Whole { reason, .. } if reason.contains("chosen")));
    let stream = on_disk(&Input::reader("pipe", &b""[..]), &ReadOptions::default()).unwrap();
    assert!(matches!(stream, Storage::Whole { least_memory: None, .. }));
}

#[test]
fn faults_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let error = |paths: &[&str]| {
        let paths: Vec<PathBuf> = paths.iter().map(|name| path(name)).collect();
        open(&paths).err().unwrap().to_string()
    };
    let matrix = |d: usize| -> Matrix<'static> { Dense::new(dense(2, d), 2, d).unwrap().into() };
    write(&path("2.npy"), &matrix(2), &WriteOptions::default()).unwrap();
    write(&path("3.npy"), &matrix(3), &WriteOptions::default()).unwrap();
    assert!(error(&["2.npy", "3.npy"]).contains("3.npy: 3 columns, but the parts before it have 2"));
    let bytes = fs::read(path("2.npy")).unwrap();
    fs::write(path("2.npy"), &bytes[..bytes.len() - 1]).unwrap();
    assert!(error(&["2.npy"]).contains("it is cut off"));
    for (fault, text) in [
        ((1, le(&[0, 2, 1, 3, 6], i32::to_le_bytes)), "must ascend from 0 to the 6 entries"),
        ((1, le(&[0, 2, 2, 3, 5], i32::to_le_bytes)), "must ascend"),
        ((1, le(&[1, 2, 2, 3, 6], i32::to_le_bytes)), "must ascend"),
        ((3, le(&[5_i64, 5], i64::to_le_bytes)), "5 rows need 6 row starts, but there are 5"),
        ((3, le(&[-4_i64, 5], i64::to_le_bytes)), "numbers from 0 on"),
        ((3, le(&[4_i64, 1 << 40], i64::to_le_bytes)), "at most 2³²"),
    ] {
        let mut arrays = csr_arrays(false);
        arrays[fault.0].3 = fault.1;
        save_npz(&path("x.npz"), &arrays, false);
        let error = error(&["x.npz"]);
        assert!(error.contains(text), "{error}");
    }
    let mut arrays = csr_arrays(false);
    arrays[4].2 = "(7,)".into();
    save_npz(&path("x.npz"), &arrays, false);
    assert!(error(&["x.npz"]).contains("does not fit its"));
    // Column numbers are seen when rows are read.
    for column in [5, -1] {
        let mut arrays = csr_arrays(false);
        arrays[0].3 = le(&[1, 4, 0, 2, 3, column], i32::to_le_bytes);
        save_npz(&path("x.npz"), &arrays, false);
        let error = pieces(&[path("x.npz")]).read_chunk(0, None).unwrap_err().to_string();
        assert!(error.contains("malformed sparse rows: row 3"), "{error}");
    }
}

#[test]
fn a_file_that_changes_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let matrix: Matrix = Dense::new(dense(100, 4), 100, 4).unwrap().into();
    let begin = || {
        write(&path, &matrix, &WriteOptions::default()).unwrap();
        let mut rows = pieces(std::slice::from_ref(&path));
        rows.cut(160).unwrap();
        rows.read_chunk(0, None).unwrap();
        rows
    };
    let mut rows = begin();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(600).unwrap();
    let error = rows.read_chunk(9, None).unwrap_err().to_string();
    assert!(error.contains("the file changed while it was being read: it had"), "{error}");
    let mut rows = begin();
    let mut file = fs::File::options().append(true).open(&path).unwrap();
    file.write_all(b"more").unwrap();
    assert!(rows.read_chunk(1, None).unwrap_err().to_string().contains("now has"));
    let mut rows = begin();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    fs::File::options().append(true).open(&path).unwrap().set_modified(later).unwrap();
    assert!(rows.read_chunk(1, None).unwrap_err().to_string().contains("it was written to"));
}

fn cells(layer: Option<&str>, mask: Option<&str>) -> ReadOptions {
    let counts = CountTransform { total: Some(1e4), log1p: true };
    let cells = CellOptions {
        layer: layer.map(String::from),
        mask: mask.map(String::from),
        counts,
        ..CellOptions::default()
    };
    ReadOptions { cells, ..ReadOptions::default() }
}

#[test]
fn cells_in_chunks_are_those_read_as_a_whole() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/h5ad/many.h5ad");
    for (layer, mask) in
        [(None, None), (None, Some("highly_variable")), (Some("dense"), Some("highly_variable"))]
    {
        let options = cells(layer, mask);
        let whole = read(Input::path(&path), &options).unwrap();
        let Storage::OnDisk(mut rows) = on_disk(&Input::path(&path), &options).unwrap() else {
            panic!("not on disk")
        };
        let d = if mask.is_some() { 45 } else { 60 };
        assert_eq!((rows.n_rows(), rows.n_cols(), rows.is_sparse()), (20_000, d, layer.is_none()));
        assert!(rows.nnz() >= whole.matrix.nnz(), "a bound");
        rows.count_entries().unwrap();
        assert_eq!(rows.nnz(), whole.matrix.nnz(), "exact once counted");
        assert_eq!(rows.column_names(), whole.column_names.as_deref());
        let expected = entries(&whole.matrix);
        for bytes in [20_000, 300_000, 1 << 30] {
            rows.cut(bytes).unwrap();
            assert!(by_chunks(&mut *rows) == expected, "{layer:?} {mask:?} in chunks of {bytes} bytes");
        }
        assert_eq!(entries(&rows.read_rows(7_000..7_003).unwrap()), expected[7_000..7_003]);
        assert!(rows.version().is_some());
    }
}

#[test]
fn cells_by_columns_cannot_be_read_in_chunks_and_say_why() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/h5ad/csc-lzf.h5ad");
    let (reason, _) = refusal(&path);
    assert!(reason.starts_with("its entries are stored by columns (CSC): "), "{reason}");
}
