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
            assert_eq!(file.genotypes.dosage(l, j).unwrap(), Some(dosage).filter(|x| *x < 9));
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

/// A .bed of n samples and d variants.
fn large(folder: &Path, n: usize, d: usize) -> std::path::PathBuf {
    let path = folder.join("large.bed");
    let codes = (0..d * n.div_ceil(4)).map(|i| (i * i / 7 + i / 3) as u8);
    std::fs::write(&path, [0x6c, 0x1b, 1].into_iter().chain(codes).collect::<Vec<u8>>()).unwrap();
    let bim: Vec<String> = (0..d).map(|j| format!("1 rs{j} 0 {j} A G\n")).collect();
    let fam: Vec<String> = (0..n).map(|l| format!("f i{l}\n")).collect();
    std::fs::write(folder.join("large.bim"), bim.concat()).unwrap();
    std::fs::write(folder.join("large.fam"), fam.concat()).unwrap();
    path
}

#[test]
fn a_file_has_the_same_genotypes_wherever_they_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = large(folder.path(), 9001, 2500);
    let read = BedFile::read(&path).unwrap();
    let print = read.genotypes.fingerprint(None).unwrap();
    let bytes = std::fs::metadata(&path).unwrap().len();
    let place =
        |memory, beside| BedFile::place(&path, &ReadOptions::default(), memory, |_, _| beside).unwrap();
    for (file, on_disk) in [
        (BedFile::map(&path).unwrap(), false),
        (BedFile::on_disk(&path).unwrap(), true),
        (place(bytes - 1, 0), true),
        (place(bytes + 99, 100), true),
        (place(bytes + 100, 100), false),
    ] {
        assert_eq!(file.genotypes.fingerprint(None).unwrap(), print);
        assert_eq!(file.genotypes.is_on_disk(), on_disk);
        assert_eq!((file.samples, file.variants), (read.samples.clone(), read.variants.clone()));
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = large(folder.path(), 9001, 2500);
    let file = BedFile::on_disk(&path).unwrap();
    let fit = || hbpca::FitConfig { missing: hbpca::missing::Missing::Mean, ..Default::default() };
    assert!(file.genotypes.counts().is_ok());
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let said = fit().run().fit_genotypes(&file.genotypes).unwrap_err().to_string();
    assert!(said.contains("large.bed: the file changed while it was being read: it had"), "{said}");
}

#[test]
fn files_left_where_they_are_are_checked_like_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = store(folder.path());
    let fault = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let on_disk = BedFile::on_disk(&path).unwrap_err().to_string();
        assert_eq!(on_disk, BedFile::map(&path).unwrap_err().to_string());
        on_disk
    };
    let bytes = bed();
    assert!(fault(&bytes[..8]).contains("need 9 bytes, and it has 8: it is cut off"));
    assert!(fault(&[&bytes[..], &[0]].concat()).contains("need 9 bytes, and it has 10"));
    assert!(fault(&[&[0x6c, 0x1b, 0], &bytes[3..]].concat()).contains("sample after sample"));
    for short in [&bytes[..2], &[]] {
        assert!(fault(short).contains("the file ends too early: it is cut off"));
    }
    assert!(BedFile::on_disk(&folder.path().join("none.bed")).is_err());
}

#[test]
fn what_is_missing_is_nan_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let options = ReadOptions { missing: crate::MissingFields::Nan, ..ReadOptions::default() };
    let data = read(Input::path(store(folder.path())), &options).unwrap();
    for l in 0..5 {
        data.matrix.for_each_in_row(l, |j, x| assert_eq!(x.is_nan(), DOSAGES[j][l] == 9));
    }
}
