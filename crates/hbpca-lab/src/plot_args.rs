//! `hbpca plot`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hbpca::{Matrix, Whitening};
use hbpca_io::{ColumnRef, Data, Input, NamesToMatch, ReadOptions, StoredModel};
use serde::Serialize;

use crate::LabError;
use crate::colouring::Colouring;
use crate::figure::chart::Figure;
use crate::fit_report::column_names;
use crate::plots::{self, Plane};
use crate::trace::read_trace;

/// What is plotted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlotKind {
    /// Variance explained by the components of a model
    Scree,
    /// Columns that weigh most in the components of a model
    Loadings,
    /// Rows in the plane of two components, from a model and its data or from a file of scores
    Scores,
    /// The same with the columns of a model as arrows
    Biplot,
    /// Residual against passes and seconds, from a trace or a model
    Convergence,
}

/// `hbpca plot`.
#[derive(Debug, Args)]
pub struct PlotArgs {
    /// A model (.safetensors), a trace (.csv, .jsonl), or with --kind scores a file of scores
    #[arg(value_name = "MODEL|TRACE|SCORES")]
    pub input: PathBuf,
    /// Data whose rows a plot of scores shows under the model
    #[arg(value_name = "DATA")]
    pub data: Option<PathBuf>,
    /// What to plot [default: scree of a model, its scores if there is data, convergence of a trace]
    #[arg(long, value_enum)]
    pub kind: Option<PlotKind>,
    /// The components to plot, counted from 1: two for scores, any for loadings
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "1,2", value_parser = clap::value_parser!(u32).range(1..))]
    pub components: Vec<u32>,
    /// Column of the data or of the scores that colours the rows: its name, or its number from 0
    #[arg(long, value_name = "NAME|INDEX", allow_negative_numbers = true)]
    pub color: Option<String>,
    /// Column of the data or of the scores that names the rows beside their dots, the outermost where there are many
    #[arg(long, value_name = "NAME|INDEX", allow_negative_numbers = true)]
    pub label: Option<String>,
    /// The plot, as SVG, PNG or HTML by its extension
    #[arg(short, long, value_name = "FILE.svg|.png|.html")]
    pub output: PathBuf,
}

impl PlotArgs {
    /// Plots; returns what was plotted.
    pub fn run(&self) -> Result<PlotKind, LabError> {
        let is_model = StoredModel::recognise(&self.input);
        let kind = self.kind.unwrap_or(match (is_model, &self.data) {
            (true, Some(_)) => PlotKind::Scores,
            (true, None) => PlotKind::Scree,
            (false, _) => PlotKind::Convergence,
        });
        self.refuse_idle_flags(kind)?;
        let figure = match kind {
            PlotKind::Scree => plots::scree(&self.model()?.model),
            PlotKind::Loadings => {
                let stored = self.model()?;
                let k = stored.model.n_components();
                // The default names two; a model of one has one.
                let chosen: Vec<usize> =
                    self.chosen().into_iter().filter(|c| *c < k || self.components != [1, 2]).collect();
                plots::loadings(&stored.model, &column_names(&stored, None), &chosen)?
            }
            PlotKind::Convergence if is_model => plots::convergence(&self.model()?.origin.history),
            PlotKind::Convergence => plots::convergence(&read_trace(&self.input)?),
            PlotKind::Scores | PlotKind::Biplot if is_model => self.rows_of_model(kind)?,
            PlotKind::Scores => self.rows_of_file()?,
            PlotKind::Biplot => {
                let file = self.input.display();
                return Err(LabError::Usage(format!(
                    "--kind biplot: {file} is no model; give MODEL and DATA"
                )));
            }
        };
        plots::write(&figure, &self.output)?;
        Ok(kind)
    }

    fn model(&self) -> Result<StoredModel, LabError> {
        Ok(StoredModel::read(&self.input)?)
    }

    /// The components, counted from 0.
    fn chosen(&self) -> Vec<usize> {
        self.components.iter().map(|c| *c as usize - 1).collect()
    }

    fn plane_of(&self) -> Result<[usize; 2], LabError> {
        <[usize; 2]>::try_from(self.chosen()).map_err(|chosen| {
            let message =
                format!("--components names {}: a plane has two, such as --components 1,3", chosen.len());
            LabError::Usage(message)
        })
    }

    fn refuse_idle_flags(&self, kind: PlotKind) -> Result<(), LabError> {
        let shows_rows = matches!(kind, PlotKind::Scores | PlotKind::Biplot);
        let idle = [
            ("--color", self.color.is_some()),
            ("--label", self.label.is_some()),
            ("DATA", self.data.is_some()),
        ];
        match idle.into_iter().find(|(_, given)| *given && !shows_rows) {
            None => Ok(()),
            Some((flag, _)) => Err(LabError::Usage(format!(
                "{flag} is about rows: add --kind scores or --kind biplot, or leave it out"
            ))),
        }
    }

    fn rows_of_model(&self, kind: PlotKind) -> Result<Figure, LabError> {
        let Some(path) = &self.data else {
            let message =
                format!("a model has no rows: give its data too, hbpca plot {} DATA", self.input.display());
            return Err(LabError::Usage(message));
        };
        let stored = self.model()?;
        let model = &stored.model;
        let occurring = stored.origin.reading.columns.clone();
        let names = model.feature_names().filter(|_| occurring.is_none()).map(NamesToMatch::of_model);
        let options = ReadOptions { match_names: names, occurring, ..ReadOptions::default() };
        let data = self.read(path, options)?;
        if data.matrix.n_cols() != model.n_features() {
            let (found, needed) = (data.matrix.n_cols(), model.n_features());
            let message = format!(
                "{found} columns, the model has {needed}: is the column of --color or --label one of them?"
            );
            return Err(LabError::description(path.display().to_string(), message));
        }
        let scores = model.transform(&data.matrix, Whitening::Off)?;
        let plane = Plane {
            scores: &scores,
            k: model.n_components(),
            components: self.plane_of()?,
            shares: Some(model.explained_variance_ratio()),
            colouring: self.colouring(&data),
            labels: self.labels(&data),
        };
        match kind {
            PlotKind::Biplot => {
                plots::biplot(&plane, model, &column_names(&stored, data.column_names.as_deref()))
            }
            _ => plots::scores(&plane),
        }
    }

    /// Scores as `hbpca transform` writes them: by name where they have names, else all columns.
    fn rows_of_file(&self) -> Result<Figure, LabError> {
        let [a, b] = self.plane_of()?;
        let names = [a, b].map(|c| ColumnRef::Name(format!("component_{}", c + 1)));
        let named =
            self.read(&self.input, ReadOptions { columns: Some(names.to_vec()), ..ReadOptions::default() });
        let (data, components) = match named {
            Ok(data) => (data, [0, 1]),
            Err(_) => (self.read(&self.input, ReadOptions::default())?, [a, b]),
        };
        let k = data.matrix.n_cols();
        let scores = row_major(&data.matrix);
        let (colouring, labels) = (self.colouring(&data), self.labels(&data));
        let shown = Plane { scores: &scores, k, components, shares: None, colouring, labels };
        let mut figure = plots::scores(&shown)?;
        if let Some(panel) = figure.panels.first_mut() {
            panel.x_label = format!("component {}", a + 1);
            panel.y_label = format!("component {}", b + 1);
        }
        Ok(figure)
    }

    fn read(&self, path: &std::path::Path, options: ReadOptions) -> Result<Data, LabError> {
        let keep = self.color.iter().chain(&self.label).map(|column| ColumnRef::parse(column)).collect();
        let options = ReadOptions { keep, ..options };
        Ok(hbpca_io::read(Input::path(path), &options)?)
    }

    fn colouring(&self, data: &Data) -> Option<(Colouring, String)> {
        let column = self.color.as_deref()?;
        let name = if column.trim().parse::<i64>().is_ok() { "label" } else { column };
        data.kept.first().map(|(_, values)| (Colouring::of(values), name.to_owned()))
    }

    /// What is written beside the rows: the last of the columns that were read beside them.
    fn labels(&self, data: &Data) -> Option<Vec<String>> {
        self.label.as_ref()?;
        data.kept.last().map(|(_, values)| (0..values.len()).map(|l| values.text(l).into_owned()).collect())
    }
}

fn row_major(matrix: &Matrix<'_>) -> Vec<f64> {
    let k = matrix.n_cols();
    let mut values = vec![0.0; matrix.n_rows() * k];
    for (l, row) in values.chunks_exact_mut(k).enumerate() {
        matrix.for_each_in_row(l, |j, x| row[j] = x);
    }
    values
}
