//! PLINK's binary genotypes: `.bed` with two bits for each, `.bim` with a line for each variant, `.fam` with one for each sample.
//!
//! The file is variant-major; samples are rows all the same. [`BedFile`] keeps the codes packed, and the core multiplies with them as they
//! are; as a [`RowSource`](crate::RowSource) they become dosages of A1, 0, 1 and 2, with the mean for what is missing.

mod matching;
mod samples;
mod source;
mod storage;
mod tables;
#[cfg(test)]
mod tests;
mod variants;

use std::fs;
use std::path::{Path, PathBuf};

use hbpca::Model;
use hbpca::genotypes::Genotypes;

use crate::source::refuse_options_that_do_not_fit;
use crate::{Format, ReadError, ReadOptions};
pub use matching::VariantNames;
pub use samples::Sample;
pub(crate) use source::BedSource;
pub use tables::{write_eigenvalues, write_eigenvectors, write_variant_weights};
pub use variants::Variant;

/// The first two bytes of every `.bed`.
const MAGIC: [u8; 2] = [0x6c, 0x1b];
/// The third byte: variant after variant, or, in files of long ago, sample after sample.
const VARIANT_MAJOR: u8 = 1;
const SAMPLE_MAJOR: u8 = 0;
const HEADER: usize = 3;

/// A `.bed` with its `.bim` and `.fam`.
#[derive(Clone, Debug)]
pub struct BedFile {
    /// The genotypes, packed.
    pub genotypes: Genotypes,
    /// One for each column.
    pub variants: Vec<Variant>,
    /// One for each row.
    pub samples: Vec<Sample>,
}

impl BedFile {
    /// Whether a name promises such a file.
    pub fn recognise(path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("bed"))
    }

    /// Reads the three files for these options, most of which are about tables.
    pub fn read_with(path: &Path, options: &ReadOptions) -> Result<Self, ReadError> {
        refuse_options_that_do_not_fit(&path.display().to_string(), Format::Bed, options)?;
        Self::read(path)
    }

    /// Reads the three files; the other two have the name of the first with another ending.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let (bim, fam) = (text_beside(path, "bim")?, text_beside(path, "fam")?);
        let name = path.display().to_string();
        let bytes = fs::read(path).map_err(|source| ReadError::io(&name, source))?;
        Self::from_bytes((&name, bytes), (&bim.0, &bim.1), (&fam.0, &fam.1))
    }

    /// The same within so many bytes of memory, where `beside` tells what work with n samples of d variants takes besides: genotypes that do not fit stay on disk,
    /// and are read in every pass. A file that changes meanwhile is an error then.
    pub fn place(
        path: &Path,
        options: &ReadOptions,
        memory: u64,
        beside: impl Fn(usize, usize) -> u64,
    ) -> Result<Self, ReadError> {
        refuse_options_that_do_not_fit(&path.display().to_string(), Format::Bed, options)?;
        let bytes = fs::metadata(path).map_or(0, |about| about.len());
        if bytes > memory {
            return Self::on_disk(path);
        }
        let file = Self::read(path)?;
        let (n, d) = (file.genotypes.n_rows(), file.genotypes.n_cols());
        if bytes.saturating_add(beside(n, d)) > memory {
            let genotypes = storage::on_disk(path, file_names(path).each_ref().map(|x| &x[..]), n, d)?;
            return Ok(Self { genotypes, ..file });
        }
        Ok(file)
    }

    /// The same with the genotypes left on disk.
    pub fn on_disk(path: &Path) -> Result<Self, ReadError> {
        Self::with_genotypes(path, storage::on_disk)
    }

    /// The same with the genotypes in a map of the file, which nobody may shorten meanwhile: reading it would then end in a signal.
    pub fn map(path: &Path) -> Result<Self, ReadError> {
        Self::with_genotypes(path, storage::mapped)
    }

    fn with_genotypes(
        path: &Path,
        open: impl FnOnce(&Path, [&str; 2], usize, usize) -> Result<Genotypes, ReadError>,
    ) -> Result<Self, ReadError> {
        let (bim, fam) = (text_beside(path, "bim")?, text_beside(path, "fam")?);
        let (variants, samples) = (variants::parse(&bim.0, &bim.1)?, samples::parse(&fam.0, &fam.1)?);
        let genotypes = open(path, [&fam.0, &bim.0], samples.len(), variants.len())?;
        Ok(Self { genotypes, variants, samples })
    }

    /// The same from the contents of the three files, each with the name that messages give it.
    pub fn from_bytes(
        (name, mut codes): (&str, Vec<u8>),
        (bim, variants): (&str, &[u8]),
        (fam, samples): (&str, &[u8]),
    ) -> Result<Self, ReadError> {
        let (variants, samples) = (variants::parse(bim, variants)?, samples::parse(fam, samples)?);
        check_header(name, &codes)?;
        let (n, d) = (samples.len(), variants.len());
        check_size(name, [fam, bim], (n, d), codes.len() as u64)?;
        codes.drain(..HEADER);
        let genotypes =
            Genotypes::new(n, d, codes).map_err(|error| ReadError::malformed(name, error.to_string()))?;
        Ok(Self { genotypes, variants, samples })
    }

    /// The genotypes of the model's variants, in its order, counting its alleles. `name` stands for the file in messages.
    pub fn for_model(&self, model: &Model, name: &str) -> Result<Matched, ReadError> {
        let Some(names) = model.feature_names() else {
            return Ok(Matched { genotypes: self.genotypes.clone(), by_name: false, flipped: 0 });
        };
        let Some(wanted) = VariantNames::parse(names) else {
            let first = names.first().map_or("", String::as_str);
            let text = format!(
                "the model was not fitted on genotypes: its columns have names without alleles, such as `{first}`"
            );
            return Err(ReadError::malformed(name, text));
        };
        let places = wanted.find(&self.variants, name)?;
        let flipped = places.iter().filter(|place| place.flipped).count();
        let genotypes = self.genotypes.select(&places);
        let genotypes = genotypes.map_err(|error| ReadError::malformed(name, error.to_string()))?;
        Ok(Matched { genotypes, by_name: true, flipped })
    }

    /// The names of the columns: identifier, A1 and A2 of each variant.
    pub fn column_names(&self) -> Vec<String> {
        self.variants.iter().map(Variant::column_name).collect()
    }
}

/// Genotypes in the order of a model's variants.
#[derive(Clone, Debug)]
pub struct Matched {
    /// The genotypes.
    pub genotypes: Genotypes,
    /// Whether variants were found by name; a model without names takes them in their order.
    pub by_name: bool,
    /// Variants of which the file counts the other allele.
    pub flipped: usize,
}

/// The file of the same name with another ending.
fn beside(path: &Path, ending: &str) -> PathBuf {
    path.with_extension(ending)
}

/// The names of the .fam and the .bim.
fn file_names(path: &Path) -> [String; 2] {
    ["fam", "bim"].map(|ending| beside(path, ending).display().to_string())
}

/// The name and the content of the file of the same name with another ending.
fn text_beside(path: &Path, ending: &str) -> Result<(String, Vec<u8>), ReadError> {
    let other = beside(path, ending);
    let name = other.display().to_string();
    let bytes = fs::read(&other).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => {
            let text = format!("it is not there, and {} cannot be read without it", path.display());
            ReadError::malformed(&name, text)
        }
        _ => ReadError::io(&name, source),
    })?;
    Ok((name, bytes))
}

/// Refuses a file that has not the size of n samples and d variants.
fn check_size(
    name: &str,
    [fam, bim]: [&str; 2],
    (n, d): (usize, usize),
    found: u64,
) -> Result<(), ReadError> {
    let needed = (n.div_ceil(4) as u128) * d as u128 + HEADER as u128;
    if u128::from(found) == needed {
        return Ok(());
    }
    let text = format!(
        "{n} samples of {fam} × {d} variants of {bim} need {needed} bytes, and it has {found}: it is cut off, or these are not its .fam \
         and .bim"
    );
    Err(ReadError::malformed(name, text))
}

fn check_header(name: &str, bytes: &[u8]) -> Result<(), ReadError> {
    match bytes {
        [a, b, VARIANT_MAJOR, ..] if [*a, *b] == MAGIC => Ok(()),
        [a, b, SAMPLE_MAJOR, ..] if [*a, *b] == MAGIC => Err(ReadError::malformed(
            name,
            "it is stored sample after sample, as files of long ago were: rewrite it with plink --make-bed",
        )),
        [a, b, mode, ..] if [*a, *b] == MAGIC => Err(ReadError::malformed(
            name,
            format!("mode 0x{mode:02x} of a .bed is unknown: 0x01 is variant after variant"),
        )),
        _ if bytes.len() < HEADER => {
            Err(ReadError::malformed(name, "the file ends too early: it is cut off"))
        }
        _ => Err(ReadError::malformed(
            name,
            format!(
                "this is no PLINK .bed: it begins with 0x{:02x} 0x{:02x} where 0x6c 0x1b should be (a .bed of genome intervals is something else)",
                bytes[0], bytes[1]
            ),
        )),
    }
}

/// The fields of a line, and a way to name the line.
fn fields<'t>(name: &str, number: usize, line: &'t [u8]) -> Result<Vec<&'t str>, ReadError> {
    let text = std::str::from_utf8(line).map_err(|error| ReadError::Text {
        file: name.to_owned(),
        line: number as u64,
        column: error.valid_up_to() as u64 + 1,
        message: "this is no UTF-8".to_owned(),
    })?;
    Ok(text.split_ascii_whitespace().collect())
}

/// The lines of a text that hold anything, with their numbers from 1.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    lines.map(|(i, line)| (i + 1, line)).filter(|(_, line)| !line.trim_ascii().is_empty())
}

/// A line with another number of fields than it must have.
fn wrong_number(name: &str, line: usize, what: &str, found: usize) -> ReadError {
    ReadError::Text {
        file: name.to_owned(),
        line: line as u64,
        column: 1,
        message: format!("{found} fields where {what} are needed"),
    }
}
