//! Where the chunks of an array are: five kinds of index.

use super::fields::Fields;
use super::storage::Storage;
use super::tree_v2::records;
use super::{Fault, extensible_array, fixed_array, tree_v1};

/// The chunks of an array, numbered row by row.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) shape: Vec<u64>,
    pub(super) most: Vec<Option<u64>>,
    /// The shape of a chunk.
    pub(super) chunk: Vec<u64>,
}

impl Grid {
    /// Chunks in dimension i.
    fn along(&self, i: usize) -> u64 {
        self.shape[i].div_ceil(self.chunk[i])
    }

    /// Chunks side by side.
    pub(super) fn across(&self) -> u64 {
        if self.chunk.len() == 2 { self.along(1) } else { 1 }
    }

    /// How many chunks there are.
    pub(super) fn all(&self) -> Option<u64> {
        self.along(0).checked_mul(self.across())
    }

    /// The same as [`Grid::across`] where the array is as large as it may become.
    fn most_across(&self) -> u64 {
        match self.most.get(1) {
            Some(Some(most)) => most.div_ceil(self.chunk[1]),
            _ => self.across(),
        }
    }

    /// The number of the chunk at these places in each dimension; nothing if it lies outside.
    fn number(&self, places: &[u64]) -> Option<u64> {
        let inside = places.len() == self.chunk.len() && (0..places.len()).all(|i| places[i] < self.along(i));
        match places {
            [i] if inside => Some(*i),
            [i, j] if inside => i.checked_mul(self.across())?.checked_add(*j),
            _ => None,
        }
    }

    /// The number of entry `at` of an index that counts chunks as if the array were as large as it may become.
    fn number_of_entry(&self, at: u64) -> Option<u64> {
        let across = self.most_across().max(1);
        if self.chunk.len() == 1 { self.number(&[at]) } else { self.number(&[at / across, at % across]) }
    }

    /// Entries of such an index that matter.
    fn entries(&self) -> u64 {
        let across = if self.chunk.len() == 2 { self.most_across() } else { 1 };
        self.along(0).saturating_mul(across)
    }
}

/// A chunk in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StoredChunk {
    pub(super) number: u64,
    pub(super) address: u64,
    pub(super) length: u64,
    /// Filters that were left out.
    pub(super) mask: u32,
}

/// How chunks are found.
pub(super) enum Index {
    /// A tree of version 1.
    Tree(Option<u64>),
    /// There is one; its length and mask where it is filtered.
    Single {
        place: Option<(u64, u32)>,
        address: Option<u64>,
    },
    /// One after the other.
    Implicit(Option<u64>),
    FixedArray(Option<u64>),
    ExtensibleArray(Option<u64>),
    /// A tree of version 2.
    NewTree(Option<u64>),
}

impl Index {
    /// The index of a layout of version 4.
    pub(super) fn parse(mut fields: Fields<'_>, flags: u8) -> Result<Self, Fault> {
        const FILTERED: u8 = 2;
        Ok(match fields.u8()? {
            1 => {
                let place = if flags & FILTERED == 0 { None } else { Some((fields.u64()?, fields.u32()?)) };
                Self::Single { place, address: fields.address()? }
            }
            2 => Self::Implicit(fields.address()?),
            3 => {
                fields.skip(1)?;
                Self::FixedArray(fields.address()?)
            }
            4 => {
                fields.skip(5)?;
                Self::ExtensibleArray(fields.address()?)
            }
            5 => {
                fields.skip(6)?;
                Self::NewTree(fields.address()?)
            }
            other => return Err(format!("an index of chunks of kind {other} is not read").into()),
        })
    }
}

/// One entry of an array of chunks: `entry` bytes with an address and, where chunks are filtered, a length and a mask.
pub(super) fn parse_entry(
    bytes: &[u8],
    filtered: bool,
    length: u64,
) -> Result<Option<(u64, u64, u32)>, Fault> {
    let mut fields = Fields::new("entry of a chunk", bytes);
    let address = fields.address()?;
    let (length, mask) = if filtered {
        let width =
            fields.len().checked_sub(4).ok_or_else(|| Fault::from("an entry of a chunk has no length"))?;
        (fields.number(width)?, fields.u32()?)
    } else {
        (length, 0)
    };
    Ok(address.map(|address| (address, length, mask)))
}

/// All chunks, by number. `length` is that of a chunk when it is unpacked.
pub(super) fn find_chunks(
    storage: &mut Storage,
    index: &Index,
    grid: &Grid,
    length: u64,
    filtered: bool,
) -> Result<Vec<StoredChunk>, Fault> {
    let mut found = Found { stored: Vec::new(), left: storage.size() };
    match index {
        Index::Tree(None)
        | Index::Implicit(None)
        | Index::FixedArray(None)
        | Index::ExtensibleArray(None)
        | Index::NewTree(None)
        | Index::Single { address: None, .. } => {}
        Index::Tree(Some(root)) => {
            let dimensions = grid.chunk.len() + 1;
            for leaf in tree_v1::leaves(storage, *root, tree_v1::Key::Chunk { dimensions })? {
                let mut fields = Fields::new("key of a chunk", &leaf.key);
                let (length, mask) = (u64::from(fields.u32()?), fields.u32()?);
                let offsets = (0..grid.chunk.len()).map(|_| fields.u64()).collect::<Result<Vec<_>, _>>()?;
                let places: Vec<u64> =
                    offsets.iter().zip(&grid.chunk).map(|(offset, chunk)| offset / chunk).collect();
                found.add(grid.number(&places), (leaf.child, length, mask))?;
            }
        }
        Index::Single { place, address: Some(address) } => {
            let (length, mask) = place.unwrap_or((length, 0));
            found.add(grid.number_of_entry(0), (*address, length, mask))?;
        }
        Index::Implicit(Some(address)) => {
            let fits = grid.entries().checked_mul(length).is_some_and(|all| all <= storage.size());
            if !fits {
                return Err("its chunks are larger than the file".into());
            }
            for at in 0..grid.entries() {
                found.add(grid.number_of_entry(at), (address.saturating_add(at * length), length, 0))?;
            }
        }
        Index::FixedArray(Some(address)) => {
            fixed_array::entries(storage, *address, grid.entries(), |at, entry| {
                found.add_entry(grid.number_of_entry(at), parse_entry(entry, filtered, length)?)
            })?;
        }
        Index::ExtensibleArray(Some(address)) => {
            if grid.most.first().is_some_and(Option::is_some) {
                return Err("an array that grows in its second dimension alone is not read".into());
            }
            extensible_array::entries(storage, *address, grid.entries(), |at, entry| {
                found.add_entry(grid.number_of_entry(at), parse_entry(entry, filtered, length)?)
            })?;
        }
        Index::NewTree(Some(root)) => {
            for record in records(storage, *root, if filtered { 11 } else { 10 })? {
                let offsets = record.len().checked_sub(8 * grid.chunk.len());
                let offsets = offsets.ok_or_else(|| Fault::from("a record of a chunk is too short"))?;
                let (entry, offsets) = record.split_at(offsets);
                let mut fields = Fields::new("record of a chunk", offsets);
                let places = (0..grid.chunk.len()).map(|_| fields.u64()).collect::<Result<Vec<_>, _>>()?;
                found.add_entry(grid.number(&places), parse_entry(entry, filtered, length)?)?;
            }
        }
    }
    found.sorted()
}

/// Chunks that were found. Each lies in the file once, so that together they are no larger than it.
struct Found {
    stored: Vec<StoredChunk>,
    left: u64,
}

impl Found {
    fn add_entry(&mut self, number: Option<u64>, entry: Option<(u64, u64, u32)>) -> Result<(), Fault> {
        entry.map_or(Ok(()), |entry| self.add(number, entry))
    }

    /// Adds a chunk; one outside of the array is passed over.
    fn add(&mut self, number: Option<u64>, (address, length, mask): (u64, u64, u32)) -> Result<(), Fault> {
        let Some(number) = number else { return Ok(()) };
        let left = self.left.checked_sub(length);
        self.left = left.ok_or_else(|| Fault::from("its chunks together are larger than the file"))?;
        self.stored.push(StoredChunk { number, address, length, mask });
        Ok(())
    }

    fn sorted(mut self) -> Result<Vec<StoredChunk>, Fault> {
        self.stored.sort_unstable_by_key(|chunk| chunk.number);
        if self.stored.windows(2).any(|pair| pair[0].number == pair[1].number) {
            return Err("a chunk is stored twice".into());
        }
        Ok(self.stored)
    }
}
