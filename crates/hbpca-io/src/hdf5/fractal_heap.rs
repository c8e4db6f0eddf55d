//! Heaps of links and attributes that are too many for a header.

use super::Fault;
use super::fields::Fields;
use super::storage::Storage;

/// Blocks within blocks; each level is many times as large as the one within.
const MOST_LEVELS: usize = 16;

/// The head of a heap: a table of blocks whose sizes double from the second row on.
pub(super) struct FractalHeap {
    offset_bytes: usize,
    length_bytes: usize,
    width: u64,
    first_size: u64,
    largest_direct: u64,
    root: u64,
    rows: u16,
}

impl FractalHeap {
    pub(super) fn open(storage: &mut Storage, address: u64) -> Result<Self, Fault> {
        let head = storage.read(address, 146)?;
        let mut fields = Fields::signed("heap", b"FRHP", &head)?;
        fields.version(&[0])?;
        fields.skip(2)?;
        if fields.u16()? != 0 {
            return Err("a heap of names is compressed, which is not read".into());
        }
        fields.skip(1)?;
        let largest_object = u64::from(fields.u32()?);
        fields.skip(12 * 8)?;
        let (width, first_size, largest_direct) = (u64::from(fields.u16()?), fields.u64()?, fields.u64()?);
        let bits = usize::from(fields.u16()?);
        fields.skip(2)?;
        let (root, rows) = (fields.defined_address()?, fields.u16()?);
        let sizes = [width, first_size, largest_direct];
        if !sizes.iter().all(|size| size.is_power_of_two()) || largest_direct < first_size || bits > 64 {
            return Err("the table of a heap has sizes that none has".into());
        }
        let offset_bytes = bits.div_ceil(8);
        let of_block = (largest_direct.ilog2() as usize).div_ceil(8);
        let of_object = largest_object.max(1).ilog2() as usize / 8 + 1;
        Ok(Self {
            offset_bytes,
            length_bytes: of_block.min(of_object),
            width,
            first_size,
            largest_direct,
            root,
            rows,
        })
    }

    /// The object of this name in the heap.
    pub(super) fn object(&self, storage: &mut Storage, id: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut fields = Fields::new("place in a heap", id);
        let kind = fields.u8()?;
        if kind & 0xF0 != 0 {
            return Err("a heap holds an object outside of its blocks, which is not read".into());
        }
        let (offset, length) = (fields.number(self.offset_bytes)?, fields.number(self.length_bytes)?);
        let (block, within, size) = self.direct_block(storage, offset)?;
        if within.saturating_add(length) > size {
            return Err("an object lies outside of the block of its heap".into());
        }
        storage.read(block.saturating_add(within), length)
    }

    /// The block that holds `offset`: its address, the place within, and its size.
    fn direct_block(&self, storage: &mut Storage, mut offset: u64) -> Result<(u64, u64, u64), Fault> {
        if self.rows == 0 {
            return Ok((self.root, offset, self.first_size));
        }
        let (mut block, mut n_rows) = (self.root, u64::from(self.rows));
        for _ in 0..MOST_LEVELS {
            let outside = || Fault::from("an object lies outside of its heap");
            let (row, before, size) = self.row(offset).ok_or_else(outside)?;
            if row >= n_rows {
                return Err(outside());
            }
            let column = (offset - before) / size;
            let entry = row * self.width + column;
            let head = 4 + 1 + 8 + self.offset_bytes as u64;
            Fields::signed("block of a heap", b"FHIB", &storage.read(block, 4)?)?;
            let place = block.saturating_add(head).saturating_add(entry.saturating_mul(8));
            let child = Fields::new("block of a heap", &storage.read(place, 8)?).defined_address()?;
            offset -= before + column * size;
            if size <= self.largest_direct {
                return Ok((child, offset, size));
            }
            // Rows of a block within: as many as make its size.
            let first_row = self.first_size.saturating_mul(self.width);
            n_rows = u64::from(size.ilog2().saturating_sub(first_row.ilog2())) + 1;
            block = child;
        }
        Err("a heap has too many blocks within blocks".into())
    }

    /// The row of the table that holds `offset`, where it starts, and the size of its blocks.
    fn row(&self, offset: u64) -> Option<(u64, u64, u64)> {
        let first_row = self.width.checked_mul(self.first_size)?;
        if offset < first_row {
            return Some((0, 0, self.first_size));
        }
        // Row r ≥ 1 starts at first_row·2ʳ⁻¹ and has blocks of first_size·2ʳ⁻¹.
        let doublings = (offset / first_row).ilog2();
        let start = first_row.checked_shl(doublings)?;
        Some((u64::from(doublings) + 1, start, self.first_size.checked_shl(doublings)?))
    }
}
