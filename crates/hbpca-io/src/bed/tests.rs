use std::path::Path;

use super::*;
use crate::{Input, read};

const BIM: &str = "1\trs1\t0\t100\tA\tG\n1 . 0.5 200 C T\n\n2 rs3 300 G A\n";
const FAM: &str = "f1 i1 0 0 1 -9\nf1 i2 0 0 2 -9\nf2 i3\n0 i4 0 0 0 -9\nf5 i5 0 0 0 -9\n";
/// Dosages of five samples, 9 for missing.
const DOSAGES: [[u8; 5]; 3] = [[2, 1, 0, 9, 2], [0, 0, 1, 0, 2], [1, 9, 9, 0, 2]];

fn bed() -> Vec<u8> {
    let mut bytes = vec![0x6c, 0x1b, 1];
    for variant in DOSAGES {
        let mut codes = [0_u8; 2];
        for (l, dosage) in variant.into_iter().enumerate() {
            let code = match dosage {
                2 => 0,
                9 => 1,
                1 => 2,
                _ => 3,
            };
            codes[l / 4] |= code << (2 * (l % 4));
        }
        bytes.extend(codes);
    }
    bytes
}

fn parse(bed: &[u8], bim: &str, fam: &str) -> Result<BedFile, String> {
    BedFile::from_bytes(("x.bed", bed.to_vec()), ("x.bim", bim.as_bytes()), ("x.fam", fam.as_bytes()))
        .map_err(|error| error.to_string())
}

fn store(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("x.bed");
    std::fs::write(&path, bed()).unwrap();
    std::fs::write(folder.join("x.bim"), BIM).unwrap();
    std::fs::write(folder.join("x.fam"), FAM).unwrap();
    path
}

#[test]
fn samples_are_rows_and_missing_ones_the_mean() {
    let folder = tempfile::tempdir().unwrap();
    let data = read(Input::path(store(folder.path())), &ReadOptions::default()).unwrap();
    assert_eq!((data.matrix.n_rows(), data.matrix.n_cols()), (5, 3));
    assert_eq!(data.column_names.unwrap(), ["rs1_A_G", "1:200_C_T", "rs3_G_A"]);
    let means = [5.0 / 4.0, 3.0 / 5.0, 1.0];
    for l in 0..5 {
        data.matrix.for_each_in_row(l, |j, x| {
            let dosage = DOSAGES[j][l];
            let want = if dosage == 9 { means[j] } else { f64::from(dosage) };
            assert_eq!(x.to_bits(), want.to_bits(), "sample {l}, variant {j}");
        });
    }
}

#[test]
fn the_three_files_are_read_together() {
    let file = parse(&bed(), BIM, FAM).unwrap();
    let samples: Vec<_> = file.samples.iter().map(|x| (&x.family[..], &x.id[..])).collect();
    assert_eq!(samples, [("f1", "i1"), ("f1", "i2"), ("f2", "i3"), ("0", "i4"), ("f5", "i5")]);
    for (j, variant) in DOSAGES.into_iter().enumerate() {
        for (l, dosage) in variant.into_iter().enumerate() {
            assert_eq!(file.genotypes.dosage(l, j), Some(dosage).filter(|x| *x < 9));
        }
    }
}

#[test]
fn each_fault_is_named() {
    let fault = |bed: &[u8], bim: &str, fam: &str| parse(bed, bim, fam).unwrap_err();
    let bytes = bed();
    let text = fault(&bytes[..8], BIM, FAM);
    assert!(
        text.starts_with("x.bed: 5 samples of x.fam × 3 variants of x.bim need 9 bytes, and it has 8"),
        "{text}"
    );
    let more_samples = format!("{FAM}f i6\nf i7\nf i8\nf i9\n");
    assert!(fault(&bytes, BIM, &more_samples).contains("need 12 bytes, and it has 9"));
    let mut changed = bytes.clone();
    changed[2] = 0;
    assert!(fault(&changed, BIM, FAM).contains("sample after sample"));
    changed[2] = 7;
    assert!(fault(&changed, BIM, FAM).contains("mode 0x07"));
    changed[0] = b'c';
    assert!(fault(&changed, BIM, FAM).contains("this is no PLINK .bed: it begins with 0x63 0x1b"));
    assert!(fault(&bytes[..2], BIM, FAM).contains("cut off"));
    assert!(fault(&bytes, "1 rs1 100 A\n", FAM).starts_with("x.bim:1:1: 4 fields where 5 or 6 are needed"));
    assert!(fault(&bytes, BIM, "\nalone\n").starts_with("x.fam:2:1: 1 fields where at least 2"));
    assert!(fault(&bytes, " \n", FAM).contains("x.bim: there are no variants"));
    assert!(fault(&bytes, BIM, "").contains("x.fam: there are no samples"));
    let latin =
        BedFile::from_bytes(("x.bed", bytes), ("x.bim", b"1 r\xe9 0 1 A G\n"), ("x.fam", FAM.as_bytes()));
    assert!(latin.unwrap_err().to_string().starts_with("x.bim:1:4: this is no UTF-8"));
}

#[test]
fn a_file_without_its_others_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path());
    std::fs::remove_file(folder.path().join("x.fam")).unwrap();
    let said = read(Input::path(path), &ReadOptions::default()).unwrap_err().to_string();
    assert!(said.contains("x.fam: it is not there, and") && said.contains("x.bed cannot be read"), "{said}");
}

#[test]
fn options_of_tables_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = ReadOptions { columns: Some(Vec::new()), ..ReadOptions::default() };
    let said = read(Input::path(store(folder.path())), &options).unwrap_err().to_string();
    assert!(said.contains("columns can be chosen from CSV"), "{said}");
}
