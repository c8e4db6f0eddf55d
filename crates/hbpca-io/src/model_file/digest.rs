//! The digest of a model file: a 64-bit hash of its JSON object and of all tensors. It shows accidents, not intent: whoever can change a file can
//! compute it anew.
//!
//! It is the last entry of the JSON object, so that the text before it can be hashed as it stands.

use std::hash::Hasher;

use twox_hash::XxHash3_64;

/// What stands before the sixteen digits, and after them.
const BEFORE: &str = ",\"digest\":\"";
const AFTER: &str = "\"}";
const DIGITS: usize = 16;

/// The JSON object with the digest of itself and of the tensors.
pub(super) fn append<'a>(
    json: &str,
    tensors: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> Result<String, String> {
    let body = json.strip_suffix('}').ok_or("the header is no JSON object")?;
    Ok(format!("{body}{BEFORE}{:0DIGITS$x}{AFTER}", hash(body, tensors)))
}

/// Whether a digest is that of the content; nothing where there is none.
pub(super) fn fits<'a>(json: &str, tensors: impl Iterator<Item = (&'a str, &'a [u8])>) -> Option<bool> {
    let (body, rest) = json.rsplit_once(BEFORE)?;
    Some(rest == format!("{:0DIGITS$x}{AFTER}", hash(body, tensors)))
}

fn hash<'a>(body: &str, tensors: impl Iterator<Item = (&'a str, &'a [u8])>) -> u64 {
    let mut tensors: Vec<_> = tensors.collect();
    tensors.sort_unstable_by_key(|(name, _)| *name);
    let mut hasher = XxHash3_64::with_seed(0);
    let mut part = |bytes: &[u8]| {
        // Lengths keep one part from reaching into the next.
        hasher.write(&(bytes.len() as u64).to_le_bytes());
        hasher.write(bytes);
    };
    part(body.as_bytes());
    for (name, bytes) in tensors {
        part(name.as_bytes());
        part(bytes);
    }
    hasher.finish()
}
