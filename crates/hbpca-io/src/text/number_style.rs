//! Numbers as people write them: another decimal mark, and groups of three digits.

use super::number;

/// How numbers are written in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberStyle {
    /// The mark between whole and fraction.
    pub decimal: char,
    /// The mark between groups of three digits, which need not be there.
    pub thousands: Option<char>,
}

impl Default for NumberStyle {
    fn default() -> Self {
        Self { decimal: '.', thousands: None }
    }
}

impl NumberStyle {
    /// Whether numbers are as programs write them.
    pub(crate) fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// What is wrong with the marks, if anything.
    pub(crate) fn fault(self) -> Option<String> {
        let means_something = |mark: char| mark.is_ascii_alphanumeric() || "+-\"\r\n#".contains(mark);
        if means_something(self.decimal) {
            return Some(format!(
                "the decimal mark `{}` means something else in a number: try , or .",
                self.decimal
            ));
        }
        match self.thousands {
            Some(mark) if means_something(mark) => Some(format!(
                "the mark `{mark}` for thousands means something else in a number: try , or . or '"
            )),
            Some(mark) if mark == self.decimal => {
                Some(format!("`{mark}` cannot be the decimal mark and that of thousands"))
            }
            _ => None,
        }
    }

    /// Whether a mark is this byte.
    pub(crate) fn uses(self, byte: u8) -> bool {
        [Some(self.decimal), self.thousands].contains(&Some(char::from(byte)))
    }

    /// The finite number that the whole field is.
    pub(crate) fn number(self, field: &[u8]) -> Option<f64> {
        let whole = |text: &[u8]| number::parse(text, 0).filter(|&(_, end)| end == text.len()).map(|x| x.0);
        if self.is_plain() { whole(field) } else { whole(&self.plain(field)?) }
    }

    /// The number as programs write it; nothing where the marks are not where they belong.
    pub(crate) fn plain(self, field: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(field).ok()?;
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let mut plain = field[..field.len() - unsigned.len()].to_vec();
        let exponent = unsigned.find(['e', 'E']).unwrap_or(unsigned.len());
        let (mantissa, exponent) = unsigned.split_at(exponent);
        let (whole, fraction) = match mantissa.split_once(self.decimal) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let mut groups = self.thousands.map_or_else(|| vec![whole], |mark| whole.split(mark).collect());
        let first = groups.remove(0);
        let grouped = groups.is_empty() || (1..=3).contains(&first.len());
        if !grouped || !digits(first) || !groups.iter().all(|group| group.len() == 3 && digits(group)) {
            return None;
        }
        plain.extend_from_slice(first.as_bytes());
        groups.iter().for_each(|group| plain.extend_from_slice(group.as_bytes()));
        if let Some(fraction) = fraction {
            if !digits(fraction) {
                return None;
            }
            plain.push(b'.');
            plain.extend_from_slice(fraction.as_bytes());
        }
        plain.extend_from_slice(exponent.as_bytes());
        Some(plain)
    }

    /// The flags under which a field that is no number would be one.
    pub(crate) fn way_out(self, field: &[u8]) -> Option<String> {
        let other = |decimal, thousands| Self { decimal, thousands }.number(field).is_some();
        let marks = [' ', '\'', '_', '\u{a0}', '\u{202f}', '’'];
        if !self.is_plain() {
            // What was said of the decimal mark holds.
            let mut marks = [',', '.'].into_iter().chain(marks).filter(|mark| *mark != self.decimal);
            let mark = marks.find(|mark| self.thousands.is_none() && other(self.decimal, Some(*mark)))?;
            return Some(format!("give --thousands {}", shown(mark)));
        }
        let (decimal_comma, comma_groups) = (other(',', None), other('.', Some(',')));
        if decimal_comma && comma_groups {
            return Some(
                "give --thousands , if the comma groups digits, or --decimal , if it is a decimal comma"
                    .into(),
            );
        }
        if comma_groups {
            return Some("give --thousands ,".into());
        }
        if decimal_comma {
            return Some("give --decimal ,".into());
        }
        if other(',', Some('.')) {
            return Some("give --decimal , --thousands .".into());
        }
        let grouped = |decimal: char| marks.into_iter().find(|mark| other(decimal, Some(*mark)));
        if let Some(mark) = grouped('.') {
            return Some(format!("give --thousands {}", shown(mark)));
        }
        grouped(',').map(|mark| format!("give --decimal , --thousands {}", shown(mark)))
    }
}

/// A mark as it is typed.
fn shown(mark: char) -> String {
    if ",.".contains(mark) { mark.to_string() } else { format!("\"{mark}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(decimal: char, thousands: Option<char>, text: &str) -> Option<f64> {
        NumberStyle { decimal, thousands }.number(text.as_bytes())
    }

    #[test]
    fn marks_count_where_they_belong_and_nowhere_else() {
        for (decimal, thousands, text, value) in [
            (',', None, "2,5", Some(2.5)),
            (',', None, "-0,25e-3", Some(-0.25e-3)),
            (',', None, "12", Some(12.0)),
            (',', None, "2.5", None),
            ('.', Some(','), "1,000", Some(1000.0)),
            ('.', Some(','), "-12,345,678.5", Some(-12_345_678.5)),
            ('.', Some(','), "1000.5", Some(1000.5)),
            ('.', Some(','), "1,00", None),
            ('.', Some(','), "1,0000", None),
            ('.', Some(','), "1000,000", None),
            ('.', Some(','), ",100", None),
            ('.', Some(','), "0.1,000", None),
            (',', Some('.'), "1.234,5", Some(1234.5)),
            ('.', Some('\u{a0}'), "1\u{a0}000", Some(1000.0)),
            ('.', Some('\''), "1'000", Some(1000.0)),
            ('.', Some(','), "", None),
            ('.', Some(','), "nan", None),
            ('.', Some(','), "1,000,", None),
            ('.', None, "1,000", None),
        ] {
            assert_eq!(number(decimal, thousands, text), value, "{decimal} {thousands:?} {text}");
        }
    }

    #[test]
    fn the_way_out_never_guesses() {
        let way_out = |text: &str| NumberStyle::default().way_out(text.as_bytes());
        assert!(
            way_out("1,000").unwrap().contains("--thousands , if")
                && way_out("1,000").unwrap().contains("--decimal , if")
        );
        assert_eq!(way_out("1,000,000").unwrap(), "give --thousands ,");
        assert_eq!(way_out("1,234.5").unwrap(), "give --thousands ,");
        assert_eq!(way_out("2,5").unwrap(), "give --decimal ,");
        assert_eq!(way_out("1.234,5").unwrap(), "give --decimal , --thousands .");
        assert_eq!(way_out("1'000").unwrap(), "give --thousands \"'\"");
        assert_eq!(way_out("1 000,5").unwrap(), "give --decimal , --thousands \" \"");
        let comma = NumberStyle { decimal: ',', thousands: None };
        assert_eq!(comma.way_out(b"1.000").unwrap(), "give --thousands .");
        assert_eq!(comma.way_out(b"1.5"), None);
        for text in ["abc", "", "1,2,3", "12,5,6", "1-2"] {
            assert_eq!(way_out(text), None, "{text}");
        }
    }

    #[test]
    fn marks_that_mean_something_else_are_refused() {
        let fault = |decimal, thousands| NumberStyle { decimal, thousands }.fault();
        assert_eq!(fault(',', Some('.')), None);
        assert!(
            fault('e', None).is_some() && fault('.', Some('-')).is_some() && fault('.', Some('.')).is_some()
        );
    }
}
