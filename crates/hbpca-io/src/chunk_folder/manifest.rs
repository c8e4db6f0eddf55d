//! What `manifest.json` says, believed only as far as it agrees with itself.

use serde::{Deserialize, Serialize};

use crate::ReadError;

/// The name by which the manifest knows itself.
const FORMAT: &str = "hbpca chunk folder";
/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;
/// Most columns a matrix can have.
const MOST_COLUMNS: u64 = 1 << 32;

/// The name of the manifest within the folder.
pub(super) const MANIFEST: &str = "manifest.json";
/// The name of the column statistics within the folder.
pub(super) const STATISTICS: &str = "statistics.npy";

/// The type of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Dtype {
    F32,
    F64,
}

impl Dtype {
    pub(super) fn size(self) -> u64 {
        if self == Self::F32 { 4 } else { 8 }
    }
}

/// How labels are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LabelKind {
    /// One NumPy array of f64.
    Numbers,
    /// One JSON string a line.
    Texts,
}

impl LabelKind {
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Numbers => "labels.npy",
            Self::Texts => "labels.jsonl",
        }
    }
}

/// The labels' file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LabelFile {
    pub(super) kind: LabelKind,
    #[serde(flatten)]
    pub(super) content: Content,
}

/// What a file holds, in two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Content {
    pub(super) bytes: u64,
    /// CRC-32 (IEEE) of all bytes.
    pub(super) crc32: u32,
}

impl Content {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, crc32: crc32fast::hash(bytes) }
    }
}

/// Some rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) file: String,
    pub(super) rows: u64,
    pub(super) entries: u64,
    #[serde(flatten)]
    pub(super) content: Content,
}

/// The name of part number `k`.
pub(super) fn part_name(k: usize, sparse: bool) -> String {
    format!("part-{k:06}.{}", if sparse { "npz" } else { "npy" })
}

/// What the folder holds, as its `manifest.json` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: String,
    version: u32,
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) entries: u64,
    pub(super) nonzeros: u64,
    pub(super) sparse: bool,
    pub(super) dtype: Dtype,
    pub(super) shuffle_seed: Option<u64>,
    pub(super) column_names: Option<Vec<String>>,
    pub(super) labels: Option<LabelFile>,
    pub(super) statistics: Content,
    pub(super) parts: Vec<Part>,
}

/// The format and version of the manifest, looked at before all else.
#[derive(Deserialize)]
struct Kind {
    format: String,
    version: u32,
}

impl Manifest {
    /// A manifest of no rows.
    pub(super) fn new(columns: usize, sparse: bool, dtype: Dtype) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            rows: 0,
            columns: columns as u64,
            entries: 0,
            nonzeros: 0,
            sparse,
            dtype,
            shuffle_seed: None,
            column_names: None,
            labels: None,
            statistics: Content { bytes: 0, crc32: 0 },
            parts: Vec::new(),
        }
    }

    /// Understands a manifest; messages call it `name`. Counts that do not add up, that no part could hold, or names
    /// that lead out of the folder are refused.
    pub fn parse(json: &[u8], name: &str) -> Result<Self, ReadError> {
        let malformed = |text: String| ReadError::malformed(name, text);
        let not_json =
            |error: serde_json::Error| malformed(format!("this is no manifest of a chunk folder: {error}"));
        let kind: Kind = serde_json::from_slice(json).map_err(not_json)?;
        if kind.format != FORMAT {
            return Err(malformed(format!("expected the format `{FORMAT}`, found `{}`", kind.format)));
        }
        if kind.version != VERSION {
            let found = kind.version;
            return Err(malformed(format!(
                "version {found} of the chunk folder is unknown, version {VERSION} is read: convert the data again"
            )));
        }
        let manifest: Self = serde_json::from_slice(json).map_err(not_json)?;
        manifest.check().map_err(malformed)?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        let (n, d) = (self.rows, self.columns);
        if n == 0 || d == 0 || d > MOST_COLUMNS {
            return Err(format!(
                "{n} rows × {d} columns: at least one of each, and at most 2³² columns, are read"
            ));
        }
        let mut rows = 0_u128;
        let mut entries = 0_u128;
        for (k, part) in self.parts.iter().enumerate() {
            self.check_part(k, part)?;
            rows += u128::from(part.rows);
            entries += u128::from(part.entries);
        }
        let agree = |what: &str, said: u64, sum: u128| {
            let text = format!("the parts have {sum} {what}, but {said} are promised");
            if u128::from(said) == sum { Ok(()) } else { Err(text) }
        };
        agree("rows", n, rows)?;
        agree("entries", self.entries, entries)?;
        if self.nonzeros > self.entries {
            return Err(format!("{} of {} entries cannot be non-zero", self.nonzeros, self.entries));
        }
        if u128::from(self.statistics.bytes) < 32 * u128::from(d) {
            let bytes = self.statistics.bytes;
            return Err(format!(
                "`{STATISTICS}` of {bytes} bytes cannot hold 4 numbers for each of {d} columns"
            ));
        }
        match &self.column_names {
            Some(names) if names.len() as u64 != d => {
                Err(format!("{} column names are given for {d} columns", names.len()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what no file of the size that is given can hold.
    fn check_part(&self, k: usize, part: &Part) -> Result<(), String> {
        let expected = part_name(k, self.sparse);
        if part.file != expected {
            return Err(format!("part {k} is called `{}`, but its name must be `{expected}`", part.file));
        }
        let Part { file, rows, entries, content } = part;
        let all = u128::from(*rows) * u128::from(self.columns);
        let fits = if self.sparse { u128::from(*entries) <= all } else { u128::from(*entries) == all };
        if *rows == 0 || !fits {
            return Err(format!("`{file}`: {entries} entries in {rows} rows of {} columns", self.columns));
        }
        let values = u128::from(*entries) * u128::from(self.dtype.size());
        let places = if self.sparse { 4 * u128::from(*entries) + 8 * u128::from(*rows) } else { 0 };
        let needed = values + places;
        if u128::from(content.bytes) < needed {
            let bytes = content.bytes;
            return Err(format!("`{file}`: {entries} entries need {needed} bytes, but it has {bytes}"));
        }
        Ok(())
    }

    /// As JSON.
    pub(super) fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> serde_json::Value {
        serde_json::json!({
            "format": "hbpca chunk folder", "version": 1, "rows": 5, "columns": 3, "entries": 15, "nonzeros": 9,
            "sparse": false, "dtype": "f64", "shuffle_seed": null, "column_names": ["a", "b", "c"],
            "labels": {"kind": "numbers", "bytes": 168, "crc32": 1},
            "statistics": {"bytes": 224, "crc32": 2},
            "parts": [
                {"file": "part-000000.npy", "rows": 3, "entries": 9, "bytes": 200, "crc32": 3},
                {"file": "part-000001.npy", "rows": 2, "entries": 6, "bytes": 176, "crc32": 4},
            ],
        })
    }

    fn parsed(value: &serde_json::Value) -> Result<Manifest, ReadError> {
        Manifest::parse(value.to_string().as_bytes(), "m")
    }

    #[test]
    fn a_manifest_survives_writing() {
        let manifest = parsed(&good()).unwrap();
        assert_eq!(Manifest::parse(&manifest.to_json().unwrap(), "m").unwrap(), manifest);
    }

    #[test]
    fn each_contradiction_is_named() {
        let huge = u64::MAX;
        for (place, value, message) in [
            ("/format", serde_json::json!("zarr"), "expected the format `hbpca chunk folder`, found `zarr`"),
            ("/version", serde_json::json!(2), "version 2 of the chunk folder is unknown"),
            ("/rows", serde_json::json!(6), "the parts have 5 rows, but 6 are promised"),
            ("/rows", serde_json::json!(0), "0 rows × 3 columns"),
            ("/rows", serde_json::json!(-1), "no manifest of a chunk folder"),
            ("/columns", serde_json::json!(huge), "at most 2³² columns"),
            ("/entries", serde_json::json!(16), "the parts have 15 entries, but 16 are promised"),
            ("/nonzeros", serde_json::json!(16), "16 of 15 entries cannot be non-zero"),
            ("/statistics/bytes", serde_json::json!(95), "cannot hold 4 numbers for each of 3 columns"),
            ("/column_names", serde_json::json!(["a"]), "1 column names are given for 3 columns"),
            ("/parts/1/file", serde_json::json!("../../etc/passwd"), "its name must be `part-000001.npy`"),
            (
                "/parts/0/rows",
                serde_json::json!(huge),
                "`part-000000.npy`: 9 entries in 18446744073709551615 rows",
            ),
            ("/parts/0/rows", serde_json::json!(0), "`part-000000.npy`: 9 entries in 0 rows"),
            ("/parts/1/bytes", serde_json::json!(47), "6 entries need 48 bytes, but it has 47"),
            ("/dtype", serde_json::json!("f16"), "unknown variant `f16`"),
        ] {
            let mut manifest = good();
            *manifest.pointer_mut(place).unwrap() = value;
            let error = parsed(&manifest).unwrap_err().to_string();
            assert!(error.starts_with("m: ") && error.contains(message), "{place}: {error}");
        }
    }
}
