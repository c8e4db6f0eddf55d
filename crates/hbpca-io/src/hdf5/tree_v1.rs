//! B-trees of version 1: names of groups, and chunks of arrays.

use super::Fault;
use super::fields::Fields;
use super::storage::{Storage, Visits};

/// Levels of a tree; each holds at least twice as many as the one above.
const MOST_LEVELS: u8 = 64;

/// What a tree is sorted by.
#[derive(Clone, Copy)]
pub(super) enum Key {
    /// Names.
    Name,
    /// Places of chunks of this many dimensions, that of the bytes of an element included.
    Chunk { dimensions: usize },
}

/// An entry at the bottom: the key before it, and where it leads.
pub(super) struct Leaf {
    pub(super) key: Vec<u8>,
    pub(super) child: u64,
}

impl Key {
    fn node_type(self) -> u8 {
        match self {
            Self::Name => 0,
            Self::Chunk { .. } => 1,
        }
    }

    fn length(self) -> usize {
        match self {
            Self::Name => 8,
            Self::Chunk { dimensions } => 8 + 8 * dimensions,
        }
    }
}

/// All entries at the bottom of the tree at `root`, from left to right.
pub(super) fn leaves(storage: &mut Storage, root: u64, key: Key) -> Result<Vec<Leaf>, Fault> {
    let mut visits = Visits::of(storage);
    let mut leaves = Vec::new();
    let mut waiting = vec![(root, None)];
    while let Some((address, level)) = waiting.pop() {
        let head = storage.read(address, 24)?;
        let mut fields = Fields::signed("node of a tree", b"TREE", &head)?;
        let (node_type, found_level, n) = (fields.u8()?, fields.u8()?, fields.u16()?);
        if node_type != key.node_type()
            || level.is_some_and(|level| level != found_level)
            || found_level >= MOST_LEVELS
        {
            return Err("a node of a tree is not where it should be".into());
        }
        let entry = key.length() + 8;
        let length = u64::from(n) * entry as u64;
        visits.visit(address, length)?;
        let bytes = storage.read(address.saturating_add(24), length)?;
        let mut below = Vec::new();
        for entry in bytes.chunks_exact(entry) {
            let mut fields = Fields::new("node of a tree", entry);
            let key = fields.bytes(key.length())?.to_vec();
            let child = fields.defined_address()?;
            match found_level {
                0 => leaves.push(Leaf { key, child }),
                level => below.push((child, Some(level - 1))),
            }
        }
        waiting.extend(below.into_iter().rev());
    }
    Ok(leaves)
}
