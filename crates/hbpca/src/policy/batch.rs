//! How many rows a mini-batch has.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// Mini-batch size, as a count or as a share of the rows.
///
/// ```
/// use hbpca::Batch;
/// let batch: Batch = "1%".parse()?;
/// assert_eq!(batch.rows(91_701)?, 917);
/// assert_eq!("256".parse::<Batch>()?.rows(91_701)?, 256);
/// # Ok::<(), hbpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Batch {
    /// This many rows.
    Rows(usize),
    /// This share of all rows, in (0, 1]; at least one row.
    Share(f64),
}

impl Batch {
    /// The number of rows out of n.
    pub fn rows(self, n: usize) -> Result<usize, Error> {
        match self {
            Self::Rows(0) => {
                Err(Error::parameter("batch", "0 rows", "give at least 1, or a share such as 1%"))
            }
            Self::Rows(rows) if rows > n => Err(Error::parameter(
                "batch",
                format!("{rows} rows"),
                format!("the data has only {n} rows; give at most that, or a share such as 1%"),
            )),
            Self::Rows(rows) => Ok(rows),
            Self::Share(share) if share > 0.0 && share <= 1.0 => {
                Ok(((n as f64 * share).round() as usize).max(1))
            }
            Self::Share(share) => Err(Error::parameter(
                "batch",
                format!("{}%", share * 100.0),
                "a share must lie above 0% and at most at 100%",
            )),
        }
    }
}

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(rows) => write!(f, "{rows}"),
            Self::Share(share) => write!(f, "{}%", share * 100.0),
        }
    }
}

impl FromStr for Batch {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unreadable =
            || Error::parameter("batch", text, "give a number of rows such as 256, or a share such as 1%");
        match text.strip_suffix('%') {
            Some(share) => {
                share.trim().parse().map(|x: f64| Self::Share(x / 100.0)).map_err(|_| unreadable())
            }
            None => text.trim().parse().map(Self::Rows).map_err(|_| unreadable()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_and_never_empty() {
        assert_eq!(Batch::Share(0.01).rows(581_012).unwrap(), 5810);
        assert_eq!(Batch::Share(0.01).rows(3).unwrap(), 1);
        assert_eq!(Batch::Share(1.0).rows(7).unwrap(), 7);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let text = |batch: Batch| batch.rows(10).unwrap_err().to_string();
        assert_eq!(text(Batch::Rows(0)), "batch = 0 rows: give at least 1, or a share such as 1%");
        assert!(text(Batch::Rows(11)).contains("only 10 rows"));
        for share in [0.0, -0.5, 1.5, f64::NAN] {
            assert!(text(Batch::Share(share)).contains("above 0% and at most at 100%"));
        }
    }

    #[test]
    fn text_round_trips_and_nonsense_is_refused() {
        for text in ["1%", "2.5%", "256"] {
            assert_eq!(text.parse::<Batch>().unwrap().to_string(), text);
        }
        for text in ["", "%", "1.5", "-3", "many"] {
            assert!(
                text.parse::<Batch>().unwrap_err().to_string().contains("256, or a share such as 1%"),
                "{text}"
            );
        }
    }
}
