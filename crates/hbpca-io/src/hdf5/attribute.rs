//! Attributes: small values beside an object.

use super::array::{elements, extent};
use super::fields::Fields;
use super::fractal_heap::FractalHeap;
use super::global_heap::texts;
use super::header::kind;
use super::storage::Storage;
use super::tree_v2::records;
use super::{Datatype, Fault, Object};

/// Elements of an attribute that is looked at.
const MOST_ELEMENTS: u64 = 1 << 12;

/// The flag of an attribute that lies elsewhere, for several objects.
const SHARED: u8 = 2;

/// What an attribute holds.
#[derive(Debug, PartialEq)]
pub(crate) enum Value {
    /// Texts, often one.
    Texts(Vec<String>),
    /// Whole numbers from 0 on.
    Wholes(Vec<u64>),
    /// Something else.
    Other,
}

/// The attribute of this name.
pub(super) fn find(storage: &mut Storage, object: &Object, name: &str) -> Result<Option<Value>, Fault> {
    for message in object.all(kind::ATTRIBUTE) {
        if let Some(attribute) = Attribute::named(message, name)? {
            return attribute.value(storage).map(Some);
        }
    }
    let Some(info) = object.message(kind::ATTRIBUTE_INFO) else { return Ok(None) };
    let mut fields = Fields::new("list of attributes", info);
    fields.version(&[0])?;
    let flags = fields.u8()?;
    fields.skip(if flags & 1 == 0 { 0 } else { 2 })?;
    let (Some(heap), Some(tree)) = (fields.address()?, fields.address()?) else { return Ok(None) };
    let heap = FractalHeap::open(storage, heap)?;
    let mut left = storage.size();
    for record in records(storage, tree, 8)? {
        let Some((id, flags)) = record.split_at_checked(8) else {
            return Err("an attribute has no place".into());
        };
        // One that is too large for its heap lies elsewhere; those that are wanted are small.
        if flags.first().is_some_and(|flags| flags & SHARED != 0) || id[0] & 0x30 != 0 {
            continue;
        }
        let message = heap.object(storage, id)?;
        left = left
            .checked_sub(message.len() as u64)
            .ok_or_else(|| Fault::from("its attributes overlap in their heap"))?;
        if let Some(attribute) = Attribute::named(&message, name)? {
            return attribute.value(storage).map(Some);
        }
    }
    Ok(None)
}

struct Attribute<'a> {
    datatype: &'a [u8],
    extent: &'a [u8],
    data: &'a [u8],
}

impl<'a> Attribute<'a> {
    /// The attribute in a message, if it has this name.
    fn named(message: &'a [u8], wanted: &str) -> Result<Option<Self>, Fault> {
        let mut fields = Fields::new("attribute", message);
        let version = fields.version(&[1, 2, 3])?;
        let flags = fields.u8()?;
        let lengths = [fields.u16()?, fields.u16()?, fields.u16()?].map(usize::from);
        fields.skip(if version == 3 { 1 } else { 0 })?;
        let unit = if version == 1 { 8 } else { 1 };
        let mut part = |length: usize| -> Result<&'a [u8], Fault> {
            let taken = fields.bytes(length.next_multiple_of(unit))?;
            Ok(&taken[..length])
        };
        let (name, datatype, extent) = (part(lengths[0])?, part(lengths[1])?, part(lengths[2])?);
        if name.strip_suffix(&[0]).unwrap_or(name) != wanted.as_bytes() {
            return Ok(None);
        }
        if version > 1 && flags & 3 != 0 {
            return Err(format!("attribute `{wanted}` shares its type with others, which is not read").into());
        }
        let data = fields.bytes(fields.len())?;
        Ok(Some(Self { datatype, extent, data }))
    }

    fn value(&self, storage: &mut Storage) -> Result<Value, Fault> {
        let datatype = Datatype::parse(self.datatype)?;
        let n = elements(&extent(self.extent)?.shape)?;
        if n > MOST_ELEMENTS {
            return Ok(Value::Other);
        }
        let data = self.data.get(..(n as usize).saturating_mul(datatype.size()));
        let data = data.ok_or_else(|| Fault::from("an attribute ends too early"))?;
        match datatype {
            Datatype::Text | Datatype::FixedText(_) => texts(storage, &datatype, data).map(Value::Texts),
            Datatype::Number(element) => {
                Ok(element.decode_indices(data, Some).map_or(Value::Other, Value::Wholes))
            }
            _ => Ok(Value::Other),
        }
    }
}
