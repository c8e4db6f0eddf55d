use hbpca::{CountTransform, Matrix};

use crate::{CellOptions, Data, Format, ReadOptions, read_bytes};

const N: usize = 20;
const D: usize = 13;

/// The files, which `tests/fixtures/h5ad/make.py` writes.
const FILES: [(&str, &[u8]); 6] = [
    ("csr-gzip", include_bytes!("../../tests/fixtures/h5ad/csr-gzip.h5ad")),
    ("csc-lzf", include_bytes!("../../tests/fixtures/h5ad/csc-lzf.h5ad")),
    ("dense-chunks", include_bytes!("../../tests/fixtures/h5ad/dense-chunks.h5ad")),
    ("dense-latest", include_bytes!("../../tests/fixtures/h5ad/dense-latest.h5ad")),
    ("csr-latest", include_bytes!("../../tests/fixtures/h5ad/csr-latest.h5ad")),
    ("records", include_bytes!("../../tests/fixtures/h5ad/records.h5ad")),
];

/// The counts that they hold.
fn count(i: usize, j: usize) -> f64 {
    if i != 4 && j != 5 && (7 * i + 3 * j).is_multiple_of(5) { ((i + 2 * j) % 9 + 1) as f64 } else { 0.0 }
}

fn is_chosen(j: usize) -> bool {
    j % 3 == 1
}

fn file(name: &str) -> &'static [u8] {
    FILES.iter().find(|(found, _)| *found == name).unwrap().1
}

fn read(name: &str, cells: &CellOptions) -> Data {
    let options = ReadOptions { cells: cells.clone(), ..ReadOptions::default() };
    read_bytes(file(name), Format::H5ad, &options).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn refused(name: &str, cells: &CellOptions) -> String {
    let options = ReadOptions { cells: cells.clone(), ..ReadOptions::default() };
    read_bytes(file(name), Format::H5ad, &options).unwrap_err().to_string()
}

fn layer(name: &str) -> CellOptions {
    CellOptions { layer: Some(name.into()), ..CellOptions::default() }
}

fn dense(matrix: &Matrix<'_>) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![0.0; matrix.n_cols()]; matrix.n_rows()];
    (0..matrix.n_rows()).for_each(|l| matrix.for_each_in_row(l, |j, x| rows[l][j] += x));
    rows
}

fn expected(value: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
    (0..N).map(|i| (0..D).map(|j| value(i, j)).collect()).collect()
}

#[test]
fn every_storage_gives_the_same_matrix_and_names() {
    let names: Vec<String> = (0..D).map(|j| if j == 0 { "Gén".into() } else { format!("gene{j}") }).collect();
    for (name, _) in FILES {
        let data = read(name, &CellOptions::default());
        assert_eq!(dense(&data.matrix), expected(count), "{name}");
        assert_eq!(data.column_names.as_deref(), Some(&names[..]), "{name}");
        assert_eq!(data.matrix.is_sparse(), !name.starts_with("dense"), "{name}");
        let hint = "all 13 genes are used, of which 4 are marked: --mask highly_variable uses these alone, as scanpy does";
        assert_eq!(data.notes, [hint], "{name}");
    }
}

#[test]
fn layers_and_raw_are_found_by_name() {
    assert_eq!(dense(&read("csr-gzip", &layer("counts")).matrix), expected(count));
    assert_eq!(dense(&read("csr-gzip", &layer("scaled")).matrix), expected(|i, j| count(i, j) - 0.5));
    for name in ["csr-gzip", "records"] {
        assert_eq!(dense(&read(name, &layer("raw")).matrix), expected(|i, j| 3.0 * count(i, j)), "{name}");
    }
    for index in ["tree", "packed-tree", "grown", "bounded", "implicit"] {
        assert_eq!(dense(&read("csr-latest", &layer(index)).matrix), expected(count), "{index}");
    }
    let text = refused("csr-gzip", &layer("conts"));
    assert!(text.ends_with("--layer conts: there is no such layer; it has `counts`, `scaled`"), "{text}");
    let text = refused("csc-lzf", &layer("raw"));
    assert!(text.ends_with("--layer raw: there is no such layer; it has none"), "{text}");
}

#[test]
fn counts_are_brought_to_a_total_over_all_genes_before_the_mask() {
    let counts = CountTransform { total: Some(1e4), log1p: true };
    let total = |i: usize| (0..D).map(|j| count(i, j)).sum::<f64>().max(1.0);
    for (name, _) in FILES {
        let cells = CellOptions { mask: Some("highly_variable".into()), counts, ..CellOptions::default() };
        let data = read(name, &cells);
        let chosen: Vec<usize> = (0..D).filter(|j| is_chosen(*j)).collect();
        assert_eq!(data.matrix.n_cols(), chosen.len());
        assert_eq!(data.column_names.unwrap()[0], "gene1");
        assert!(data.notes.is_empty(), "{name}");
        for (i, row) in dense(&data.matrix).iter().enumerate() {
            for (x, &j) in row.iter().zip(&chosen) {
                let exact = (count(i, j) * 1e4 / total(i)).ln_1p();
                assert!(
                    (x - exact).abs() <= exact * f64::from(f32::EPSILON),
                    "{name}: {i}, {j}: {x} {exact}"
                );
            }
        }
    }
}

#[test]
fn masks_that_are_none_are_refused_by_name() {
    let mask = |name: &str| CellOptions { mask: Some(name.into()), ..CellOptions::default() };
    let text = refused("csr-gzip", &mask("hvg"));
    assert!(
        text.ends_with("--mask hvg: the table of genes has no such column; it has `highly_variable`"),
        "{text}"
    );
    let text = refused("dense-chunks", &mask("column3"));
    assert!(
        text.ends_with("--mask column3: this column of the genes does not hold true and false"),
        "{text}"
    );
    let text = refused("records", &mask("n"));
    assert!(text.ends_with("--mask n: this column of the genes does not hold true and false"), "{text}");
}

#[test]
fn scaled_values_are_no_counts() {
    let cells = CellOptions { counts: CountTransform { total: None, log1p: true }, ..layer("scaled") };
    let text = refused("csr-gzip", &cells);
    assert!(text.contains("row 1, column 2 holds -0.5: --normalize and --log1p are for counts"), "{text}");
    let cells =
        CellOptions { counts: CountTransform { total: Some(-1.0), log1p: false }, ..CellOptions::default() };
    assert!(refused("csr-gzip", &cells).contains("normalize = -1"), "{}", refused("csr-gzip", &cells));
}

#[test]
fn columns_of_the_cells_travel_beside() {
    let options =
        |keep: &str| ReadOptions { keep: crate::ColumnRef::parse_list(keep), ..ReadOptions::default() };
    let data = read_bytes(file("csr-gzip"), Format::H5ad, &options("index,kind,depth")).unwrap();
    let [(index, cells), (kind, kinds), (_, depths)] = &data.kept[..] else { panic!("{:?}", data.kept) };
    assert_eq!((&index[..], &kind[..]), ("index", "kind"));
    for i in 0..N {
        assert_eq!(cells.text(i), format!("cell{i}"));
        assert_eq!(kinds.text(i), ["T", "B", "NK"][i % 3]);
    }
    assert_eq!(*depths, crate::Labels::Numbers((0..N).map(|i| i as f64 / 2.0).collect()));
    let data = read_bytes(file("records"), Format::H5ad, &options("index,depth,kind")).unwrap();
    assert_eq!(data.kept[0].1.text(7), "cell7");
    assert_eq!(data.kept[2].1.text(7), "B", "the names of categories lie elsewhere in older files");
    let text = read_bytes(file("csc-lzf"), Format::H5ad, &options("sort")).unwrap_err().to_string();
    assert!(text.contains("no column `sort`; it has `index`, `depth`, `kind`"), "{text}");
    let labelled =
        ReadOptions { label_column: Some(crate::ColumnRef::Name("kind".into())), ..ReadOptions::default() };
    let data = read_bytes(file("csr-gzip"), Format::H5ad, &labelled).unwrap();
    assert_eq!(data.labels.unwrap().text(2), "NK");
}

#[test]
fn other_formats_have_no_cells() {
    let options = ReadOptions { cells: layer("counts"), ..ReadOptions::default() };
    let text = read_bytes(b"1,2\n3,4\n", Format::Csv, &options).unwrap_err().to_string();
    assert!(text.ends_with("--layer is for .h5ad files only"), "{text}");
}
