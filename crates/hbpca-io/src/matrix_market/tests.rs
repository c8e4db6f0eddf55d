use hbpca::Matrix;

use crate::{Format, Precision, ReadError, ReadOptions, read_bytes};

fn read(text: &str) -> Result<Matrix<'static>, ReadError> {
    read_bytes(text.as_bytes(), Format::MatrixMarket, &ReadOptions::default()).map(|data| data.matrix)
}

fn dense(x: &Matrix<'_>) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![0.0; x.n_cols()]; x.n_rows()];
    (0..x.n_rows()).for_each(|l| x.for_each_in_row(l, |j, v| rows[l][j] = v));
    rows
}

fn coordinate(kind: &str, rest: &str) -> String {
    format!("%%MatrixMarket matrix coordinate {kind}\n{rest}")
}

#[test]
fn coordinates_come_in_any_order() {
    let x = read(&coordinate("real general", "% c\n2 3 3\n2 1 5\n\n1 3 -1.5e0 \n1 1 2\r\n")).unwrap();
    assert!(x.is_sparse());
    assert_eq!(dense(&x), [[2.0, 0.0, -1.5], [5.0, 0.0, 0.0]]);
    let x = read(&coordinate("integer general", "1 2 3\n1 2 1\n1 1 1\n1 2 5\n")).unwrap();
    assert_eq!(dense(&x), [[1.0, 6.0]], "entries given twice are summed");
}

#[test]
fn what_becomes_infinite_is_refused() {
    let error = |precision, rest: &str| {
        let options = ReadOptions { precision, ..ReadOptions::default() };
        read_bytes(rest.as_bytes(), Format::MatrixMarket, &options).unwrap_err().to_string()
    };
    let twice = coordinate("real general", "1 2 2\n1 2 1e308\n1 2 1e308\n");
    assert!(error(Precision::Auto, &twice).contains("row 1, column 2 holds inf"));
    let large = coordinate("real general", "1 2 1\n1 2 1e39\n");
    assert!(error(Precision::F32, &large).contains("row 1, column 2 holds inf"));
    let array = "%%MatrixMarket matrix array real general\n1 2\n1\n1e39\n";
    assert!(error(Precision::F32, array).contains("row 1, column 2 holds inf"));
}

#[test]
fn patterns_are_ones_and_symmetry_is_completed() {
    let x = read(&coordinate("pattern symmetric", "2 2 2\n1 1\n2 1\n")).unwrap();
    assert_eq!(dense(&x), [[1.0, 1.0], [1.0, 0.0]]);
    let x = read(&coordinate("real skew-symmetric", "2 2 1\n2 1 0.1\n")).unwrap();
    assert_eq!(dense(&x), [[0.0, -0.1], [0.1, 0.0]]);
}

#[test]
fn arrays_are_listed_by_columns() {
    let array =
        |kind: &str, rest: &str| read(&format!("%%MatrixMarket matrix array {kind}\n{rest}")).unwrap();
    assert_eq!(dense(&array("real general", "2 3\n1\n4\n2 5\n3\n6")), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    assert_eq!(dense(&array("real symmetric", "2 2\n1\n2\n3\n")), [[1.0, 2.0], [2.0, 3.0]]);
    assert_eq!(dense(&array("integer skew-symmetric", "2 2\n7\n")), [[0.0, -7.0], [7.0, 0.0]]);
}

#[test]
fn each_fault_is_placed() {
    let error = |rest: &str| read(&coordinate("real general", rest)).unwrap_err().to_string();
    assert_eq!(error("2 2 1\n3 1 1\n"), "-:3:1: expected a row from 1 to 2, found `3`");
    assert_eq!(error("2 2 1\n0 1 1\n"), "-:3:1: expected a row from 1 to 2, found `0`");
    assert_eq!(error("2 2 1\n1 x 1\n"), "-:3:3: expected a column from 1 to 2, found `x`");
    assert_eq!(error("2 2 1\n1 1 y\n"), "-:3:5: expected a number, found `y`");
    assert!(error("2 2 1\n1 1 nan\n").starts_with("-:3:5: expected a number, found the missing value `nan`"));
    assert!(error("2 2 1\n1 1  \n").starts_with("-:3:6: a value is missing here"));
    assert_eq!(error("2 2 1\n1 1 1 1\n"), "-:3:7: expected the end of the line, found `1`");
    assert_eq!(error("2 2 2\n1 1 10000000\n"), "-: the sizes promise 2 entries, but 1 are listed");
    assert_eq!(error("2 2 1\n1 1 1\n2 2 2\n"), "-: the sizes promise 1 entries, but 2 are listed");
    assert_eq!(
        error("2 2 x\n"),
        "-:2:1: expected rows, columns and entries, found `2 x`".replace("2 x", "2 2 x")
    );
    assert!(error("2 2 10000000000000000000000\n1 1 1\n").contains("10000000000000000000000 entries need"));
    assert!(error("4000000000 2 1\n1 1 1\n").contains("4000000000 rows are claimed by a file of"));
    assert!(error("0 2 0\n").contains("no rows"));
    let skew = read(&coordinate("real skew-symmetric", "2 2 1\n1 1 5\n")).unwrap_err().to_string();
    assert!(skew.contains("diagonal of a skew-symmetric matrix is zero"));
    let array = |rest: &str| {
        read(&format!("%%MatrixMarket matrix array real general\n{rest}")).unwrap_err().to_string()
    };
    assert_eq!(array("1 2\n1\nz\n"), "-:4:1: expected a number, found `z`");
    assert_eq!(array("1 2\n1\n2\n3\n"), "-: the sizes promise 2 entries, but 3 are listed");
    assert!(array("1000000 1000000\n1\n").contains("1000000000000 entries need"));
    assert!(read("").unwrap_err().to_string().contains("empty"));
}

type Entry = (usize, usize, String);
type Way<'a> = &'a dyn Fn(&Entry) -> String;

/// Lines as programs write them take a shorter way; written in any other way they must mean the same.
#[test]
fn every_way_to_write_a_line_means_the_same() {
    let entries: Vec<Entry> = (0..4000_usize)
        .map(|at| {
            let value = match at % 7 {
                0 => format!("{}", at * 37 % 1000),
                1 => format!("-{}.{}E-{}", at % 10, at, at % 23),
                2 => format!("{at}.5"),
                3 => format!("{}e{}", at % 90, at % 31),
                4 => format!("0.{:09}", at * 7919),
                5 => format!("-{at}e+2"),
                _ => format!("{:e}", (at as f64).sqrt()),
            };
            (at / 9, at * 31 % 5000, value)
        })
        .collect();
    let file = |line: Way<'_>, order: &[usize]| {
        let lines: String = order.iter().map(|&at| line(&entries[at])).collect();
        read(&coordinate("real general", &format!("445 5000 4000\n{lines}"))).unwrap()
    };
    let by_rows: Vec<usize> = (0..4000).collect();
    let mut by_columns = by_rows.clone();
    by_columns.sort_by_key(|&at| (entries[at].1, entries[at].0));
    let plain = |(i, j, v): &Entry| format!("{} {} {v}\n", i + 1, j + 1);
    let expected = file(&plain, &by_rows);
    let mut found = Vec::new();
    (0..expected.n_rows()).for_each(|l| expected.for_each_in_row(l, |j, v| found.push((l, j, v))));
    let mut listed: Vec<(usize, usize, f64)> =
        entries.iter().map(|(i, j, v)| (*i, *j, v.parse().unwrap())).collect();
    listed.sort_by_key(|entry| (entry.0, entry.1));
    assert_eq!(found, listed);
    let blanks = |(i, j, v): &Entry| format!(" {}  {}\t{v} \n", i + 1, j + 1);
    let other_ends = |(i, j, v): &Entry| format!("{} {} {v}\r\n", i + 1, j + 1);
    let remarks = |(i, j, v): &Entry| format!("{} {} {v}\n%\n\n", i + 1, j + 1);
    let zeros = |(i, j, v): &Entry| format!("{:010} {:09} {v}\n", i + 1, j + 1);
    let ways: [Way<'_>; 5] = [&plain, &blanks, &other_ends, &remarks, &zeros];
    for way in ways {
        assert_eq!(dense(&file(way, &by_rows)), dense(&expected));
        assert_eq!(dense(&file(way, &by_columns)), dense(&expected));
    }
}

#[test]
fn a_fault_amid_good_lines_is_placed() {
    let good = "7 123 -4.5E-1\n".repeat(50);
    for (line, message) in [
        ("9 1 1", ":53:1: expected a row from 1 to 8, found `9`"),
        ("0 1 1", ":53:1: expected a row from 1 to 8, found `0`"),
        ("7 0 1", ":53:3: expected a column from 1 to 200, found `0`"),
        ("7 201 1", ":53:3: expected a column from 1 to 200, found `201`"),
        ("7 20x 1", ":53:5: expected a number, found `x`"),
        ("7 20\n", ":53:5: a value is missing here"),
        ("7 20 1.5.2", ":53:9: expected the end of the line, found `.2`"),
        ("7 20 1e5x", ":53:9: expected the end of the line, found `x`"),
        ("7 20 1 2", ":53:8: expected the end of the line, found `2`"),
        ("7 20 -", ":53:6: expected a number, found the missing value `-`"),
        ("-7 20 1", ":53:1: expected a row from 1 to 8, found `-7`"),
    ] {
        let text = coordinate("real general", &format!("8 200 101\n{good}{line}\n{good}"));
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains(message), "{line}: {error}");
    }
}
