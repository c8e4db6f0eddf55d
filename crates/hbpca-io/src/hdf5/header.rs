//! Where a file begins, and the messages in the header of each of its objects.

use super::Fault;
use super::fields::Fields;
use super::storage::{Storage, Visits};

/// The first bytes of every file.
pub(crate) const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";

/// The flag of a message that lies elsewhere, for several objects.
const SHARED: u8 = 2;

/// One message of an object.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) kind: u16,
    pub(super) data: Vec<u8>,
}

/// Kinds of messages.
pub(super) mod kind {
    pub(in super::super) const DATASPACE: u16 = 0x01;
    pub(in super::super) const LINK_INFO: u16 = 0x02;
    pub(in super::super) const DATATYPE: u16 = 0x03;
    pub(in super::super) const LINK: u16 = 0x06;
    pub(in super::super) const LAYOUT: u16 = 0x08;
    pub(in super::super) const FILTERS: u16 = 0x0B;
    pub(in super::super) const ATTRIBUTE: u16 = 0x0C;
    pub(in super::super) const CONTINUATION: u16 = 0x10;
    pub(in super::super) const SYMBOL_TABLE: u16 = 0x11;
    pub(in super::super) const ATTRIBUTE_INFO: u16 = 0x15;
}

/// The address of the root group.
pub(super) fn root(storage: &mut Storage) -> Result<u64, Fault> {
    let bytes = storage.read_up_to(0, 96)?;
    let mut fields = Fields::signed("superblock", SIGNATURE, &bytes)
        .map_err(|_| Fault::from("this is no HDF5 file: it does not begin like one"))?;
    let version = fields.version(&[0, 1, 2, 3])?;
    if version < 2 {
        fields.skip(4)?;
    }
    let sizes = (fields.u8()?, fields.u8()?);
    if sizes != (8, 8) {
        return Err(format!(
            "addresses of {} and lengths of {} bytes are not read, only 8 and 8",
            sizes.0, sizes.1
        )
        .into());
    }
    // Sizes of nodes and flags: what is read tells its own size.
    fields.skip(match version {
        0 => 9,
        1 => 13,
        _ => 1,
    })?;
    if fields.u64()? != 0 {
        return Err("its addresses do not count from the start of the file, which is not read".into());
    }
    fields.skip(if version < 2 { 32 } else { 16 })?;
    fields.defined_address()
}

/// All messages of the object at `address`.
pub(super) fn messages(storage: &mut Storage, address: u64) -> Result<Vec<Message>, Fault> {
    let start = storage.read_up_to(address, 32)?;
    let mut blocks = Blocks { visits: Visits::of(storage), waiting: Vec::new() };
    let layout = if start.starts_with(b"OHDR") {
        let mut fields = Fields::signed("object header", b"OHDR", &start)?;
        fields.version(&[2])?;
        let flags = fields.u8()?;
        let times = if flags & 0x20 == 0 { 0 } else { 16 };
        let limits = if flags & 0x10 == 0 { 0 } else { 4 };
        fields.skip(times + limits)?;
        let width = 1 << (flags & 3);
        let length = fields.number(width)?;
        blocks.add(address.saturating_add((6 + times + limits + width) as u64), length)?;
        MessageLayout::Two { ordered: flags & 4 != 0 }
    } else {
        let mut fields = Fields::new("object header", &start);
        fields.version(&[1])?;
        fields.skip(7)?;
        let length = u64::from(fields.u32()?);
        blocks.add(address.saturating_add(16), length)?;
        MessageLayout::One
    };
    let mut messages = Vec::new();
    while let Some((at, length)) = blocks.waiting.pop() {
        let bytes = storage.read(at, length)?;
        layout
            .split(&bytes, &mut messages, |at, length| layout.continued(storage, &mut blocks, at, length))?;
    }
    Ok(messages)
}

/// Parts of a header that are still to be read.
struct Blocks {
    visits: Visits,
    waiting: Vec<(u64, u64)>,
}

impl Blocks {
    fn add(&mut self, at: u64, length: u64) -> Result<(), Fault> {
        self.visits.visit(at, length)?;
        self.waiting.push((at, length));
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum MessageLayout {
    One,
    Two { ordered: bool },
}

impl MessageLayout {
    /// Adds the messages of one block; `continued` hears where others are.
    fn split(
        self,
        bytes: &[u8],
        messages: &mut Vec<Message>,
        mut continued: impl FnMut(u64, u64) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut fields = Fields::new("object header", bytes);
        let smallest = match self {
            Self::One => 8,
            Self::Two { ordered } => 4 + if ordered { 2 } else { 0 },
        };
        // What is left over is a gap.
        while fields.len() >= smallest {
            let (kind, length, flags);
            match self {
                Self::One => {
                    (kind, length, flags) = (fields.u16()?, fields.u16()?, fields.u8()?);
                    fields.skip(3)?;
                }
                Self::Two { ordered } => {
                    (kind, length, flags) = (u16::from(fields.u8()?), fields.u16()?, fields.u8()?);
                    fields.skip(if ordered { 2 } else { 0 })?;
                }
            }
            let data = fields.bytes(usize::from(length))?;
            if kind == kind::CONTINUATION {
                let mut place = Fields::new("continuation", data);
                continued(place.defined_address()?, place.u64()?)?;
                continue;
            }
            if flags & SHARED != 0
                && matches!(kind, kind::DATASPACE | kind::DATATYPE | kind::FILTERS | kind::ATTRIBUTE)
            {
                return Err(
                    "a description is shared between objects (a committed datatype), which is not read"
                        .into(),
                );
            }
            messages.push(Message { kind, data: data.to_vec() });
        }
        Ok(())
    }

    /// Notes a block that a header goes on in, without its signature and checksum.
    fn continued(
        self,
        storage: &mut Storage,
        blocks: &mut Blocks,
        at: u64,
        length: u64,
    ) -> Result<(), Fault> {
        match self {
            Self::One => blocks.add(at, length),
            Self::Two { .. } => {
                Fields::signed("continuation of an object header", b"OCHK", &storage.read(at, 4)?)?;
                blocks.add(at.saturating_add(4), length.saturating_sub(8))
            }
        }
    }
}
