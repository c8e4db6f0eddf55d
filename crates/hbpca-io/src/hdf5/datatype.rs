//! What the elements of an array are.

use super::Fault;
use super::fields::Fields;
use crate::element::{Element, Number};

/// Types within types.
const MOST_LEVELS: usize = 8;
/// Columns of a table.
const MOST_MEMBERS: usize = 1 << 14;

/// The type of an element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Datatype {
    /// A number.
    Number(Element),
    /// A number with a name for each value, as h5py stores true and false.
    Enumeration {
        /// The numbers.
        element: Element,
        /// Their names.
        names: Vec<String>,
    },
    /// A text of at most so many bytes, filled up with zeros or spaces.
    FixedText(usize),
    /// A text of any length, elsewhere in the file.
    Text,
    /// A row of a table.
    Table {
        /// Bytes of a row.
        size: usize,
        /// Its columns.
        members: Vec<Member>,
    },
    /// Something else, of so many bytes.
    Other(usize),
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Where it lies in a row.
    pub(crate) offset: usize,
    pub(crate) datatype: Datatype,
}

impl Datatype {
    /// Bytes of an element.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Number(element) | Self::Enumeration { element, .. } => element.size(),
            Self::FixedText(size) | Self::Table { size, .. } | Self::Other(size) => *size,
            Self::Text => 16,
        }
    }

    /// Whether it is h5py's type of true and false.
    pub(crate) fn is_truth(&self) -> bool {
        matches!(self, Self::Enumeration { element, names } if element.size() == 1 && names.iter().map(String::as_str).eq(["FALSE", "TRUE"]))
    }

    pub(super) fn parse(message: &[u8]) -> Result<Self, Fault> {
        parse(&mut Fields::new("datatype", message), 0)
    }
}

fn parse(fields: &mut Fields<'_>, level: usize) -> Result<Datatype, Fault> {
    if level > MOST_LEVELS {
        return Err("a datatype is nested too deeply".into());
    }
    let head = fields.u8()?;
    let (class, version) = (head & 15, head >> 4);
    let bits = fields.number(3)? as u32;
    let size = fields.u32()? as usize;
    if size == 0 {
        return Err("a datatype has no bytes".into());
    }
    Ok(match class {
        0 => {
            let (offset, precision) = (fields.u16()?, fields.u16()?);
            let whole = offset == 0 && usize::from(precision) == size.saturating_mul(8);
            integer(size, bits & 8 != 0).filter(|_| whole).map_or(Datatype::Other(size), |number| {
                Datatype::Number(Element { number, big_endian: bits & 1 != 0 })
            })
        }
        1 => {
            let properties = fields.bytes(12)?;
            // Where the exponent starts and its size tell IEEE's own numbers from others.
            let number = match (size, properties[4], properties[5], bits & 0x40) {
                (4, 23, 8, 0) => Some(Number::F32),
                (8, 52, 11, 0) => Some(Number::F64),
                _ => None,
            };
            number.map_or(Datatype::Other(size), |number| {
                Datatype::Number(Element { number, big_endian: bits & 1 != 0 })
            })
        }
        3 => Datatype::FixedText(size),
        5 => {
            fields.skip((bits & 0xFF) as usize)?;
            Datatype::Other(size)
        }
        6 => table(fields, version, size, (bits & 0xFFFF) as usize, level)?,
        8 => enumeration(fields, version, size, (bits & 0xFFFF) as usize, level)?,
        9 => {
            parse(fields, level + 1)?;
            if bits & 15 == 1 && size == 16 { Datatype::Text } else { Datatype::Other(size) }
        }
        10 => {
            let n = usize::from(fields.u8()?);
            fields.skip(if version < 3 { 3 + 8 * n } else { 4 * n })?;
            parse(fields, level + 1)?;
            Datatype::Other(size)
        }
        4 => {
            fields.skip(4)?;
            Datatype::Other(size)
        }
        2 => {
            fields.skip(2)?;
            Datatype::Other(size)
        }
        _ => Datatype::Other(size),
    })
}

fn integer(size: usize, signed: bool) -> Option<Number> {
    Some(match (size, signed) {
        (1, true) => Number::I8,
        (1, false) => Number::U8,
        (2, true) => Number::I16,
        (2, false) => Number::U16,
        (4, true) => Number::I32,
        (4, false) => Number::U32,
        (8, true) => Number::I64,
        (8, false) => Number::U64,
        _ => return None,
    })
}

/// Names take multiples of 8 bytes up to version 2.
fn unit(version: u8) -> usize {
    if version < 3 { 8 } else { 1 }
}

fn table(
    fields: &mut Fields<'_>,
    version: u8,
    size: usize,
    n: usize,
    level: usize,
) -> Result<Datatype, Fault> {
    if n > MOST_MEMBERS {
        return Err(format!("a table of {n} columns is not read, at most {MOST_MEMBERS}").into());
    }
    let mut members = Vec::new();
    for _ in 0..n {
        let name = String::from_utf8_lossy(fields.text(unit(version))?).into_owned();
        let width = if version < 3 { 4 } else { size.max(1).ilog2() as usize / 8 + 1 };
        let offset = fields.number(width)? as usize;
        if version == 1 {
            fields.skip(28)?;
        }
        let datatype = parse(fields, level + 1)?;
        if offset.saturating_add(datatype.size()) > size {
            return Err(format!("column `{name}` of a table lies outside of its rows").into());
        }
        members.push(Member { name, offset, datatype });
    }
    Ok(Datatype::Table { size, members })
}

fn enumeration(
    fields: &mut Fields<'_>,
    version: u8,
    size: usize,
    n: usize,
    level: usize,
) -> Result<Datatype, Fault> {
    let base = parse(fields, level + 1)?;
    let mut names = Vec::new();
    for _ in 0..n {
        names.push(String::from_utf8_lossy(fields.text(unit(version))?).into_owned());
    }
    let values = fields.bytes(n.saturating_mul(base.size()))?;
    let Datatype::Number(element) = base else { return Ok(Datatype::Other(size)) };
    if element.size() != size {
        return Ok(Datatype::Other(size));
    }
    // Names stand for 0, 1, … or they are none that is understood here.
    let numbers = element.decode_indices(values, Some);
    let counts = numbers.is_some_and(|numbers| numbers.into_iter().eq(0..n as u64));
    Ok(Datatype::Enumeration { element, names: if counts { names } else { Vec::new() } })
}
