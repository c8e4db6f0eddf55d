//! The tensors of a model file, and the frame around them.

use std::collections::HashMap;

use hbpca::{Centering, Record};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::header::Header;
use super::{StoredModel, digest};

/// The metadata key of the JSON object. It is the only one: safetensors keeps metadata in no order, and equal models are
/// to have equal bytes.
const KEY: &str = "hbpca";
/// The tensor of the columns' names: the bytes of a JSON array. As metadata, which may take 100 MB, a million long names would
/// make a file that nobody can open.
const NAMES: &str = "feature_names";
/// The tensor of the columns' numbers.
const COLUMNS: &str = "columns";

/// Numbers a record has, in the order of [`Record`]'s fields.
pub(crate) const RECORD: usize = 9;

/// What was found in a file.
pub(super) struct Tensors {
    pub(super) components: Vec<f64>,
    pub(super) eigenvalues: Vec<f64>,
    pub(super) shift: Option<Vec<f64>>,
    pub(super) scale: Option<Vec<f64>>,
    pub(super) history: Vec<Record>,
    pub(super) feature_names: Option<Vec<String>>,
    /// The numbers of the columns, where the model has only those that occur.
    pub(super) columns: Option<Vec<u32>>,
    /// Variances with denominator n − 1, which follow from the others.
    pub(super) explained_variance: Option<Vec<f64>>,
    /// Whether the digest is that of the content; nothing in a file of an earlier version.
    pub(super) is_undamaged: Option<bool>,
}

/// Puts a file together.
pub(super) fn serialize(stored: &StoredModel, json: &str) -> Result<Vec<u8>, String> {
    let model = &stored.model;
    let (k, d) = (model.n_components(), model.n_features());
    let history: Vec<f64> = stored.origin.history.iter().flat_map(record_to_row).collect();
    let variances = model.explained_variance();
    let mut parts: Vec<(&str, Vec<usize>, &[f64])> = vec![
        ("components", vec![k, d], model.components()),
        ("eigenvalues", vec![k], model.eigenvalues()),
        ("explained_variance", vec![k], &variances),
        ("history", vec![stored.origin.history.len(), RECORD], &history),
    ];
    let shift_name = match model.summary().preprocessing.centering {
        Centering::Mean => "mean",
        _ => "shift",
    };
    for (name, part) in [(shift_name, model.shift()), ("scale", model.scale())] {
        parts.extend(part.map(|values| (name, vec![d], values)));
    }
    let bytes: Vec<Vec<u8>> =
        parts.iter().map(|(_, _, values)| values.iter().flat_map(|x| x.to_le_bytes()).collect()).collect();
    let views = parts.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
        TensorView::new(Dtype::F64, shape.clone(), bytes).map(|view| ((*name).to_owned(), view))
    });
    let mut views: Vec<_> = views.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let names =
        model.feature_names().map(serde_json::to_vec).transpose().map_err(|error| error.to_string())?;
    if let Some(names) = &names {
        let view = TensorView::new(Dtype::U8, vec![names.len()], names).map_err(|error| error.to_string())?;
        views.push((NAMES.to_owned(), view));
    }
    let columns = stored.origin.reading.columns.as_ref().map(|columns| &columns.numbers);
    let columns: Option<Vec<u8>> =
        columns.map(|numbers| numbers.iter().flat_map(|j| j.to_le_bytes()).collect());
    if let Some(columns) = &columns {
        let view = TensorView::new(Dtype::U32, vec![columns.len() / 4], columns)
            .map_err(|error| error.to_string())?;
        views.push((COLUMNS.to_owned(), view));
    }
    let content = views.iter().map(|(name, view)| (name.as_str(), view.data()));
    let metadata = HashMap::from([(KEY.to_owned(), digest::append(json, content)?)]);
    safetensors::serialize(views, Some(metadata)).map_err(|error| error.to_string())
}

/// Takes a file apart. Tensors of other names are passed over: a later version may add some.
pub(super) fn deserialize(bytes: &[u8]) -> Result<(Header, Tensors), String> {
    let not_safetensors = |error| format!("it is not a whole safetensors file: {error}");
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(not_safetensors)?;
    let json = metadata.metadata().as_ref().and_then(|map| map.get(KEY)).ok_or_else(|| {
        format!("it has no metadata `{KEY}`: it is a safetensors file, but not a model written by hbpca")
    })?;
    let header = Header::from_json(json)?;
    let file = SafeTensors::deserialize(bytes).map_err(not_safetensors)?;
    let (k, d) = (header.k(), header.d());
    let required = |name: &str, shape: &[usize]| {
        numbers(&file, name, shape)?.ok_or_else(|| format!("the tensor `{name}` is missing"))
    };
    let shift = match numbers(&file, "mean", &[d])? {
        Some(mean) => Some(mean),
        None => numbers(&file, "shift", &[d])?,
    };
    let scale = numbers(&file, "scale", &[d])?;
    if scale.iter().flatten().any(|x| *x <= 0.0) {
        return Err("the tensor `scale` holds a number that is not positive".into());
    }
    let is_undamaged = digest::fits(json, file.iter().map(|(name, view)| (name, view.data())));
    let tensors = Tensors {
        components: required("components", &[k, d])?,
        eigenvalues: required("eigenvalues", &[k])?,
        shift,
        scale,
        history: records_of(&file)?,
        // Of damaged names the digest tells more than their spelling.
        feature_names: if is_undamaged == Some(false) { None } else { names_of(&file, d)? },
        columns: columns_of(&file)?,
        explained_variance: numbers(&file, "explained_variance", &[k])?,
        is_undamaged,
    };
    Ok((header, tensors))
}

/// The finite numbers of a tensor of the given shape, or nothing where there is none of that name.
fn numbers(file: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<Option<Vec<f64>>, String> {
    let Ok(view) = file.tensor(name) else { return Ok(None) };
    if view.shape() != shape {
        return Err(format!("the tensor `{name}` has shape {:?} where {shape:?} is needed", view.shape()));
    }
    let values = numbers_of(&view, name)?;
    match values.iter().find(|x| !x.is_finite()) {
        Some(x) => Err(format!("the tensor `{name}` holds {x}")),
        None => Ok(Some(values)),
    }
}

/// The names of the columns in a file, or nothing where it has none.
fn names_of(file: &SafeTensors<'_>, d: usize) -> Result<Option<Vec<String>>, String> {
    let Ok(view) = file.tensor(NAMES) else { return Ok(None) };
    if view.dtype() != Dtype::U8 {
        return Err(format!("the tensor `{NAMES}` has type {:?} where U8 is needed", view.dtype()));
    }
    let names: Vec<String> = serde_json::from_slice(view.data())
        .map_err(|error| format!("the tensor `{NAMES}` is no JSON array of texts: {error}"))?;
    if names.len() != d {
        return Err(format!("the tensor `{NAMES}` has {} names where {d} are needed", names.len()));
    }
    Ok(Some(names))
}

/// The numbers of the columns in a file, or nothing where it has none.
fn columns_of(file: &SafeTensors<'_>) -> Result<Option<Vec<u32>>, String> {
    let Ok(view) = file.tensor(COLUMNS) else { return Ok(None) };
    if view.dtype() != Dtype::U32 {
        return Err(format!("the tensor `{COLUMNS}` has type {:?} where U32 is needed", view.dtype()));
    }
    let (words, _) = view.data().as_chunks::<4>();
    Ok(Some(words.iter().map(|word| u32::from_le_bytes(*word)).collect()))
}

/// All numbers of a tensor of f64.
pub(crate) fn numbers_of(view: &TensorView<'_>, name: &str) -> Result<Vec<f64>, String> {
    if view.dtype() != Dtype::F64 {
        return Err(format!("the tensor `{name}` has type {:?} where F64 is needed", view.dtype()));
    }
    let (words, _) = view.data().as_chunks::<8>();
    Ok(words.iter().map(|word| f64::from_le_bytes(*word)).collect())
}

/// The history in a file, empty where it has none.
pub(crate) fn records_of(file: &SafeTensors<'_>) -> Result<Vec<Record>, String> {
    let Ok(view) = file.tensor("history") else { return Ok(Vec::new()) };
    match view.shape() {
        [_, RECORD] => {
            Ok(numbers_of(&view, "history")?.as_chunks::<RECORD>().0.iter().map(from_row).collect())
        }
        other => Err(format!("the tensor `history` has shape {other:?} where rows of {RECORD} are needed")),
    }
}

/// One row of the history.
pub(crate) fn record_to_row(record: &Record) -> [f64; RECORD] {
    let known = |x: Option<f64>| x.unwrap_or(f64::NAN);
    let Record { passes, full_passes, seconds, theta, residual, eta, beta, lambda2, error, .. } =
        record.clone();
    [
        passes,
        full_passes as f64,
        seconds,
        theta,
        residual,
        known(eta),
        known(beta),
        known(lambda2),
        known(error),
    ]
}

fn from_row(row: &[f64; RECORD]) -> Record {
    let known = |x: f64| (!x.is_nan()).then_some(x);
    let [passes, full_passes, seconds, theta, residual, eta, beta, lambda2, error] = *row;
    let mut record = Record::default();
    (record.passes, record.full_passes, record.seconds) = (passes, full_passes as u64, seconds);
    (record.theta, record.residual) = (theta, residual);
    (record.eta, record.beta, record.lambda2) = (known(eta), known(beta), known(lambda2));
    record.error = known(error);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_record_is_kept() {
        let mut record = Record::default();
        (record.passes, record.full_passes, record.seconds) = (1.5, 1, 0.25);
        (record.theta, record.residual) = (2.0, 1e-3);
        (record.eta, record.beta, record.lambda2) = (Some(0.1), None, Some(1.5));
        record.error = Some(0.01);
        assert_eq!(from_row(&record_to_row(&record)), record);
        let fields = serde_json::to_value(&record).unwrap();
        assert_eq!(fields.as_object().unwrap().len(), RECORD);
    }
}
