use hbpca::Matrix;
use proptest::prelude::*;

use super::dialect::{Dialect, records};
use crate::{
    ColumnRef, Data, Format, HeaderLine, Labels, NumberStyle, Precision, ReadError, ReadOptions, read_bytes,
};

fn read_with(text: &str, options: &ReadOptions) -> Result<Data, ReadError> {
    read_bytes(text.as_bytes(), Format::Csv, options)
}

fn read(text: &str) -> Result<Data, ReadError> {
    read_with(text, &ReadOptions::default())
}

fn values(data: &Data) -> Vec<Vec<f64>> {
    (0..data.matrix.n_rows())
        .map(|l| {
            let mut row = Vec::new();
            data.matrix.for_each_in_row(l, |_, v| row.push(v));
            row
        })
        .collect()
}

#[test]
fn every_dialect_gives_the_same_matrix() {
    let expected = vec![vec![1.0, -2.5], vec![3.0, 4e2]];
    for text in [
        "1,-2.5\n3,4e2\n",
        "1;-2.5\r\n3;4e2",
        "1\t-2.5\n\n3\t4e2\n\n",
        "# made by hand\n1|-2.5\n# more\n3|4e2\n",
        "  1   -2.5 \n 3 4e2\n",
        "a, b\n1 , -2.5\n3 ,4e2\n",
        "\u{feff}a,b\n1,-2.5\n3,4e2\n",
        "\"a,1\",\"b\"\n\"1\",\"-2.5\"\n\"3\",4e2\n",
        "+1.0,-2.50\n3.,400\n",
    ] {
        assert_eq!(values(&read(text).unwrap()), expected, "{text:?}");
    }
}

#[test]
fn labels_and_columns_are_chosen_by_name_and_number() {
    let text = "a,kind,b,c\n1,cat,2,3\n4,\"big, dog\",5,6\n";
    let label = Some(ColumnRef::parse("kind"));
    let data =
        read_with(text, &ReadOptions { label_column: label.clone(), ..ReadOptions::default() }).unwrap();
    assert_eq!(values(&data), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    assert_eq!(data.column_names.unwrap(), ["a", "b", "c"]);
    assert_eq!(data.labels, Some(Labels::Texts(vec!["cat".into(), "big, dog".into()])));
    let columns = Some(vec![ColumnRef::parse("-1"), ColumnRef::parse("a")]);
    let data = read_with(text, &ReadOptions { columns, ..ReadOptions::default() }).unwrap();
    assert_eq!(values(&data), [[3.0, 1.0], [6.0, 4.0]]);
    assert_eq!(data.column_names.unwrap(), ["c", "a"]);
    assert_eq!(data.labels, None);
    let last = Some(ColumnRef::Index(-1));
    let data =
        read_with("1,2\n3,4\n", &ReadOptions { label_column: last, ..ReadOptions::default() }).unwrap();
    assert_eq!(data.labels, Some(Labels::Numbers(vec![2.0, 4.0])));
}

#[test]
fn quoted_line_ends_are_part_of_a_field() {
    let text = "x,note\n1,\"two\nlines\"\n2,one\n";
    let options = ReadOptions { label_column: Some(ColumnRef::parse("note")), ..ReadOptions::default() };
    let data = read_with(text, &options).unwrap();
    assert_eq!(data.labels, Some(Labels::Texts(vec!["two\nlines".into(), "one".into()])));
}

#[test]
fn each_fault_is_placed() {
    let error = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(error("a,b\n1,2\n3,x4\n"), "-:3:3: column `b`: expected a number, found `x4`");
    assert!(error("a,b\n1,2\n3,\n").starts_with("-:3:3: column `b`: a value is missing here"));
    assert!(error("a,b\n1,2\n,3\n").starts_with("-:3:1: column `a`: a value is missing here"));
    assert!(
        error("a,b\n1,NA\n").starts_with("-:2:3: column `b`: expected a number, found the missing value")
    );
    assert!(error("1,2\n1,inf\n").contains("-:2:3: column 1 (counted from 0): expected a finite number"));
    assert!(error("1;2,5\n1;2,5\n").contains("found `2,5`: give --decimal ,"));
    assert_eq!(error("1,2\n1,2,3\n"), "-:2:1: expected 2 fields as in the first line, found 3");
    assert_eq!(error("1,2\n1,2\n\n1\n"), "-:4:1: expected 2 fields as in the first line, found 1");
    assert_eq!(error(""), "-: there are no rows");
    assert_eq!(error("# nothing\n\n"), "-: there are no rows");
    assert_eq!(error("a,b\n"), "-: there is a header, but there are no rows");
    let text = error("x,kind,note\n1,cat,hm\n");
    assert!(
        text.starts_with("-: column `kind` holds text such as `cat`, and so does 1 more column:"),
        "{text}"
    );
    assert!(text.contains("--columns") && text.contains("--label-column"));
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let error = |label: Option<&str>, columns: Option<Vec<&str>>| {
        let options = ReadOptions {
            label_column: label.map(ColumnRef::parse),
            columns: columns.map(|x| x.into_iter().map(ColumnRef::parse).collect()),
            ..ReadOptions::default()
        };
        read_with("a,b\n1,2\n", &options).unwrap_err().to_string()
    };
    assert!(error(Some("z"), None).contains("no column `z`; the columns are `a`, `b`"));
    assert!(error(None, Some(vec!["a", "0"])).contains("column 0 is chosen twice"));
    assert!(error(Some("a"), Some(vec!["a"])).contains("column 0 is the label"));
    assert!(error(None, Some(vec![])).contains("no column is left"));
}

#[test]
fn a_header_of_numbers_can_be_declared() {
    let options = |header| ReadOptions { header, ..ReadOptions::default() };
    let data = read_with("1,2\n3,4\n", &options(HeaderLine::Present)).unwrap();
    assert_eq!(
        (values(&data), data.column_names.unwrap()),
        (vec![vec![3.0, 4.0]], vec!["1".into(), "2".into()])
    );
    let text = read_with("a,2\n3,4\n", &options(HeaderLine::Absent)).unwrap_err().to_string();
    assert!(text.contains("column 0 (counted from 0) holds text such as `a`"));
}

#[test]
fn text_is_single_precision_only_when_nothing_is_lost() {
    assert!(matches!(read("0.5,2\n").unwrap().matrix, Matrix::DenseF32(_)));
    assert!(matches!(read("0.1,2\n").unwrap().matrix, Matrix::DenseF64(_)));
    let single = ReadOptions { precision: Precision::F32, ..ReadOptions::default() };
    let Matrix::DenseF32(x) = read_with("0.1,2\n", &single).unwrap().matrix else { panic!("not single") };
    assert_eq!(x.values(), [0.1_f32, 2.0]);
    let double = ReadOptions { precision: Precision::F64, ..ReadOptions::default() };
    assert!(matches!(read_with("1,2\n", &double).unwrap().matrix, Matrix::DenseF64(_)));
}

/// Single digits are read several at a time, but never across a label, a column left out or the line's end.
#[test]
fn single_digits_are_fields_like_any_other() {
    let digit = |l: usize, j: usize| (l * 7 + j * j + j) % 10;
    let text = |delimiter: &str| {
        let line = |l: usize| {
            let fields: Vec<String> = (0..23)
                .map(|j| if j % 9 == 8 { (l * 31).to_string() } else { digit(l, j).to_string() })
                .collect();
            fields.join(delimiter) + "\n"
        };
        (0..40).map(line).collect::<String>()
    };
    for (delimiter, format) in
        [(",", Format::Csv), (";", Format::Csv), (" ", Format::Csv), ("\t", Format::Tsv)]
    {
        for options in [
            ReadOptions::default(),
            ReadOptions { label_column: Some(ColumnRef::Index(5)), ..ReadOptions::default() },
            ReadOptions {
                columns: Some([0, 1, 2, 3, 4, 6, 7, 8, 22].map(ColumnRef::Index).to_vec()),
                ..ReadOptions::default()
            },
            ReadOptions { columns: Some([9, 4, 3].map(ColumnRef::Index).to_vec()), ..ReadOptions::default() },
        ] {
            let data = read_bytes(text(delimiter).as_bytes(), format, &options).unwrap();
            let columns: Vec<usize> = match (&options.columns, &options.label_column) {
                (Some(columns), _) => columns
                    .iter()
                    .map(|column| match column {
                        ColumnRef::Index(j) => usize::try_from(*j).unwrap(),
                        ColumnRef::Name(_) => unreachable!("none is named"),
                    })
                    .collect(),
                (None, Some(_)) => (0..23).filter(|&j| j != 5).collect(),
                (None, None) => (0..23).collect(),
            };
            for l in 0..40 {
                let mut row = vec![0.0; columns.len()];
                data.matrix.for_each_in_row(l, |j, value| row[j] = value);
                let expected = |&j: &usize| if j % 9 == 8 { (l * 31) as f64 } else { digit(l, j) as f64 };
                assert_eq!(row, columns.iter().map(expected).collect::<Vec<_>>(), "{delimiter:?} row {l}");
            }
        }
    }
    let ragged = |fields: usize| {
        let line = |n: usize| vec!["3"; n].join(",") + "\n";
        let text = line(12) + &line(fields) + &line(12);
        read_bytes(text.as_bytes(), Format::Csv, &ReadOptions::default()).unwrap_err().to_string()
    };
    for fields in [9, 11, 13, 16] {
        assert!(
            ragged(fields)
                .contains(&format!(":2:1: expected 12 fields as in the first line, found {fields}")),
            "{}",
            ragged(fields)
        );
    }
}

#[test]
fn what_becomes_infinite_in_single_precision_is_refused() {
    let single = ReadOptions { precision: Precision::F32, ..ReadOptions::default() };
    let text = read_with("1,2\n3,1e39\n", &single).unwrap_err().to_string();
    assert!(text.contains("row 2, column 2 holds inf"), "{text}");
}

/// How many fields the reader finds in the first row: an open quote swallows fields, a comma in one makes two.
fn n_fields(text: &str) -> usize {
    let text = text.as_bytes();
    let (_, first) = records(text).next().unwrap();
    Dialect::detect(Format::Csv, text, NumberStyle::default()).fields(first).len()
}

/// What is refused: the place where the rows are at fault, or the columns as a whole.
fn refused(error: &ReadError) -> Option<(u64, u64)> {
    match error {
        ReadError::Text { line, column, .. } => Some((*line, *column)),
        ReadError::Malformed { .. } => None,
        other => panic!("neither rows nor columns are at fault: {other}"),
    }
}

/// Columns in another order take the way for any field, one by one. Both ways must find the same values, or refuse the
/// same; they need not say it in the same words.
fn assert_both_ways_agree(text: &str) {
    let options = |columns| ReadOptions { columns, header: HeaderLine::Absent, ..ReadOptions::default() };
    // As many columns as there are: asked for others, the second way would answer another question.
    let n = i64::try_from(n_fields(text)).unwrap();
    let backwards: Vec<ColumnRef> = (0..n).rev().map(ColumnRef::Index).collect();
    match (read_with(text, &options(None)), read_with(text, &options(Some(backwards)))) {
        (Ok(runs), Ok(single_fields)) => {
            let (runs, mut single_fields) = (values(&runs), values(&single_fields));
            single_fields.iter_mut().for_each(|row| row.reverse());
            assert_eq!(runs, single_fields);
        }
        (Err(runs), Err(single_fields)) => {
            assert_eq!(refused(&runs), refused(&single_fields), "{runs} but {single_fields}");
        }
        (runs, single_fields) => panic!("{:?} but {:?}", runs.err(), single_fields.err()),
    }
}

/// The first row decides how many columns there are, and the first rows what delimits them.
#[test]
fn both_ways_agree_where_the_first_rows_are_odd() {
    let line = ["7"; 21];
    for (l, j, odd) in [
        (0, 3, "\""),
        (0, 0, "\""),
        (0, 20, "\""),
        (0, 9, "\"1,"),
        (0, 9, "\"\"\""),
        (0, 9, "1\""),
        (0, 4, "1,2"),
        (0, 20, "1,x"),
        (0, 20, "1, "),
        (0, 20, ","),
        (5, 4, "1,2"),
        (5, 4, "\""),
    ] {
        for (blanks, line_end) in [(false, "\n"), (true, "\n"), (false, "\r\n")] {
            let mut lines = vec![line; 30];
            if blanks {
                // Blanks cut every line evenly where commas do not.
                lines.iter_mut().for_each(|line| line[12] = " 7 ");
            }
            lines[l][j] = odd;
            let text: String = lines.iter().map(|fields| fields.join(",") + line_end).collect();
            assert!(
                read_with(&text, &ReadOptions { header: HeaderLine::Absent, ..ReadOptions::default() })
                    .is_err()
            );
            assert_both_ways_agree(&text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn runs_of_plain_fields_mean_what_their_fields_mean(
        rows in proptest::collection::vec(
            proptest::collection::vec("[0-9]|[0-9]|[0-9]|[0-9]{1,8}|-[0-9]{1,7}|-?[0-9]{1,4}\\.[0-9]{0,3}(e[0-9])?| [0-9]+ ", 21),
            1..40,
        ),
        odd in proptest::option::of((0_usize..1500, 0_usize..21, "[0-9x,. \"-]{0,3}")),
        line_end in "\n|\r\n",
    ) {
        // Several chunks, so that every kind of field also meets the end of one.
        let mut lines: Vec<Vec<String>> = rows.iter().cycle().take(1500).cloned().collect();
        if let Some((l, j, field)) = odd {
            lines[l][j] = field;
        }
        let text: String = lines.iter().map(|fields| fields.join(",") + &line_end).collect();
        assert_both_ways_agree(&text);
    }
}
