//! Texts of any length, which lie in collections of their own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use super::fields::Fields;
use super::storage::{Storage, Visits};
use super::{Datatype, Fault};

/// Bytes of one text.
const MOST_OF_A_TEXT: usize = 1 << 16;
/// Texts may be named more than once, but not without end: all that are read take so many times the bytes of the file at most, beside some.
const MOST_TIMES: u64 = 8;
const SOME: u64 = 1 << 20;

/// A collection of texts.
struct Collection {
    bytes: Vec<u8>,
    /// Where each of them lies.
    objects: HashMap<u64, Range<usize>>,
}

/// The texts of elements. Each collection is read once.
pub(super) fn texts(storage: &mut Storage, datatype: &Datatype, bytes: &[u8]) -> Result<Vec<String>, Fault> {
    match datatype {
        Datatype::FixedText(size) => Ok(bytes.chunks_exact(*size).map(fixed).collect()),
        Datatype::Text => {
            let mut left = storage.size().saturating_mul(MOST_TIMES).saturating_add(SOME);
            let mut visits = Visits::of(storage);
            let mut collections = HashMap::new();
            let mut texts = Vec::with_capacity(bytes.len() / 16);
            for place in bytes.chunks_exact(16) {
                let mut fields = Fields::new("text", place);
                let (length, address, index) = (fields.u32()? as usize, fields.u64()?, fields.number(4)?);
                if length == 0 {
                    texts.push(String::new());
                    continue;
                }
                let collection = match collections.entry(address) {
                    Entry::Occupied(found) => found.into_mut(),
                    Entry::Vacant(place) => place.insert(Collection::read(storage, &mut visits, address)?),
                };
                let text = collection.text(index, length)?;
                let after = left.checked_sub(text.len() as u64);
                left =
                    after.ok_or_else(|| Fault::from("its texts take more room than the file could mean"))?;
                texts.push(text);
            }
            Ok(texts)
        }
        _ => Err("it holds no texts".into()),
    }
}

impl Collection {
    /// Text number `index`, of `length` bytes.
    fn text(&self, index: u64, length: usize) -> Result<String, Fault> {
        if length > MOST_OF_A_TEXT {
            return Err(format!("a text of {length} bytes is not read, at most {MOST_OF_A_TEXT}").into());
        }
        let object = self.objects.get(&index).and_then(|range| self.bytes.get(range.clone()));
        let text = object.and_then(|object| object.get(..length));
        let text = text.ok_or_else(|| Fault::from("a text is not where it should be"))?;
        Ok(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
    }

    fn read(storage: &mut Storage, visits: &mut Visits, address: u64) -> Result<Self, Fault> {
        let head = storage.read(address, 16)?;
        let mut fields = Fields::signed("collection of texts", b"GCOL", &head)?;
        fields.version(&[1])?;
        fields.skip(3)?;
        let length = fields.u64()?;
        visits.visit(address, length)?;
        let bytes = storage.read(address, length)?;
        let mut objects = HashMap::new();
        let mut at = 16;
        while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= 16) {
            let mut fields = Fields::new("collection of texts", rest);
            let index = u64::from(fields.u16()?);
            fields.skip(6)?;
            let length = fields.u64()?;
            if index == 0 {
                break; // free space
            }
            let start = at + 16;
            let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
            let end = end.filter(|end| *end <= bytes.len());
            let end = end.ok_or_else(|| Fault::from("a text lies outside of its collection"))?;
            objects.insert(index, start..end);
            at = end.next_multiple_of(8);
        }
        Ok(Self { bytes, objects })
    }
}

/// A text without what fills it up.
fn fixed(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim_end_matches(' ').to_owned()
}
