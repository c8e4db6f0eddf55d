//! Files, folders, parts and streams; how formats and precisions are found; what does not fit together.

#![allow(clippy::unwrap_used, clippy::needless_for_each, reason = "a test fails where it unwraps")]

use std::fs;
use std::path::Path;

use hbpca::{Dense, Matrix};
use hbpca_io::{
    ColumnRef, ConvertError, Format, Input, Labels, ReadError, ReadOptions, WriteOptions, convert, read,
    read_bytes, write,
};

fn options() -> ReadOptions {
    ReadOptions::default()
}

fn put(folder: &Path, name: &str, content: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    path
}

fn first_column(x: &Matrix<'_>) -> Vec<f64> {
    let mut column = vec![0.0; x.n_rows()];
    (0..x.n_rows()).for_each(|l| {
        x.for_each_in_row(l, |j, v| {
            if j == 0 {
                column[l] = v;
            }
        });
    });
    column
}

#[test]
fn a_folder_is_read_in_natural_order() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["part-10.csv", "part-9.csv", "part-1.csv", ".hidden", "_SUCCESS"] {
        let number = name.trim_matches(|c: char| !c.is_ascii_digit());
        put(folder.path(), name, &format!("{number},0.5\n"));
    }
    fs::create_dir(folder.path().join("inner")).unwrap();
    let data = read(Input::path(folder.path()), &options()).unwrap();
    assert_eq!(first_column(&data.matrix), [1.0, 9.0, 10.0]);
}

#[test]
fn parts_may_differ_in_format_and_precision() {
    let folder = tempfile::tempdir().unwrap();
    let csv = put(folder.path(), "a.csv", "a,b\n0.5,1\n");
    let npy = folder.path().join("b.npy");
    let x: Matrix = Dense::new(vec![0.1, 0.2], 1, 2).unwrap().into();
    write(&npy, &x, &WriteOptions::default()).unwrap();
    let data = read(Input::paths([csv, npy]), &options()).unwrap();
    assert_eq!(first_column(&data.matrix), [0.5, 0.1]);
    assert_eq!((data.format, data.column_names.unwrap().len()), (Format::Csv, 2));
}

#[test]
fn indices_from_zero_in_one_part_hold_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let one = put(folder.path(), "1.svm", "1 1:5\n");
    let two = put(folder.path(), "2.svm", "2 0:6 2:7\n");
    let data = read(Input::paths([&one, &two]), &options()).unwrap();
    assert_eq!((data.matrix.n_cols(), first_column(&data.matrix)), (3, vec![0.0, 6.0]));
    assert_eq!(data.labels, Some(Labels::Numbers(vec![1.0, 2.0])));
    let output = folder.path().join("out.csv");
    convert(Input::paths([&one, &two]), &options(), &output, &WriteOptions::default()).unwrap();
    assert_eq!(fs::read_to_string(&output).unwrap(), "0,5,0\n6,0,7\n");
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let two = put(folder.path(), "two.csv", "1,2\n");
    let three = put(folder.path(), "three.csv", "1,2,3\n");
    let sparse = put(folder.path(), "x.svm", "1 1:5 2:6\n");
    let error = |paths: &[&Path]| read(Input::paths(paths.to_vec()), &options()).unwrap_err().to_string();
    assert!(error(&[&two, &three]).contains("three.csv: 3 columns, but the parts before it have 2"));
    assert!(error(&[&two, &sparse]).contains("x.svm: dense and sparse parts cannot make one matrix"));
    assert!(error(&[]).contains("no file was given"));
    let empty = tempfile::tempdir().unwrap();
    assert!(error(&[empty.path()]).contains("the folder holds no files"));
}

#[test]
fn content_decides_where_the_name_does_not() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content, format) in [
        ("a9a", "-1 3:1 11:1\n", Format::Libsvm),
        ("x.tst", "1 1:2\n", Format::Libsvm),
        ("x.data", "1;2\n3;4\n", Format::Csv),
        ("y", "%%MatrixMarket matrix array real general\n1 1\n5\n", Format::MatrixMarket),
    ] {
        let path = put(folder.path(), name, content);
        assert_eq!(read(Input::path(&path), &options()).unwrap().format, format, "{name}");
        let stream = fs::File::open(&path).unwrap();
        assert_eq!(read(Input::reader("pipe", stream), &options()).unwrap().format, format, "{name}");
    }
}

#[test]
fn files_that_say_nothing_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = |path: &Path| read(Input::path(path), &options()).unwrap_err();
    let text = error(&put(folder.path(), "empty", "")).to_string();
    assert!(text.ends_with("empty: the file is empty: there are no rows"), "{text}");
    let text = error(&put(folder.path(), "junk", "\u{1}\0\u{2}")).to_string();
    assert!(text.contains("neither in the name nor in the content: name one of libsvm, csv"), "{text}");
    let missing = error(&folder.path().join("none.csv"));
    assert!(matches!(missing, ReadError::Io { .. }));
    assert!(missing.to_string().contains("none.csv: ") && missing.file().ends_with("none.csv"));
}

#[test]
fn options_that_do_not_fit_the_format_are_refused() {
    let error =
        |options: ReadOptions| read_bytes(b"1 1:1\n", Format::Libsvm, &options).unwrap_err().to_string();
    let column = Some(ColumnRef::Index(0));
    assert!(
        error(ReadOptions { label_column: column.clone(), ..options() })
            .contains("a label column can be named for")
    );
    let columns = Some(vec![ColumnRef::Index(0)]);
    assert!(error(ReadOptions { columns, ..options() }).contains("columns can be chosen from CSV"));
    let options = ReadOptions { n_columns: Some(1), ..options() };
    let text = read_bytes(b"1,2\n", Format::Csv, &options).unwrap_err().to_string();
    assert!(text.contains("the number of columns can be given for LIBSVM only"));
}

#[test]
fn a_broken_input_leaves_no_output() {
    let folder = tempfile::tempdir().unwrap();
    let input = put(folder.path(), "x.csv", "1,2\n3,x\n");
    let output = folder.path().join("y.npy");
    let error = convert(Input::path(&input), &options(), &output, &WriteOptions::default()).unwrap_err();
    assert!(matches!(error, ConvertError::Read(_)) && error.to_string().contains("x.csv:2:3:"), "{error}");
    let empty = put(folder.path(), "z.svm", "# nothing\n");
    let error = convert(Input::path(&empty), &options(), &output, &WriteOptions::default()).unwrap_err();
    assert!(error.to_string().contains("z.svm: there are no rows"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    let nowhere = folder.path().join("no/y.npy");
    let error = convert(Input::path(&input), &options(), &nowhere, &WriteOptions::default()).unwrap_err();
    assert!(matches!(error, ConvertError::Write(_)));
}
