//! The components of an earlier model as a start.

use hbpca::{Block, FitConfig};
use hbpca_io::positions_by_name;

use super::Components;
use crate::exit::Failure;

/// What was asked for before the names and the shape of the data were known.
pub struct Asked<'a> {
    /// The choices, with a start in the order of its own columns.
    pub config: &'a FitConfig,
    /// How many components.
    pub components: Components,
    /// The columns of the start.
    pub start_names: Option<&'a [String]>,
}

impl Asked<'_> {
    /// The choices for `data`, whose columns have these names.
    pub fn of(
        &self,
        names: Option<&[String]>,
        data: &str,
        (n, d): (usize, usize),
    ) -> Result<FitConfig, Failure> {
        let config = start_in_order(self.config, self.start_names, names, data)?;
        Ok(self.components.of(config, n, d))
    }
}

/// The choices with the start in the order of the data's columns, found by name where both have names.
fn start_in_order(
    config: &FitConfig,
    start_names: Option<&[String]>,
    data_names: Option<&[String]>,
    data: &str,
) -> Result<FitConfig, Failure> {
    let (Some(start), Some(from), Some(to)) = (&config.start, start_names, data_names) else {
        return Ok(config.clone());
    };
    if from == to {
        return Ok(config.clone());
    }
    let Some(positions) = positions_by_name(to, from) else {
        let way_out = "choose the same ones with --columns, or leave --start out";
        return Err(Failure::Input(format!(
            "{data}: its columns are not those of the model given to --start: {way_out}"
        )));
    };
    let columns: Vec<Vec<f64>> =
        (0..start.p()).map(|c| positions.iter().map(|&j| start.column(c)[j]).collect()).collect();
    let start = Block::from_columns(&columns).map_err(|error| Failure::refused(&error, data))?;
    Ok(FitConfig { start: Some(start), ..config.clone() })
}
