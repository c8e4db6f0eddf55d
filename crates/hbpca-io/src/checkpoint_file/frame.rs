//! The frame of a checkpoint: a safetensors file whose last tensor is the checksum of all that comes before.
//!
//! It is written number by number, so that a state of gigabytes is not held in memory once more; the public library reads it.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::io::{self, Write};

use hbpca::Record;
use hbpca::checkpoint::{Checkpoint, Tensor};
use safetensors::tensor::{Dtype, SafeTensors};
use serde_json::{Map, Value, json};
use twox_hash::XxHash3_64;

use crate::model_file::{RECORD, numbers_of, record_to_row, records_of};

/// The metadata key of the JSON object.
const KEY: &str = "hbpca-checkpoint";
/// What the header begins with: no other key sorts before this one.
pub(super) const HEAD: &str = r#"{"__metadata__":{"hbpca-checkpoint":"#;
const HISTORY: &str = "history";
const CHECKSUM: &str = "checksum";

/// What a file holds.
pub(super) struct Frame {
    pub(super) json: String,
    pub(super) tensors: BTreeMap<String, Tensor>,
    pub(super) history: Vec<Record>,
}

/// Passes bytes on and hashes them.
struct Hashing<W> {
    out: W,
    hasher: XxHash3_64,
}

impl<W: Write> Hashing<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.write(bytes);
        self.out.write_all(bytes)
    }

    fn put_numbers(&mut self, values: &[f64]) -> io::Result<()> {
        let mut buffer = Vec::with_capacity(8 << 10);
        for run in values.chunks(1 << 10) {
            buffer.clear();
            buffer.extend(run.iter().flat_map(|x| x.to_le_bytes()));
            self.put(&buffer)?;
        }
        Ok(())
    }
}

/// Writes the file's content.
pub(super) fn write(checkpoint: &Checkpoint, json: &str, out: impl Write) -> io::Result<()> {
    let paused = &checkpoint.paused;
    let records = checkpoint.earlier.iter().chain(&paused.history);
    let history: Vec<f64> = records.flat_map(record_to_row).collect();
    let shape = [history.len() / RECORD, RECORD];
    let state = paused.state.tensors().iter().map(|(name, x)| (name.as_str(), x.shape(), x.values()));
    let parts: Vec<(&str, &[usize], &[f64])> = state.chain([(HISTORY, &shape[..], &history[..])]).collect();

    let (mut entries, mut at) = (Map::new(), 0);
    entries.insert("__metadata__".into(), json!({ KEY: json }));
    let mut place = |name: &str, dtype: &str, shape: &[usize], bytes: usize| {
        let about = json!({ "dtype": dtype, "shape": shape, "data_offsets": [at, at + bytes] });
        entries.insert(name.into(), about);
        at += bytes;
    };
    parts.iter().for_each(|(name, shape, values)| place(name, "F64", shape, values.len() * 8));
    place(CHECKSUM, "U64", &[1], 8);
    let mut header = Value::Object(entries).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' '); // numbers lie on multiples of their size

    let mut out = Hashing { out, hasher: XxHash3_64::with_seed(0) };
    out.put(&(header.len() as u64).to_le_bytes())?;
    out.put(&header)?;
    for (_, _, values) in parts {
        out.put_numbers(values)?;
    }
    let checksum = out.hasher.finish();
    out.out.write_all(&checksum.to_le_bytes())
}

impl Frame {
    /// Takes a file apart.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        check_sum(bytes)?;
        let not_safetensors = |error| format!("it is not a whole safetensors file: {error}");
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(not_safetensors)?;
        let json = metadata.metadata().as_ref().and_then(|map| map.get(KEY)).ok_or_else(|| {
            format!(
                "it has no metadata `{KEY}`: it is a safetensors file, but not a checkpoint written by hbpca"
            )
        })?;
        let file = SafeTensors::deserialize(bytes).map_err(not_safetensors)?;
        let mut tensors = BTreeMap::new();
        for (name, view) in file.iter().filter(|(name, _)| ![HISTORY, CHECKSUM].contains(name)) {
            let values = numbers_of(&view, name)?;
            let tensor = Tensor::new(view.shape().to_vec(), values).map_err(|error| error.to_string())?;
            tensors.insert(name.to_owned(), tensor);
        }
        if !file.tensor(CHECKSUM).is_ok_and(|view| view.dtype() == Dtype::U64) {
            return Err(format!("the tensor `{CHECKSUM}` is missing"));
        }
        Ok(Self { json: json.clone(), tensors, history: records_of(&file)? })
    }
}

/// Compares the last eight bytes with the hash of the others.
fn check_sum(bytes: &[u8]) -> Result<(), String> {
    let Some((content, stored)) = bytes.split_last_chunk::<8>() else {
        return Err(format!("it is no checkpoint: it has {} bytes", bytes.len()));
    };
    let begins_like_one = content.get(8) == Some(&b'{');
    match XxHash3_64::oneshot(content) == u64::from_le_bytes(*stored) {
        true => Ok(()),
        false if begins_like_one => {
            Err("it is damaged or cut off, or no checkpoint: its checksum does not fit its content; \
                 resume from another checkpoint, or begin anew"
                .into())
        }
        false => Err("it is no checkpoint written by hbpca".into()),
    }
}
