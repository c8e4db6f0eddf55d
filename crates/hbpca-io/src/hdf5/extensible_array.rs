//! The index of an array that grows: some entries at once, then blocks of entries, then blocks of such blocks, ever larger.

use super::Fault;
use super::fields::Fields;
use super::fixed_array::is_written;
use super::storage::{Storage, Visits};

/// Sizes in the head of an index.
struct Shape {
    entry: u64,
    /// Entries in the index block itself.
    in_index: u64,
    /// Entries of the smallest data block.
    smallest: u64,
    /// Addresses of data blocks in the index block.
    blocks_in_index: u64,
    /// Super blocks whose data blocks those are.
    first_super: u32,
    n_super: u32,
    per_page: u64,
    /// Bytes of the number of a block's first entry.
    offset: u64,
}

impl Shape {
    /// Data blocks of super block u.
    fn blocks(u: u32) -> u64 {
        1 << (u / 2)
    }

    /// Entries of each of them.
    fn entries(&self, u: u32) -> u64 {
        self.smallest << u.div_ceil(2)
    }

    fn parse(mut fields: Fields<'_>) -> Result<(Self, Option<u64>), Fault> {
        fields.version(&[0])?;
        fields.skip(1)?;
        let entry = u64::from(fields.u8()?);
        let bits = u32::from(fields.u8()?);
        let (in_index, smallest, pointers) =
            (u64::from(fields.u8()?), u64::from(fields.u8()?), u64::from(fields.u8()?));
        let page_bits = u32::from(fields.u8()?);
        let sensible = smallest.is_power_of_two()
            && pointers.is_power_of_two()
            && entry > 0
            && bits <= 48
            && page_bits < 32;
        if !sensible {
            return Err("an index of chunks has sizes that none has".into());
        }
        let (n_super, first_super) = (1 + bits.saturating_sub(smallest.ilog2()), 2 * pointers.ilog2());
        if first_super > n_super {
            return Err("an index of chunks has sizes that none has".into());
        }
        fields.skip(6 * 8)?;
        let shape = Self {
            entry,
            in_index,
            smallest,
            blocks_in_index: 2 * (pointers - 1),
            first_super,
            n_super,
            per_page: 1 << page_bits,
            offset: u64::from(bits.div_ceil(8)),
        };
        Ok((shape, fields.address()?))
    }
}

/// Hands on entries 0 to `n`, those that there are.
pub(super) fn entries(
    storage: &mut Storage,
    address: u64,
    n: u64,
    each: impl FnMut(u64, &[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let head = storage.read(address, 72)?;
    let (shape, index) = Shape::parse(Fields::signed("index of chunks", b"EAHD", &head)?)?;
    let Some(index) = index else { return Ok(()) };
    let mut walk = Walk { visits: Visits::of(storage), storage, shape, n, next: 0, each };
    walk.index_block(index)
}

struct Walk<'a, E> {
    storage: &'a mut Storage,
    visits: Visits,
    shape: Shape,
    n: u64,
    /// The entry that comes next.
    next: u64,
    each: E,
}

impl<E: FnMut(u64, &[u8]) -> Result<(), Fault>> Walk<'_, E> {
    fn index_block(&mut self, address: u64) -> Result<(), Fault> {
        let (entry, in_index) = (self.shape.entry, self.shape.in_index);
        let n_super = self.shape.n_super - self.shape.first_super;
        let length = 14 + in_index * entry + 8 * (self.shape.blocks_in_index + u64::from(n_super));
        self.visits.visit(address, length)?;
        let bytes = self.storage.read(address, length)?;
        let mut fields = Fields::signed("block of an index", b"EAIB", &bytes)?;
        fields.skip(10)?;
        self.hand_on(fields.bytes((in_index * entry) as usize)?)?;
        for u in 0..self.shape.first_super {
            for _ in 0..Shape::blocks(u) {
                let block = fields.address()?;
                self.data_block(block, u, None)?;
            }
        }
        for u in self.shape.first_super..self.shape.n_super {
            if self.next >= self.n {
                break;
            }
            match fields.address()? {
                Some(block) => self.super_block(block, u)?,
                None => {
                    self.next =
                        self.next.saturating_add(Shape::blocks(u).saturating_mul(self.shape.entries(u)))
                }
            }
        }
        Ok(())
    }

    fn super_block(&mut self, address: u64, u: u32) -> Result<(), Fault> {
        let blocks = Shape::blocks(u);
        let entries = self.shape.entries(u);
        // Which pages of its data blocks were written: bits of all blocks in a row, but room for each block in whole bytes.
        let pages = if entries > self.shape.per_page { entries / self.shape.per_page } else { 0 };
        let bits = pages.div_ceil(8);
        let length = 10 + 4 + self.shape.offset + blocks.saturating_mul(bits + 8);
        self.visits.visit(address, length)?;
        let bytes = self.storage.read(address, length)?;
        let mut fields = Fields::signed("block of an index", b"EASB", &bytes)?;
        fields.skip(10 + self.shape.offset as usize)?;
        let written = fields.bytes((blocks * bits) as usize)?;
        for i in 0..blocks {
            if self.next >= self.n {
                break;
            }
            let block = fields.address()?;
            self.data_block(block, u, (pages > 0).then_some((written, i * pages)))?;
        }
        Ok(())
    }

    fn data_block(
        &mut self,
        address: Option<u64>,
        u: u32,
        written: Option<(&[u8], u64)>,
    ) -> Result<(), Fault> {
        let entries = self.shape.entries(u);
        let Some(address) = address.filter(|_| self.next < self.n) else {
            self.next = self.next.saturating_add(entries);
            return Ok(());
        };
        Fields::signed("block of an index", b"EADB", &self.storage.read(address, 4)?)?;
        let start = address.saturating_add(14 + self.shape.offset);
        let Some((written, first_page)) = written else {
            let length = entries.saturating_mul(self.shape.entry);
            self.visits.visit(start, length)?;
            let bytes = self.storage.read(start, length)?;
            return self.hand_on(&bytes);
        };
        let length = self.shape.per_page.saturating_mul(self.shape.entry);
        let mut page_start = start.saturating_add(4);
        for page in 0..entries / self.shape.per_page {
            if self.next < self.n && is_written(written, first_page + page) {
                self.visits.visit(page_start, length)?;
                let bytes = self.storage.read(page_start, length)?;
                self.hand_on(&bytes)?;
            } else {
                self.next = self.next.saturating_add(self.shape.per_page);
            }
            page_start = page_start.saturating_add(length + 4);
        }
        Ok(())
    }

    /// Hands on entries that follow each other.
    fn hand_on(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        for entry in bytes.chunks_exact(self.shape.entry as usize) {
            if self.next < self.n {
                (self.each)(self.next, entry)?;
            }
            self.next = self.next.saturating_add(1);
        }
        Ok(())
    }
}
