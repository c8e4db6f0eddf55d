//! The names in a group and where they lead: symbol tables, links in the header, links in a heap.

use super::fields::Fields;
use super::fractal_heap::FractalHeap;
use super::header::kind;
use super::storage::{Storage, Visits};
use super::tree_v2::records;
use super::{Fault, Object, tree_v1};

/// Links that a group may have: more than genes or cells have columns.
const MOST_LINKS: usize = 1 << 18;

/// What a symbol is cached as where it is a soft link.
const SOFT: u32 = 2;

/// A name in a group.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: String,
    /// Where its object is; nothing for soft and external links.
    pub(super) address: Option<u64>,
}

/// All links of a group.
pub(super) fn all(storage: &mut Storage, group: &Object) -> Result<Vec<Link>, Fault> {
    if let Some(table) = group.message(kind::SYMBOL_TABLE) {
        return symbol_table(storage, table);
    }
    let mut links = group.all(kind::LINK).map(link).collect::<Result<Vec<_>, _>>()?;
    if let Some(info) = group.message(kind::LINK_INFO) {
        links.extend(dense(storage, info)?);
    }
    Ok(links)
}

/// A group of the older kind: a tree of nodes with symbols, and a heap with their names.
fn symbol_table(storage: &mut Storage, table: &[u8]) -> Result<Vec<Link>, Fault> {
    let mut fields = Fields::new("symbol table", table);
    let (tree, heap) = (fields.defined_address()?, fields.defined_address()?);
    let names = local_heap(storage, heap)?;
    let mut links = Vec::new();
    let mut visits = Visits::of(storage);
    for node in tree_v1::leaves(storage, tree, tree_v1::Key::Name)? {
        let head = storage.read(node.child, 8)?;
        let mut fields = Fields::signed("symbol node", b"SNOD", &head)?;
        fields.version(&[1])?;
        fields.skip(1)?;
        let length = u64::from(fields.u16()?) * 40;
        visits.visit(node.child, length)?;
        let entries = storage.read(node.child.saturating_add(8), length)?;
        for entry in entries.chunks_exact(40) {
            let mut fields = Fields::new("symbol", entry);
            let (name, address) = (fields.u64()?, fields.address()?);
            let address = address.filter(|_| fields.u32().is_ok_and(|cache| cache != SOFT));
            let name = usize::try_from(name).ok().and_then(|at| names.get(at..));
            let name = name.ok_or_else(|| Fault::from("the name of a symbol lies outside of its heap"))?;
            links.push(Link { name: text(Fields::new("heap of names", name).text(1)?), address });
        }
        refuse_too_many(links.len())?;
    }
    Ok(links)
}

/// The bytes of a heap of names.
fn local_heap(storage: &mut Storage, address: u64) -> Result<Vec<u8>, Fault> {
    let head = storage.read(address, 32)?;
    let mut fields = Fields::signed("heap of names", b"HEAP", &head)?;
    fields.version(&[0])?;
    fields.skip(3)?;
    let length = fields.u64()?;
    fields.skip(8)?;
    let place = fields.defined_address()?;
    storage.read(place, length)
}

/// One link as a message.
fn link(message: &[u8]) -> Result<Link, Fault> {
    let mut fields = Fields::new("link", message);
    fields.version(&[1])?;
    let flags = fields.u8()?;
    let hard = flags & 8 == 0 || fields.u8()? == 0;
    fields.skip(if flags & 4 == 0 { 0 } else { 8 })?;
    fields.skip(if flags & 16 == 0 { 0 } else { 1 })?;
    let length = fields.number(1 << (flags & 3))?;
    let length = usize::try_from(length).map_err(|_| Fault::from("a link has a name without an end"))?;
    let name = text(fields.bytes(length)?);
    let address = if hard { fields.address()? } else { None };
    Ok(Link { name, address })
}

/// Links in a heap, which a tree lists.
fn dense(storage: &mut Storage, info: &[u8]) -> Result<Vec<Link>, Fault> {
    let mut fields = Fields::new("list of links", info);
    fields.version(&[0])?;
    let flags = fields.u8()?;
    fields.skip(if flags & 1 == 0 { 0 } else { 8 })?;
    let (Some(heap), Some(tree)) = (fields.address()?, fields.address()?) else { return Ok(Vec::new()) };
    let heap = FractalHeap::open(storage, heap)?;
    let mut links = Vec::new();
    let mut left = storage.size();
    for record in records(storage, tree, 5)? {
        let mut fields = Fields::new("record of a link", &record);
        fields.skip(4)?;
        let object = heap.object(storage, fields.bytes(fields.len())?)?;
        left = left
            .checked_sub(object.len() as u64)
            .ok_or_else(|| Fault::from("its links overlap in their heap"))?;
        links.push(link(&object)?);
        refuse_too_many(links.len())?;
    }
    Ok(links)
}

fn refuse_too_many(n: usize) -> Result<(), Fault> {
    if n > MOST_LINKS { Err(format!("a group has more than {MOST_LINKS} names").into()) } else { Ok(()) }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
