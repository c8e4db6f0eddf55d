//! `.bim`: chromosome, identifier, position in centimorgans, position in bases, A1, A2.

use super::{fields, lines, wrong_number};
use crate::ReadError;

/// A variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The chromosome, as it is written.
    pub chromosome: String,
    /// The identifier; `.` where there is none.
    pub id: String,
    /// The position in bases, as it is written.
    pub position: String,
    /// The allele that is counted, usually the rarer one; `0` where it is not known.
    pub a1: String,
    /// The other one.
    pub a2: String,
}

impl Variant {
    /// The identifier, or chromosome and position where there is none.
    pub fn name(&self) -> String {
        if self.id == "." { format!("{}:{}", self.chromosome, self.position) } else { self.id.clone() }
    }

    /// The name of its column in a model: `rs123_A_G` counts A, where the other allele is G.
    pub fn column_name(&self) -> String {
        format!("{}_{}_{}", self.name(), self.a1, self.a2)
    }
}

/// The variants of a `.bim`.
pub(super) fn parse(name: &str, bytes: &[u8]) -> Result<Vec<Variant>, ReadError> {
    let mut variants = Vec::new();
    for (number, line) in lines(bytes) {
        let fields = fields(name, number, line)?;
        // The position in centimorgans may be left out.
        let ([chromosome, id, _, position, a1, a2] | [chromosome, id, position, a1, a2]) = fields[..] else {
            return Err(wrong_number(name, number, "5 or 6", fields.len()));
        };
        let [chromosome, id, position, a1, a2] = [chromosome, id, position, a1, a2].map(str::to_owned);
        variants.push(Variant { chromosome, id, position, a1, a2 });
    }
    if variants.is_empty() {
        return Err(ReadError::malformed(name, "there are no variants"));
    }
    Ok(variants)
}
