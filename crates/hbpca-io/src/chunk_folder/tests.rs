use std::fs;

use super::*;
use crate::{Input, ReadOptions, WriteOptions, read, write};
use hbpca::{Csr, Dense};

/// 2000 rows: dense, or with every third entry and some empty rows.
fn rows(sparse: bool, single: bool) -> Matrix<'static> {
    let value = |l: usize, j: usize| {
        if (l + j).is_multiple_of(3) && !l.is_multiple_of(7) { (l * 5 + j) as f64 / 8.0 } else { 0.0 }
    };
    let (n, d) = (2000, 5);
    if sparse {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for l in 0..n {
            for j in (0..d).filter(|&j| value(l, j) != 0.0) {
                columns.push(j as u32);
                values.push(value(l, j));
            }
            starts.push(columns.len());
        }
        if single {
            let narrow: Vec<f32> = values.iter().map(|&x| x as f32).collect();
            return Csr::new(d, starts, columns, narrow).unwrap().into();
        }
        return Csr::new(d, starts, columns, values).unwrap().into();
    }
    let values: Vec<f64> = (0..n * d).map(|at| value(at / d, at % d)).collect();
    if single {
        let narrow: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        return Dense::new(narrow, n, d).unwrap().into();
    }
    Dense::new(values, n, d).unwrap().into()
}

fn entries(matrix: &Matrix<'_>, l: usize) -> Vec<(usize, u64)> {
    let mut all = Vec::new();
    matrix.for_each_in_row(l, |j, x| all.push((j, x.to_bits())));
    all
}

fn kinds() -> impl Iterator<Item = (Matrix<'static>, tempfile::TempDir, PathBuf)> {
    [(false, false), (false, true), (true, false), (true, true)].into_iter().map(|(sparse, single)| {
        let matrix = rows(sparse, single);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.chunks");
        write(&path, &matrix, &WriteOptions { part_bytes: 9000, ..WriteOptions::default() }).unwrap();
        (matrix, folder, path)
    })
}

#[test]
fn parts_are_the_rows_and_any_rows_can_be_read_alone() {
    for (matrix, _folder, path) in kinds() {
        let mut chunks = ChunkFolder::open(&path).unwrap();
        assert!(chunks.starts().len() > 3, "several parts");
        assert_eq!((chunks.n_rows(), chunks.n_cols(), chunks.nnz()), (2000, 5, matrix.nnz()));
        assert_eq!(chunks.is_sparse(), matrix.is_sparse());
        for k in 0..chunks.starts().len() - 1 {
            let part = chunks.read_chunk(k, None).unwrap();
            let start = chunks.starts()[k];
            assert_eq!(part.n_rows(), chunks.starts()[k + 1] - start);
            assert!((0..part.n_rows()).all(|l| entries(&part, l) == entries(&matrix, start + l)));
        }
        let cut = chunks.starts()[1];
        for range in [0..1, 1999..2000, cut - 1..cut, cut..cut + 1, cut - 2..cut + 3, 1..1999] {
            let some = chunks.read_rows(range.clone()).unwrap();
            assert_eq!(some.n_rows(), range.len());
            assert!(
                (0..range.len()).all(|l| entries(&some, l) == entries(&matrix, range.start + l)),
                "{range:?}"
            );
        }
        for range in [0..0, 1999..2001] {
            assert!(chunks.read_rows(range).unwrap_err().to_string().contains("rows 0..2000"));
        }
    }
}

#[test]
fn statistics_are_those_of_the_matrix() {
    for (matrix, _folder, path) in kinds() {
        let chunks = ChunkFolder::open(&path).unwrap();
        let (found, expected) = (chunks.statistics().unwrap(), ColumnStatistics::new(&matrix).unwrap());
        assert_eq!((found.min(), found.max()), (expected.min(), expected.max()));
        for j in 0..5 {
            // Merging parts rounds a few more times than merging runs does.
            let (scale, bound) = (expected.max()[j], 64.0 * f64::EPSILON);
            assert!((found.mean()[j] - expected.mean()[j]).abs() <= bound * scale);
            assert!((found.variance()[j] - expected.variance()[j]).abs() <= bound * scale * scale);
        }
        let mut nonzeros = 0;
        (0..2000).for_each(|l| nonzeros += entries(&matrix, l).iter().filter(|x| x.1 != 0).count());
        assert_eq!(chunks.nonzeros(), nonzeros);
    }
}

#[test]
fn damage_is_named_with_the_part() {
    for (_, _folder, path) in kinds() {
        let part = path.join(if path.join("part-000001.npz").exists() {
            "part-000001.npz"
        } else {
            "part-000001.npy"
        });
        let good = fs::read(&part).unwrap();
        let mut bad = good.clone();
        let at = bad.len() / 2;
        bad[at] ^= 1;
        fs::write(&part, &bad).unwrap();
        let mut chunks = ChunkFolder::open(&path).unwrap();
        let error = chunks.read_chunk(1, None).unwrap_err().to_string();
        let sums = format!("{:08x}, but {:08x} was written", crc32fast::hash(&bad), crc32fast::hash(&good));
        assert!(error.contains("part-000001") && error.contains(&sums), "{error}");
        assert!(error.contains("convert the data again"), "{error}");
        chunks.read_chunk(0, None).unwrap();
        let error = read(Input::path(&path), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(&sums), "{error}");

        fs::write(&part, &good[..good.len() - 1]).unwrap();
        let error = chunks.read_rows(0..2000).unwrap_err().to_string();
        assert!(
            error.contains(&format!("it has {} bytes, but {} were", good.len() - 1, good.len())),
            "{error}"
        );
        let error = ChunkFolder::open(&path).unwrap_err().to_string();
        assert!(error.contains("part-000001") && error.contains("bytes, but"), "{error}");

        fs::remove_file(&part).unwrap();
        let error = ChunkFolder::open(&path).unwrap_err().to_string();
        assert!(error.contains("part-000001") && error.contains("is missing"), "{error}");
    }
}

/// Puts a part in place of another and makes the manifest agree with its bytes.
fn replace_part(path: &Path, file: &str, bytes: &[u8]) {
    let manifest = path.join(MANIFEST);
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let part = json["parts"].as_array_mut().unwrap().iter_mut().find(|part| part["file"] == file).unwrap();
    part["bytes"] = bytes.len().into();
    part["crc32"] = crc32fast::hash(bytes).into();
    fs::write(path.join(file), bytes).unwrap();
    fs::write(&manifest, json.to_string()).unwrap();
}

#[test]
fn a_part_of_another_shape_is_refused_even_with_a_right_checksum() {
    for (_, _folder, path) in kinds() {
        let file = |k| {
            if path.join("part-000000.npz").exists() {
                format!("part-00000{k}.npz")
            } else {
                format!("part-00000{k}.npy")
            }
        };
        let n_parts = ChunkFolder::open(&path).unwrap().starts().len() - 1;
        // The last part is shorter than the first.
        let last = fs::read(path.join(file(n_parts - 1))).unwrap();
        let first = fs::read(path.join(file(0))).unwrap();
        replace_part(&path, &file(n_parts - 1), &first);
        let mut chunks = ChunkFolder::open(&path).unwrap();
        let error = chunks.read_chunk(n_parts - 1, None).unwrap_err().to_string();
        assert!(error.contains("that the manifest promises"), "{error}");
        let error = chunks.read_rows(1999..2000).unwrap_err().to_string();
        assert!(error.contains("does not fit"), "{error}");
        assert_ne!(first, last);
    }
}

#[test]
fn labels_and_names_come_along() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.chunks");
    let names: Vec<String> = (0..5).map(|j| format!("c{j}")).collect();
    for labels in [
        Labels::Numbers((0..2000).map(f64::from).collect()),
        Labels::Texts((0..2000).map(|l| format!("\"{l}\"\nnext")).collect()),
    ] {
        // The second time it replaces the first.
        let column_names = Some(names.clone());
        let options = WriteOptions {
            column_names,
            labels: Some(labels.clone()),
            part_bytes: 5000,
            ..WriteOptions::default()
        };
        write(&path, &rows(false, true), &options).unwrap();
        let data = read(Input::path(&path), &ReadOptions::default()).unwrap();
        assert_eq!(data.labels.as_ref(), Some(&labels));
        assert_eq!(data.column_names.as_ref(), Some(&names));
        assert_eq!(data.format, crate::Format::Chunks);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn what_is_in_the_way_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.chunks");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("diary.txt"), "dear").unwrap();
    let error = write(&path, &rows(true, true), &WriteOptions::default()).unwrap_err().to_string();
    assert!(error.contains("is no chunk folder: remove it"), "{error}");
    assert_eq!(fs::read(path.join("diary.txt")).unwrap(), b"dear");
    let error = write(&folder.path().join("x.chunks.gz"), &rows(true, true), &WriteOptions::default());
    assert!(error.unwrap_err().to_string().contains("leave out .gz"));
}

#[test]
fn a_folder_that_is_not_finished_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.chunks");
    let matrix = rows(false, false);
    let summary = crate::Summary::of(&matrix);
    let options = WriteOptions { part_bytes: 5000, ..WriteOptions::default() };
    let mut sink = ChunkSink::new(OutputFolder::create(&path).unwrap(), &summary, &options).unwrap();
    crate::RowSink::write_rows(&mut sink, &matrix, None).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    drop(sink);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    // As when the disk is full or gone: the next part cannot be written.
    let mut sink = ChunkSink::new(OutputFolder::create(&path).unwrap(), &summary, &options).unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
    let error = crate::RowSink::write_rows(&mut sink, &matrix, None).unwrap_err().to_string();
    assert!(error.contains("x.chunks: "), "{error}");
    drop(sink);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
