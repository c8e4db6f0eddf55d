//! B-trees of version 2: links and attributes in heaps, and chunks of arrays that grow in several dimensions.

use super::Fault;
use super::fields::Fields;
use super::storage::{Storage, Visits};

/// Signature, version, type and checksum of a node.
const OVERHEAD: u64 = 10;
/// Levels of a tree; each holds at least twice as many as the one above.
const MOST_LEVELS: u16 = 64;

/// Sizes that follow from those in the head of a tree.
struct Shape {
    record: usize,
    node: u64,
    /// Bytes that count the records of one node.
    count: usize,
    /// For each level, from the bottom up, the bytes that count all records below; none at the bottom.
    total: Vec<usize>,
}

impl Shape {
    fn new(node: u64, record: usize, depth: u16) -> Result<Self, Fault> {
        let room = node.saturating_sub(OVERHEAD);
        let most = room.checked_div(record as u64).filter(|most| *most > 0);
        let most = most.ok_or_else(|| Fault::from("a tree has nodes without room for a record"))?;
        let count = bytes_for(most);
        let mut total = vec![0];
        let mut all_below = most;
        for level in 1..=usize::from(depth) {
            let pointer = 8 + count as u64 + total[level - 1] as u64;
            let most = room.saturating_sub(pointer) / (record as u64 + pointer);
            all_below = (most + 1).saturating_mul(all_below).saturating_add(most);
            total.push(bytes_for(all_below));
        }
        Ok(Self { record, node, count, total })
    }
}

/// Bytes that hold numbers up to `limit`.
fn bytes_for(limit: u64) -> usize {
    limit.max(1).ilog2() as usize / 8 + 1
}

/// All records of the tree at `address`, which must be of this type.
pub(super) fn records(storage: &mut Storage, address: u64, of_type: u8) -> Result<Vec<Vec<u8>>, Fault> {
    let head = storage.read(address, 38)?;
    let mut fields = Fields::signed("tree", b"BTHD", &head)?;
    fields.version(&[0])?;
    if fields.u8()? != of_type {
        return Err("a tree is of another kind than it should be".into());
    }
    let (node, record, depth) = (u64::from(fields.u32()?), usize::from(fields.u16()?), fields.u16()?);
    if depth >= MOST_LEVELS {
        return Err(format!("a tree has {depth} levels").into());
    }
    fields.skip(2)?;
    let (root, n) = (fields.address()?, u64::from(fields.u16()?));
    let shape = Shape::new(node, record, depth)?;
    let mut records = Vec::new();
    let mut visits = Visits::of(storage);
    let mut waiting: Vec<(u64, u64, u16)> = root.map(|root| (root, n, depth)).into_iter().collect();
    while let Some((address, n, level)) = waiting.pop() {
        visits.visit(address, shape.node)?;
        let bytes = storage.read(address, shape.node)?;
        let signature: &[u8] = if level == 0 { b"BTLF" } else { b"BTIN" };
        let mut fields = Fields::signed("node of a tree", signature, &bytes)?;
        fields.skip(2)?;
        for _ in 0..n {
            records.push(fields.bytes(shape.record)?.to_vec());
        }
        if level == 0 {
            continue;
        }
        for _ in 0..=n {
            let (child, n) = (fields.defined_address()?, fields.number(shape.count)?);
            fields.skip(shape.total[usize::from(level) - 1])?;
            waiting.push((child, n, level - 1));
        }
    }
    Ok(records)
}
