//! The components of an earlier model as a start.

use hbpca::{Block, FitConfig};
use hbpca_io::positions_by_name;

use crate::exit::Failure;

/// The choices with the start in the order of the data's columns, found by name where both have names.
pub fn start_in_order(
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
