//! Sizes as people type them.

use std::fmt;
use std::str::FromStr;

/// A number of bytes: `4G`, `512MiB`, `1.5T`, `2000MB` or plain `1048576`. K, M, G, T and KiB … are powers of 1024, KB … of 1000.
///
/// ```
/// use hbpca_io::ByteSize;
/// assert_eq!("1.5G".parse::<ByteSize>()?, ByteSize(3 << 29));
/// assert_eq!(ByteSize(3 << 29).to_string(), "1.5 GiB");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no size: give bytes or a size such as 512M, 4G or 1.5TiB");
        let text_of = text.trim();
        let digits = text_of.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text_of.len());
        let (number, unit) = text_of.split_at(digits);
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let unit = unit.trim().to_ascii_lowercase();
        let (prefix, base) = match unit.as_str() {
            "" | "b" => ("", 1.0),
            unit => {
                let decimal = unit.len() == 2 && unit.ends_with('b');
                let prefix = unit.strip_suffix("ib").or_else(|| unit.strip_suffix('b')).unwrap_or(unit);
                (prefix, if decimal { 1000.0_f64 } else { 1024.0 })
            }
        };
        let power = match prefix {
            "" => 0,
            "k" => 1,
            "m" => 2,
            "g" => 3,
            "t" => 4,
            "p" => 5,
            _ => return Err(wrong()),
        };
        let bytes = number * base.powi(power);
        if bytes >= 1.0 && bytes < 2.0_f64.powi(63) { Ok(Self(bytes as u64)) } else { Err(wrong()) }
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let unit = (self.0.ilog2() as usize / 10 - 1).min(units.len() - 1);
        write!(f, "{:.1} {}", self.0 as f64 / 1024.0_f64.powf(unit as f64 + 1.0), units[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_every_spelling() {
        for (text, bytes) in [
            ("1048576", 1 << 20),
            ("64M", 64 << 20),
            ("64m", 64 << 20),
            ("64 MiB", 64 << 20),
            ("64MB", 64_000_000),
            ("4G", 4 << 30),
            ("1.5TiB", 3 << 39),
            ("10k", 10 << 10),
            ("10KB", 10_000),
            ("7b", 7),
        ] {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "G", "-4G", "4X", "4GiBB", "0", "nan", "1e3", "4.5.6M", "9999999P", "4 i b"] {
            let error = text.parse::<ByteSize>().unwrap_err();
            assert!(error.contains("is no size: give bytes or a size such as 512M"), "{error}");
        }
    }

    #[test]
    fn sizes_are_written_with_one_decimal() {
        let text = |bytes: u64| ByteSize(bytes).to_string();
        assert_eq!(
            [text(7), text(1024), text(3 << 29), text(8 << 40)],
            ["7 B", "1.0 KiB", "1.5 GiB", "8.0 TiB"]
        );
    }
}
