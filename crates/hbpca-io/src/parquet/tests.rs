use std::sync::Arc;

use ::parquet::data_type::{BoolType, ByteArrayType, Int32Type, Int64Type};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use hbpca::Matrix;

use crate::{ColumnRef, Data, Format, Labels, ReadError, ReadOptions, read_bytes};

/// A table of two row groups, each with the same two rows.
fn table() -> Vec<u8> {
    let schema =
        "message m { required int32 small (INTEGER(8,true)); optional int64 wide; required boolean flag;
        required binary kind (STRING); required int32 day (DATE); optional int64 __index_level_0__; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::default())).unwrap();
    for group in 0..2_i64 {
        let mut out = writer.next_row_group().unwrap();
        let mut column = out.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&[-1, 7], None, None).unwrap();
        column.close().unwrap();
        let mut column = out.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&[1 << 40, group], Some(&[1, 1]), None).unwrap();
        column.close().unwrap();
        let mut column = out.next_column().unwrap().unwrap();
        column.typed::<BoolType>().write_batch(&[true, false], None, None).unwrap();
        column.close().unwrap();
        let mut column = out.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&["cat".into(), "dog".into()], None, None).unwrap();
        column.close().unwrap();
        let mut column = out.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&[1, 2], None, None).unwrap();
        column.close().unwrap();
        let mut column = out.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&[5], Some(&[1, 0]), None).unwrap();
        column.close().unwrap();
        out.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn read(label: Option<&str>, columns: Option<&[&str]>) -> Result<Data, ReadError> {
    let options = ReadOptions {
        label_column: label.map(ColumnRef::parse),
        columns: columns.map(|names| names.iter().map(|name| ColumnRef::parse(name)).collect()),
        ..ReadOptions::default()
    };
    read_bytes(&table(), Format::Parquet, &options)
}

fn rows(x: &Matrix<'_>) -> Vec<Vec<f64>> {
    let mut rows = vec![Vec::new(); x.n_rows()];
    (0..x.n_rows()).for_each(|l| x.for_each_in_row(l, |_, v| rows[l].push(v)));
    rows
}

#[test]
fn numeric_columns_of_all_row_groups_are_read() {
    let wide = f64::from(1 << 20) * f64::from(1 << 20);
    let data = read(Some("kind"), Some(&["wide", "flag", "small"])).unwrap();
    assert_eq!(rows(&data.matrix), [[wide, 1.0, -1.0], [0.0, 0.0, 7.0], [wide, 1.0, -1.0], [1.0, 0.0, 7.0]]);
    assert_eq!(data.column_names.unwrap(), ["wide", "flag", "small"]);
    assert_eq!(data.labels, Some(Labels::Texts(["cat", "dog", "cat", "dog"].map(String::from).to_vec())));
    assert!(matches!(data.matrix, Matrix::DenseF64(_)));
    let data = read(Some("wide"), Some(&["small", "flag"])).unwrap();
    assert!(matches!(data.matrix, Matrix::DenseF32(_)), "small integers and booleans are exact in f32");
    assert_eq!(data.labels, Some(Labels::Numbers(vec![wide, 0.0, wide, 1.0])));
}

#[test]
fn each_fault_is_named() {
    let text = read(None, None).unwrap_err().to_string();
    assert!(
        text.starts_with("-: column `kind` holds text and no numbers, and so does 1 more column:"),
        "{text}"
    );
    let text = read(None, Some(&["day"])).unwrap_err().to_string();
    assert!(text.contains("column `day` holds dates and no numbers"), "{text}");
    let text = read(None, Some(&["__index_level_0__"])).unwrap_err().to_string();
    assert!(text.contains("row 2, column 6 holds no value (null)"), "{text}");
    let text =
        read_bytes(b"PAR1 and so on", Format::Parquet, &ReadOptions::default()).unwrap_err().to_string();
    assert!(text.starts_with("-: "), "{text}");
}
