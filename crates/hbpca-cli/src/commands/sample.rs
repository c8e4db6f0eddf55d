//! `hbpca sample`: a data set that ships inside the program.

use hbpca_io::{ColumnRef, Data, Format, HeaderLine, ReadOptions, WriteOptions, read_bytes, write};

use crate::args::SampleArgs;
use crate::exit::{Exit, Failure};
use crate::output::json::{self, TableObject};
use crate::output::say;
use crate::plan;

/// See `data/README.md` for source and licence.
const DIGITS: &[u8] = include_bytes!("../../data/digits.csv.gz");
/// Pixels along each side of an image.
const SIDE: usize = 8;

/// Runs `hbpca sample`.
pub fn run(args: &SampleArgs) -> Result<Exit, Failure> {
    let name = args.name.to_string_lossy();
    if name != "digits.csv" && name != "digits" {
        return Err(Failure::Usage(format!("there is no sample `{name}`: there is digits.csv")));
    }
    let path = args.output.clone().unwrap_or_else(|| "digits.csv".into());
    let format = plan::known_format(&path)?;
    if path.exists() {
        return Err(Failure::Usage(format!(
            "{} is there already: name another file with -o",
            path.display()
        )));
    }
    let data = digits()?;
    let pixel = |j: usize| format!("pixel_{}_{}", j / SIDE, j % SIDE);
    let options = WriteOptions {
        column_names: Some((0..SIDE * SIDE).map(pixel).collect()),
        labels: data.labels,
        label_column: Some("digit".into()),
        ..WriteOptions::default()
    };
    write(&path, &data.matrix, &options)?;
    if args.json.json {
        json::print(&TableObject {
            n: data.matrix.n_rows(),
            d: data.matrix.n_cols(),
            from: "sample".into(),
            format: format.to_string(),
            output: path,
        })?;
        return Ok(Exit::Success);
    }
    say::line(&format!(
        "wrote {0}: 1,797 handwritten digits of 8 × 8 pixels and, in the column `digit`, what they are; try: hbpca fit {0} \
         --label-column digit -k 10 --report report.html",
        path.display()
    ));
    Ok(Exit::Success)
}

/// The digits: 64 columns of pixels, and the digit as the label.
pub fn digits() -> Result<Data, Failure> {
    let options = ReadOptions {
        label_column: Some(ColumnRef::Index(-1)),
        header: HeaderLine::Absent,
        ..ReadOptions::default()
    };
    Ok(read_bytes(DIGITS, Format::Csv, &options)?)
}
