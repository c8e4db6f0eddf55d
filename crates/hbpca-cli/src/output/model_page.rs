//! The page about a model.

use std::io::Write;
use std::path::{Path, PathBuf};

use hbpca::Error;
use hbpca_io::{Data, OutputFile, StoredModel};
use hbpca_lab::fit_report::{DataSet, Subject, column_names, render};

use super::number;
use crate::exit::Failure;
use crate::{plan, typed};

/// A page that was begun.
pub struct ModelPage {
    path: PathBuf,
    file: OutputFile,
}

impl ModelPage {
    /// Begins the file; names that promise something else are refused.
    pub fn begin(path: &Path) -> Result<Self, Failure> {
        let is_page =
            path.extension().is_some_and(|x| ["html", "htm"].iter().any(|html| x.eq_ignore_ascii_case(html)));
        if !is_page {
            let text = format!("{}: a report is a page; end the name in .html", path.display());
            return Err(Failure::Usage(text));
        }
        Ok(Self { path: path.to_owned(), file: plan::create(path)? })
    }

    /// Writes the page about a model, its file and its data, with the label column as it was typed.
    pub fn write(
        mut self,
        stored: &StoredModel,
        model_name: Option<String>,
        data: Option<(&str, &Data)>,
        label_column: Option<&str>,
    ) -> Result<(), Failure> {
        let d = stored.model.n_features();
        if let Some((name, data)) = data.filter(|(_, data)| data.matrix.n_cols() != d) {
            let error = Error::shape("columns, as the model has", d, data.matrix.n_cols());
            return Err(Failure::refused(&error, name));
        }
        let columns = column_names(stored, data.and_then(|(_, data)| data.column_names.as_deref()));
        let data = data.map(|(name, data)| DataSet {
            name: name.to_owned(),
            storage: format!("{} as {}, {}", data.format, plan::kind(&data.matrix), entries(data)),
            matrix: &data.matrix,
            labels: data.labels.as_ref(),
            label_name: label_name(label_column),
        });
        let page = render(&Subject { stored, model_name, columns, data, command: command() })?;
        self.file.write_all(page.as_bytes()).map_err(|error| Failure::output(self.path.display(), error))?;
        Ok(self.file.commit()?)
    }
}

fn entries(data: &Data) -> String {
    format!("{} entries stored", number::count(data.matrix.nnz()))
}

/// The column's name; a number is none.
fn label_name(typed: Option<&str>) -> String {
    typed.filter(|text| text.trim().parse::<i64>().is_err()).unwrap_or("label").to_owned()
}

/// What was typed, with quotes where a shell needs them.
fn command() -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=,:%+@".contains(c);
    let quoted =
        |word: String| if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{word}'") };
    let words = typed::words().map(quoted);
    std::iter::once("hbpca".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
