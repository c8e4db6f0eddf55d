//! Texts of any length, which lie in collections of their own.

use std::collections::HashMap;

use super::fields::Fields;
use super::storage::Storage;
use super::{Datatype, Fault};

/// Bytes of one text.
const MOST_OF_A_TEXT: usize = 1 << 16;
/// Texts may be named more than once, but not without end: all that are read take so many times the bytes of the file at most, beside some.
const MOST_TIMES: u64 = 8;
const SOME: u64 = 1 << 20;

/// The collections that were read last.
#[derive(Debug, Default)]
pub(super) struct GlobalHeap {
    collection: Option<(u64, Collection)>,
}

#[derive(Debug)]
struct Collection {
    bytes: Vec<u8>,
    /// Where each object lies.
    objects: HashMap<u64, std::ops::Range<usize>>,
}

impl GlobalHeap {
    /// The texts of elements.
    pub(super) fn texts(
        &mut self,
        storage: &mut Storage,
        datatype: &Datatype,
        bytes: &[u8],
    ) -> Result<Vec<String>, Fault> {
        match datatype {
            Datatype::FixedText(size) => Ok(bytes.chunks_exact(*size).map(fixed).collect()),
            Datatype::Text => {
                let mut left = storage.size().saturating_mul(MOST_TIMES).saturating_add(SOME);
                let mut texts = Vec::with_capacity(bytes.len() / 16);
                for place in bytes.chunks_exact(16) {
                    let text = self.text(storage, place)?;
                    let after = left.checked_sub(text.len() as u64);
                    left = after
                        .ok_or_else(|| Fault::from("its texts take more room than the file could mean"))?;
                    texts.push(text);
                }
                Ok(texts)
            }
            _ => Err("it holds no texts".into()),
        }
    }

    fn text(&mut self, storage: &mut Storage, place: &[u8]) -> Result<String, Fault> {
        let mut fields = Fields::new("text", place);
        let (length, address, index) = (fields.u32()? as usize, fields.u64()?, fields.number(4)?);
        if length == 0 {
            return Ok(String::new());
        }
        if length > MOST_OF_A_TEXT {
            return Err(format!("a text of {length} bytes is not read, at most {MOST_OF_A_TEXT}").into());
        }
        let collection = match &mut self.collection {
            Some((at, collection)) if *at == address => collection,
            other => &mut other.insert((address, Collection::read(storage, address)?)).1,
        };
        let object = collection.objects.get(&index).cloned();
        let object =
            object.and_then(|range| collection.bytes.get(range.start..range.start + length.min(range.len())));
        let text = object.filter(|text| text.len() == length);
        let text = text.ok_or_else(|| Fault::from("a text is not where it should be"))?;
        Ok(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
    }
}

impl Collection {
    fn read(storage: &mut Storage, address: u64) -> Result<Self, Fault> {
        let head = storage.read(address, 16)?;
        let mut fields = Fields::signed("collection of texts", b"GCOL", &head)?;
        fields.version(&[1])?;
        fields.skip(3)?;
        let bytes = storage.read(address, fields.u64()?)?;
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
