//! The history as a file: CSV or one JSON object a line.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use hbpca::{Event, Observer, Record};
use hbpca_io::OutputFile;

use crate::exit::Failure;

/// How the lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Csv,
    JsonLines,
}

/// Writes one line for every certified iterate; an observer of the run.
pub struct Trace {
    file: OutputFile,
    style: Style,
    failed: Option<std::io::Error>,
}

/// The columns, in the order of [`csv_line`].
const HEADER: &str = "passes,full_passes,seconds,theta,residual,eta,beta,lambda2,error";

impl Trace {
    /// Begins the file; the extension decides between CSV and JSON lines.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let style = match path.extension().and_then(|x| x.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("csv") => Style::Csv,
            Some("jsonl") => Style::JsonLines,
            _ => {
                let advice = "name it .csv for a table or .jsonl for one JSON object a line";
                return Err(Failure::Usage(format!("--trace {}: {advice}", path.display())));
            }
        };
        let mut trace = Self { file: crate::plan::create(path)?, style, failed: None };
        if style == Style::Csv {
            trace.write(HEADER);
        }
        Ok(trace)
    }

    fn write(&mut self, line: &str) {
        if self.failed.is_none() {
            self.failed = writeln!(self.file, "{line}").err();
        }
    }

    /// Gives the file its name.
    pub fn finish(self) -> Result<(), Failure> {
        match self.failed {
            Some(error) => Err(Failure::unwritten(self.file.name(), &error)),
            None => Ok(self.file.commit()?),
        }
    }
}

impl Observer for Trace {
    fn notify(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let records = match event {
            Event::Looked { record, .. } => std::slice::from_ref(*record),
            Event::Resumed { history, .. } => history,
            _ => &[],
        };
        for record in records {
            match self.style {
                Style::Csv => self.write(&csv_line(record)),
                Style::JsonLines => self.write(&serde_json::to_string(record).unwrap_or_default()),
            }
        }
        ControlFlow::Continue(())
    }
}

/// Numbers with all their digits; what is unknown is left empty.
fn csv_line(record: &Record) -> String {
    let Record { passes, full_passes, seconds, theta, residual, eta, beta, lambda2, error, .. } = record;
    let optional =
        [eta, beta, lambda2, error].map(|x| x.map(|x| x.to_string()).unwrap_or_default()).join(",");
    format!("{passes},{full_passes},{seconds},{theta},{residual},{optional}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_as_many_fields_as_the_header() {
        let mut record = Record::default();
        (record.passes, record.full_passes, record.seconds) = (1.5, 1, 0.25);
        (record.theta, record.residual) = (2.0, 1e-3);
        (record.eta, record.lambda2) = (Some(0.1), Some(1.5));
        assert_eq!(csv_line(&record), "1.5,1,0.25,2,0.001,0.1,,1.5,");
        assert_eq!(csv_line(&record).split(',').count(), HEADER.split(',').count());
        // Every field of a record is in the header.
        let fields = serde_json::to_value(&record).unwrap();
        let mut fields: Vec<&str> = fields.as_object().unwrap().keys().map(String::as_str).collect();
        let mut header: Vec<&str> = HEADER.split(',').collect();
        fields.sort_unstable();
        header.sort_unstable();
        assert_eq!(fields, header);
    }
}
