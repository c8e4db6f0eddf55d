//! Files made to hurt: cut anywhere, changed anywhere. Every one is read or refused, none panics, and none
//! takes memory that its bytes do not justify.

#![allow(clippy::unwrap_used, clippy::needless_for_each, reason = "a test fails where it unwraps")]

mod common;

use common::{Random, cases};
use hbpca::{CountTransform, Csr, Dense, Matrix};
use hbpca_io::{
    BedFile, CellOptions, ColumnRef, Compression, Format, Labels, ReadOptions, WriteOptions, read_bytes,
    write,
};

fn file(matrix: &Matrix<'_>, name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let labels = Some(Labels::Numbers(vec![1.0; matrix.n_rows()]));
    write(&path, matrix, &WriteOptions { labels, ..WriteOptions::default() }).unwrap();
    std::fs::read(path).unwrap()
}

fn dense() -> Matrix<'static> {
    Dense::new(vec![1.5_f32, 2.0, 0.0, -4.0, 5.0, 6.25], 3, 2).unwrap().into()
}

fn sparse() -> Matrix<'static> {
    Csr::new(4, vec![0, 2, 2, 3], vec![0, 3, 1], vec![1.5_f64, 2.0, 0.1]).unwrap().into()
}

fn entries(x: &Matrix<'_>) -> (usize, usize, Vec<(usize, usize, u64)>) {
    let mut all = Vec::new();
    (0..x.n_rows()).for_each(|l| x.for_each_in_row(l, |j, v| all.push((l, j, v.to_bits()))));
    (x.n_rows(), x.n_cols(), all)
}

/// Small files of every format.
fn files() -> Vec<(Format, Vec<u8>)> {
    let mut files = Vec::new();
    for format in Format::ALL {
        files.push((format, file(&dense(), &format!("x.{}", format.name()))));
        files.push((format, file(&sparse(), &format!("x.{}", format.name()))));
    }
    files
}

#[test]
fn a_binary_file_cut_anywhere_is_refused_or_whole() {
    for (format, bytes) in files() {
        let whole = read_bytes(&bytes, format, &ReadOptions::default()).unwrap();
        let binary = matches!(format, Format::Npy | Format::Npz | Format::Idx | Format::Parquet);
        for length in 0..bytes.len() {
            let cut = read_bytes(&bytes[..length], format, &ReadOptions::default());
            if binary && let Ok(cut) = cut {
                assert_eq!(entries(&cut.matrix), entries(&whole.matrix), "{format} cut at {length}");
            }
        }
    }
}

#[test]
fn a_compressed_file_cut_anywhere_is_refused_or_whole() {
    for how in Compression::ALL {
        let bytes = file(&dense(), &format!("x.npy.{}", how.extension()));
        for length in 0..bytes.len() {
            if let Ok(cut) = read_bytes(&bytes[..length], Format::Npy, &ReadOptions::default()) {
                assert_eq!(entries(&cut.matrix), entries(&dense()), "{how:?} cut at {length}");
            }
        }
    }
}

#[test]
fn a_file_changed_anywhere_is_read_or_refused() {
    // The decoder of Parquet may panic inside, which is caught; its messages would only hide others here.
    std::panic::set_hook(Box::new(|_| {}));
    let mut random = Random::seeded();
    for (format, bytes) in files() {
        for round in 0..cases(3000) {
            let mut changed = bytes.clone();
            random.mutate(&mut changed);
            let outcome =
                std::panic::catch_unwind(|| read_bytes(&changed, format, &ReadOptions::default()).map(drop));
            assert!(outcome.is_ok(), "{format}, round {round}: {:?}", String::from_utf8_lossy(&changed));
        }
    }
    drop(std::panic::take_hook());
}

#[test]
fn claims_beyond_the_bytes_are_refused_at_once() {
    let refused =
        |bytes: &[u8], format| read_bytes(bytes, format, &ReadOptions::default()).unwrap_err().to_string();
    let market = b"%%MatrixMarket matrix coordinate real general\n10 10 10000000000000000000000\n1 1 1\n";
    assert!(refused(market, Format::MatrixMarket).contains("10000000000000000000000 entries need"));
    let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000, 100000000000), }";
    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    array.extend((text.len() as u16).to_le_bytes());
    array.extend(text.as_bytes());
    assert!(refused(&array, Format::Npy).contains("need 80000000000000000000"));
    let images = [0, 0, 0x0E, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255];
    assert!(refused(&images, Format::Idx).contains("the file has only 16"));
}

/// Found by fuzzing: the decoder takes the memory that a dictionary asks for, even by a header that makes no sense,
/// before it looks at its values.
#[test]
fn a_parquet_dictionary_that_claims_gigabytes_is_refused() {
    let bytes = include_bytes!("fixtures/dictionary-that-claims-gigabytes.parquet");
    let error = read_bytes(bytes, Format::Parquet, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("a page header is damaged"), "{error}");
}

/// The same cells in every storage of `.h5ad`.
const CELLS: [&[u8]; 6] = [
    include_bytes!("fixtures/h5ad/csr-gzip.h5ad"),
    include_bytes!("fixtures/h5ad/csc-lzf.h5ad"),
    include_bytes!("fixtures/h5ad/dense-chunks.h5ad"),
    include_bytes!("fixtures/h5ad/dense-latest.h5ad"),
    include_bytes!("fixtures/h5ad/csr-latest.h5ad"),
    include_bytes!("fixtures/h5ad/records.h5ad"),
];

/// Everything that a reader of cells may be told to look at.
fn cell_options() -> ReadOptions {
    let counts = CountTransform { total: Some(1e4), log1p: true };
    let cells = CellOptions { mask: Some("highly_variable".into()), counts, ..CellOptions::default() };
    ReadOptions { cells, keep: vec![ColumnRef::Name("index".into())], ..ReadOptions::default() }
}

#[test]
fn cells_cut_anywhere_are_refused_or_whole() {
    for (file, bytes) in CELLS.iter().enumerate() {
        let whole = read_bytes(bytes, Format::H5ad, &ReadOptions::default()).unwrap();
        // Every place near the start, where most is described, and some of the rest.
        let lengths = (0..bytes.len()).filter(|length| *length < 3000 || length % 61 == 0);
        for length in lengths {
            if let Ok(cut) = read_bytes(&bytes[..length], Format::H5ad, &ReadOptions::default()) {
                assert_eq!(entries(&cut.matrix), entries(&whole.matrix), "file {file} cut at {length}");
            }
        }
    }
}

#[test]
fn cells_changed_anywhere_are_read_or_refused() {
    let mut random = Random::seeded();
    let options = cell_options();
    for (file, bytes) in CELLS.iter().enumerate() {
        for round in 0..cases(3000) {
            let mut changed = bytes.to_vec();
            random.mutate(&mut changed);
            let outcome = std::panic::catch_unwind(|| read_bytes(&changed, Format::H5ad, &options).map(drop));
            assert!(outcome.is_ok(), "file {file}, round {round}");
        }
    }
}

/// Bytes of a description that are looked at: all of them are tried, not only those that chance finds.
#[test]
fn descriptions_of_cells_with_any_byte_changed_are_read_or_refused() {
    let options = cell_options();
    for (file, bytes) in CELLS.iter().enumerate().skip(2) {
        for at in (0..bytes.len()).filter(|at| bytes[*at] != 0) {
            for value in [0, 1, 0x7F, 0x80, 0xFF] {
                let mut changed = bytes.to_vec();
                changed[at] = value;
                let outcome =
                    std::panic::catch_unwind(|| read_bytes(&changed, Format::H5ad, &options).map(drop));
                assert!(outcome.is_ok(), "file {file}: byte {at} is {value}");
            }
        }
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> usize {
    bytes.windows(pattern.len()).position(|window| window == pattern).unwrap()
}

#[test]
fn a_tree_that_leads_back_to_itself_is_refused() {
    let mut bytes = CELLS[5].to_vec();
    let tree = find(&bytes, b"TREE");
    bytes[tree + 5] = 1; // a node above others
    bytes[tree + 32..tree + 40].copy_from_slice(&(tree as u64).to_le_bytes());
    let error = read_bytes(&bytes, Format::H5ad, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("in a circle") || error.contains("is not where it should be"), "{error}");
}

/// The dimensions of X, and those of a chunk where it has such, claim ever more.
#[test]
fn cells_that_claim_more_than_their_bytes_can_unpack_to_are_refused_at_once() {
    let bytes = CELLS[2];
    let shape: Vec<u8> = [20_u64, 13].iter().flat_map(|n| n.to_le_bytes()).collect();
    for n in [21_u64, 25, 1 << 20, 1 << 31, 1 << 62] {
        let mut changed = bytes.to_vec();
        let at = find(&changed, &shape);
        changed[at..at + 8].copy_from_slice(&n.to_le_bytes());
        let error = read_bytes(&changed, Format::H5ad, &ReadOptions::default()).unwrap_err().to_string();
        let reasons =
            ["never written", "too large", "too many chunks", "21 rows, but the table of cells (obs) has 20"];
        assert!(reasons.iter().any(|text| error.contains(text)), "{n}: {error}");
    }
    let chunk: Vec<u8> = [6_u32, 5, 2].iter().flat_map(|n| n.to_le_bytes()).collect();
    for n in [1_u32 << 16, 1 << 31, u32::MAX] {
        let mut changed = bytes.to_vec();
        let at = find(&changed, &chunk);
        changed[at..at + 4].copy_from_slice(&n.to_le_bytes());
        let error = read_bytes(&changed, Format::H5ad, &ReadOptions::default()).unwrap_err().to_string();
        assert!(["chunk", "too large"].iter().any(|word| error.contains(word)), "{n}: {error}");
    }
}

/// Small files of genotypes: a .bed, its .bim and its .fam.
fn genotypes() -> [Vec<u8>; 3] {
    let bed = vec![0x6c, 0x1b, 1, 0b1101_1000, 0b10, 0b0011_0110, 0b01];
    let bim = b"1\trs1\t0\t100\tA\tG\n1\t.\t0\t200\tC\tT\n".to_vec();
    let fam = b"f1 i1 0 0 1 -9\nf1 i2 0 0 2 -9\nf2 i3 0 0 0 1\nf3 i4 0 0 0 2\nf4 i5 0 0 0 2\n".to_vec();
    [bed, bim, fam]
}

fn open_genotypes([bed, bim, fam]: [Vec<u8>; 3]) -> Result<BedFile, hbpca_io::ReadError> {
    BedFile::from_bytes(("x.bed", bed), ("x.bim", &bim), ("x.fam", &fam))
}

#[test]
fn genotypes_cut_anywhere_are_refused_or_have_what_is_left() {
    let files = genotypes();
    let whole = open_genotypes(files.clone()).unwrap();
    for which in 0..3 {
        for length in 0..files[which].len() {
            let mut cut = files.clone();
            cut[which].truncate(length);
            if let Ok(cut) = open_genotypes(cut) {
                // Only fields that are not looked at, or letters of a name, may be missing.
                assert_ne!(which, 0, "cut at {length}");
                assert_eq!(
                    cut.genotypes.fingerprint(None).unwrap(),
                    whole.genotypes.fingerprint(None).unwrap()
                );
            }
        }
    }
}

#[test]
fn genotypes_changed_anywhere_are_read_or_refused() {
    let mut random = Random::seeded();
    for which in 0..3 {
        for round in 0..cases(3000) {
            let mut changed = genotypes();
            random.mutate(&mut changed[which]);
            let shown = format!("{changed:?}");
            let outcome = std::panic::catch_unwind(|| open_genotypes(changed).map(drop));
            assert!(outcome.is_ok(), "file {which}, round {round}: {shown}");
        }
    }
}
