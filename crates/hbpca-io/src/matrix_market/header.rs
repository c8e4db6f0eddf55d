//! The first lines of a Matrix Market file: what is stored, how, and how much of it.

use crate::text::digits;

/// How the entries are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// Every value, column by column.
    Array,
    /// Row, column and value of entries that are not zero.
    Coordinate,
}

/// Which entries are implied by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symmetry {
    General,
    /// Only one triangle is listed; its mirror is the same.
    Symmetric,
    /// Only one triangle is listed; its mirror has the other sign, the diagonal is zero.
    Skew,
}

/// The header, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) listing: Listing,
    /// Whether entries have no value, which means 1.
    pub(super) pattern: bool,
    pub(super) symmetry: Symmetry,
    pub(super) n_rows: u64,
    pub(super) n_columns: u64,
    /// Values or entries listed.
    pub(super) n_listed: u128,
    /// Bytes up to the first entry.
    pub(super) length: usize,
}

impl Header {
    /// Reads the header at the start of `text`; an error gives the byte where it is wrong and why.
    pub(super) fn parse(text: &[u8]) -> Result<Self, (usize, String)> {
        let line_end = |from: usize| memchr::memchr(b'\n', &text[from..]).map_or(text.len(), |k| from + k);
        let banner_end = line_end(0);
        let banner = String::from_utf8_lossy(&text[..banner_end]).to_ascii_lowercase();
        let words: Vec<&str> = banner.split_ascii_whitespace().collect();
        let &["%%matrixmarket", "matrix", listing, field, symmetry] = &words[..] else {
            let expected = "expected `%%MatrixMarket matrix LISTING TYPE SYMMETRY` as the first line";
            return Err((0, expected.into()));
        };
        let refused =
            |what: &str, allowed: &str| (0, format!("`{what}` matrices are not read, only {allowed}"));
        let listing = match listing {
            "array" => Listing::Array,
            "coordinate" => Listing::Coordinate,
            other => return Err(refused(other, "array and coordinate")),
        };
        if !["real", "double", "integer", "unsigned-integer", "pattern"].contains(&field) {
            return Err(refused(field, "real, integer and pattern"));
        }
        let pattern = field == "pattern";
        if pattern && listing == Listing::Array {
            return Err((0, "a pattern needs coordinates: it cannot be an array".into()));
        }
        let symmetry = match symmetry {
            "general" => Symmetry::General,
            "symmetric" => Symmetry::Symmetric,
            "skew-symmetric" => Symmetry::Skew,
            other => return Err(refused(other, "general, symmetric and skew-symmetric")),
        };
        let mut at = banner_end + 1;
        while at < text.len() {
            let end = line_end(at);
            let line = text[at..end].trim_ascii();
            if !line.is_empty() && !line.starts_with(b"%") {
                let header = Self {
                    listing,
                    pattern,
                    symmetry,
                    n_rows: 0,
                    n_columns: 0,
                    n_listed: 0,
                    length: end + 1,
                };
                return header.with_sizes(line).map_err(|message| (at, message));
            }
            at = end + 1;
        }
        Err((text.len(), "the line with the sizes is missing".into()))
    }

    fn with_sizes(self, line: &[u8]) -> Result<Self, String> {
        let found = String::from_utf8_lossy(line);
        let sizes: Option<Vec<u128>> = found.split_ascii_whitespace().map(|x| x.parse().ok()).collect();
        let (n, d, n_listed) = match (self.listing, sizes.as_deref()) {
            (Listing::Coordinate, Some(&[n, d, entries])) => (n, d, entries),
            (Listing::Array, Some(&[n, d])) => (n, d, self.n_values(n, d)),
            (Listing::Coordinate, _) => {
                return Err(format!("expected rows, columns and entries, found `{found}`"));
            }
            (Listing::Array, _) => return Err(format!("expected rows and columns, found `{found}`")),
        };
        if n > 1 << 32 || d > 1 << 32 {
            return Err(format!("{n} rows × {d} columns: at most 2³² of each are read"));
        }
        if self.symmetry != Symmetry::General && n != d {
            return Err(format!("a symmetric matrix is square, but the sizes are {n} × {d}"));
        }
        Ok(Self { n_rows: n as u64, n_columns: d as u64, n_listed, ..self })
    }

    /// Values that an array lists.
    fn n_values(self, n: u128, d: u128) -> u128 {
        match self.symmetry {
            Symmetry::General => n.saturating_mul(d),
            Symmetry::Symmetric => n.saturating_mul(n.saturating_add(1)) / 2,
            Symmetry::Skew => n.saturating_mul(n.saturating_sub(1)) / 2,
        }
    }

    /// The fewest bytes in which all that is listed can be written: `1 1\n`, `1 1 1\n` or `1\n` each, less the
    /// last line's end.
    pub(super) fn fewest_bytes(&self) -> u128 {
        let each = match (self.listing, self.pattern) {
            (Listing::Array, _) => 2,
            (Listing::Coordinate, true) => 4,
            (Listing::Coordinate, false) => 6,
        };
        self.n_listed.saturating_mul(each).saturating_sub(1)
    }
}

/// Row or column at byte `i` of a line, from 0, and where it ends.
#[inline(always)]
pub(super) fn coordinate(text: &[u8], i: usize, bound: u64) -> Option<(u32, usize)> {
    let (number, end) = digits::parse_index(text, i)?;
    if number == 0 || u64::from(number) > bound { None } else { Some((number - 1, end)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_understood() {
        let header =
            Header::parse(b"%%MatrixMarket MATRIX coordinate Real general\n% c\n\n3 4 5\n1 1 1\n").unwrap();
        assert_eq!((header.n_rows, header.n_columns, header.n_listed, header.length), (3, 4, 5, 57));
        let header = Header::parse(b"%%MatrixMarket matrix array integer skew-symmetric\n4 4\n").unwrap();
        assert_eq!((header.listing, header.symmetry, header.n_listed), (Listing::Array, Symmetry::Skew, 6));
    }

    #[test]
    fn each_fault_is_named() {
        let error = |text: &str| Header::parse(text.as_bytes()).unwrap_err().1;
        assert!(error("hello\n").contains("as the first line"));
        assert!(
            error("%%MatrixMarket matrix dense real general\n").contains("`dense` matrices are not read")
        );
        assert!(
            error("%%MatrixMarket matrix array complex general\n")
                .contains("`complex` matrices are not read")
        );
        assert!(error("%%MatrixMarket matrix array real hermitian\n").contains("`hermitian` matrices"));
        assert!(error("%%MatrixMarket matrix array pattern general\n").contains("needs coordinates"));
        assert!(error("%%MatrixMarket matrix array real general\n% only\n").contains("sizes is missing"));
        assert!(
            error("%%MatrixMarket matrix array real general\n3\n")
                .contains("expected rows and columns, found `3`")
        );
        assert!(
            error("%%MatrixMarket matrix coordinate real general\n3 x 4\n")
                .contains("rows, columns and entries")
        );
        assert!(error("%%MatrixMarket matrix coordinate real symmetric\n3 4 4\n").contains("is square"));
        let huge = "%%MatrixMarket matrix coordinate real general\n99999999999 1 1\n";
        assert!(error(huge).contains("at most 2³²"));
    }
}
