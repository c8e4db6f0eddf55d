//! The index of an array whose size does not change: one entry after the other, in pages where they are many.

use super::Fault;
use super::fields::Fields;
use super::storage::{Storage, Visits};

/// Hands on entries 0 to `n`, those that there are.
pub(super) fn entries(
    storage: &mut Storage,
    address: u64,
    n: u64,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let head = storage.read(address, 28)?;
    let mut fields = Fields::signed("index of chunks", b"FAHD", &head)?;
    fields.version(&[0])?;
    fields.skip(1)?;
    let (size, page_bits, all) = (u64::from(fields.u8()?), u32::from(fields.u8()?), fields.u64()?);
    let Some(block) = fields.address()? else { return Ok(()) };
    if size == 0 || page_bits >= 32 {
        return Err("an index of chunks has entries without size".into());
    }
    Fields::signed("block of an index", b"FADB", &storage.read(block, 4)?)?;
    let n = n.min(all);
    let per_page = 1_u64 << page_bits;
    let start = block.saturating_add(14);
    if all <= per_page {
        let bytes = storage.read(start, n * size)?;
        return bytes.chunks_exact(size as usize).zip(0..).try_for_each(|(entry, at)| each(at, entry));
    }
    let n_pages = all.div_ceil(per_page);
    let written = storage.read(start, n_pages.div_ceil(8))?;
    let mut visits = Visits::of(storage);
    let mut page_start = start.saturating_add(written.len() as u64 + 4);
    for page in 0..n.div_ceil(per_page) {
        let first = page * per_page;
        let count = per_page.min(all - first);
        if is_written(&written, page) {
            visits.visit(page_start, count * size)?;
            let bytes = storage.read(page_start, count * size)?;
            bytes.chunks_exact(size as usize).zip(first..n).try_for_each(|(entry, at)| each(at, entry))?;
        }
        page_start = page_start.saturating_add(count * size + 4);
    }
    Ok(())
}

/// Whether the bit of a page is set; the first is the highest of the first byte.
pub(super) fn is_written(bits: &[u8], page: u64) -> bool {
    bits.get((page / 8) as usize).is_some_and(|byte| byte >> (7 - page % 8) & 1 != 0)
}
