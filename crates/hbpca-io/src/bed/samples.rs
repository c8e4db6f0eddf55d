//! `.fam`: family, individual, father, mother, sex, phenotype.

use super::{fields, lines, wrong_number};
use crate::ReadError;

/// A sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The family; `0` where there is none.
    pub family: String,
    /// The individual.
    pub id: String,
}

/// The samples of a `.fam`; what follows the two identifiers is not looked at.
pub(super) fn parse(name: &str, bytes: &[u8]) -> Result<Vec<Sample>, ReadError> {
    let mut samples = Vec::new();
    for (number, line) in lines(bytes) {
        let fields = fields(name, number, line)?;
        let [family, id, ..] = fields[..] else {
            return Err(wrong_number(name, number, "at least 2", fields.len()));
        };
        samples.push(Sample { family: family.to_owned(), id: id.to_owned() });
    }
    if samples.is_empty() {
        return Err(ReadError::malformed(name, "there are no samples"));
    }
    Ok(samples)
}
