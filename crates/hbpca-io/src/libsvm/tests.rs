use crate::block::Labels;
use crate::{Format, ReadError, ReadOptions, read_bytes};

fn read(text: &str) -> Result<crate::Data, ReadError> {
    read_bytes(text.as_bytes(), Format::Libsvm, &ReadOptions::default())
}

fn rows(text: &str) -> (usize, Vec<Vec<(usize, f64)>>) {
    let data = read(text).unwrap();
    let row = |l| {
        let mut entries = Vec::new();
        data.matrix.for_each_in_row(l, |j, v| entries.push((j, v)));
        entries
    };
    (data.matrix.n_cols(), (0..data.matrix.n_rows()).map(row).collect())
}

#[test]
fn indices_count_from_one_unless_a_zero_appears() {
    assert_eq!(rows("1 1:5 3:7\n-1 2:1\n"), (3, vec![vec![(0, 5.0), (2, 7.0)], vec![(1, 1.0)]]));
    assert_eq!(rows("1 1:5 3:7\n-1 0:1\n"), (4, vec![vec![(1, 5.0), (3, 7.0)], vec![(0, 1.0)]]));
}

#[test]
fn comments_qid_blanks_and_line_ends_are_no_data() {
    let text = "# head\n\n 1.5 qid:3 1:5\t2:6  # tail\r\n2#none\n\t\r\n3 qid:4\n";
    assert_eq!(rows(text), (2, vec![vec![(0, 5.0), (1, 6.0)], vec![], vec![]]));
    assert_eq!(read(text).unwrap().labels, Some(Labels::Numbers(vec![1.5, 2.0, 3.0])));
}

#[test]
fn several_labels_or_none_are_texts() {
    let labels = read("1,4 1:1\n 1:2\n7 1:3\n").unwrap().labels;
    assert_eq!(labels, Some(Labels::Texts(["1,4", "", "7"].map(String::from).to_vec())));
}

#[test]
fn explicit_zeros_are_kept() {
    assert_eq!(read("1 1:0 2:1\n").unwrap().matrix.nnz(), 2);
}

#[test]
fn each_fault_is_placed() {
    let error = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(
        error("1 1:1\n1 2:1 2:3\n"),
        "-:2:7: index 2 is given twice: indices must ascend within a line"
    );
    assert_eq!(error("1 3:1 2:3\n"), "-:1:7: index 2 comes after 3: indices must ascend within a line");
    assert_eq!(error("1 3\n"), "-:1:3: expected index:value, found `3`");
    assert_eq!(error("1 3:abc\n"), "-:1:5: expected a number, found `abc`");
    assert_eq!(error("1 3:1x\n"), "-:1:5: expected a number, found `1x`");
    assert!(error("1 3:\n").starts_with("-:1:5: a value is missing here"));
    assert!(error("1 3:nan\n").starts_with("-:1:5: expected a number, found the missing value `nan`"));
    assert!(error("1 3:1e999\n").starts_with("-:1:5: expected a finite number, found `1e999`"));
    assert!(error("1 x:1\n").starts_with("-:1:3: expected an index from 0 to 4294967295"));
    assert!(error("1 -1:1\n").starts_with("-:1:3: expected an index"));
    assert!(error("1 99999999999:1\n").contains("found `99999999999`"));
    assert!(error("dog 1:1\n").starts_with("-:1:1: expected a label"));
    assert!(error("1:1 2:1\n").starts_with("-:1:1: expected a label"));
    assert!(error("# nothing\n").contains("no rows"));
    assert!(error("").contains("no rows"));
    assert!(error("1\n2\n").contains("no columns"));
}

#[test]
fn the_number_of_columns_can_be_given() {
    let options = ReadOptions { n_columns: Some(5), ..ReadOptions::default() };
    let read = |text: &str| read_bytes(text.as_bytes(), Format::Libsvm, &options);
    assert_eq!(read("1 5:1\n").unwrap().matrix.n_cols(), 5);
    assert_eq!(read("1 0:1 4:1\n").unwrap().matrix.n_cols(), 5);
    assert!(read("1 6:1\n").unwrap_err().to_string().contains("-:1:3: index 6 is beyond the 5 columns"));
    assert!(read("1 0:1 5:1\n").unwrap_err().to_string().contains("6 columns, but 5 were asked for"));
}
