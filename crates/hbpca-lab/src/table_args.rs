//! How a table is written, where the file itself does not say it.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hbpca_io::{Encoding, HeaderLine, NumberStyle, ReadOptions};

/// Flags of every command that reads tables.
#[derive(Clone, Debug, Default, Args)]
pub struct TableArgs {
    /// Whether the first line of CSV or TSV names the columns [default: found out, or asked for]
    #[arg(long, value_name = "yes|no", help_heading = READING, value_parser = header_parser(), hide_possible_values = true)]
    pub header: Option<HeaderLine>,
    /// Decimal mark of the numbers in CSV or TSV, such as a comma [default: .]
    #[arg(long, value_name = "MARK", help_heading = READING)]
    pub decimal: Option<char>,
    /// Mark between groups of three digits in CSV or TSV, such as a comma
    #[arg(long, value_name = "MARK", help_heading = READING)]
    pub thousands: Option<char>,
    /// Encoding of a text [default: UTF-8, or UTF-16 where it shows]
    #[arg(long, value_name = "ENCODING", help_heading = READING, value_parser = encoding_parser())]
    pub encoding: Option<Encoding>,
}

/// The heading of all flags of reading.
pub const READING: &str = "Reading";

fn header_parser() -> impl TypedValueParser<Value = HeaderLine> {
    PossibleValuesParser::new(["yes", "no"])
        .map(|answer| if answer == "yes" { HeaderLine::Present } else { HeaderLine::Absent })
}

fn encoding_parser() -> impl TypedValueParser<Value = Encoding> {
    PossibleValuesParser::new(Encoding::ALL.map(Encoding::name))
        .try_map(|name| Encoding::from_name(&name).ok_or_else(|| format!("`{name}` is no encoding")))
}

impl TableArgs {
    /// Options that say the same.
    pub fn options(&self) -> ReadOptions {
        let default = NumberStyle::default();
        ReadOptions {
            header: self.header.unwrap_or_default(),
            numbers: NumberStyle {
                decimal: self.decimal.unwrap_or(default.decimal),
                thousands: self.thousands,
            },
            encoding: self.encoding,
            ..ReadOptions::default()
        }
    }
}
