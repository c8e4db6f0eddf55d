#![no_main]

use hbpca_io::BedFile;

// The three files of a set of genotypes, one after the other: the first two bytes are the lengths of the .bim and of the .fam.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [bim, fam, rest @ ..] = bytes else { return };
    let (bim, rest) = rest.split_at(rest.len().min(usize::from(*bim)));
    let (fam, bed) = rest.split_at(rest.len().min(usize::from(*fam)));
    if let Ok(file) = BedFile::from_bytes(("x.bed", bed.to_vec()), ("x.bim", bim), ("x.fam", fam)) {
        let _ = hbpca::ColumnStatistics::of_genotypes(&file.genotypes);
    }
});
