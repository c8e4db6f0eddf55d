//! The part of HDF5 that `.h5ad` files use, read only and without a C library.
//!
//! What h5py writes with either end of its `libver` is read: superblocks 0 to 3, groups of symbol tables and of links, object headers 1 and 2, compact, contiguous
//! and chunked arrays with every kind of chunk index, deflate, shuffle, LZF and Fletcher-32. Anything else is refused by name.
//!
//! A file is not believed. Every length is checked against the bytes that are there, no node of a tree is visited twice, nesting is bounded, and memory is
//! taken for bytes that were unpacked, not for bytes that are claimed.

mod array;
mod attribute;
mod chunk_index;
mod datatype;
mod extensible_array;
mod fields;
mod filters;
mod fixed_array;
mod fractal_heap;
mod global_heap;
mod header;
mod links;
mod storage;
mod tree_v1;
mod tree_v2;

pub(crate) use array::Array;
pub(crate) use attribute::Value;
pub(crate) use datatype::{Datatype, Member};
pub(crate) use header::SIGNATURE;
pub(crate) use storage::Storage;

use crate::ReadError;
use header::{Message, kind};

/// What is wrong with a file, before its name is known.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The file could not be read.
    Read(ReadError),
    /// It is not what it must be.
    Format(String),
}

impl Fault {
    /// The fault of the file of this name.
    pub(crate) fn of(self, name: &str) -> ReadError {
        match self {
            Self::Read(error) => error,
            Self::Format(text) => ReadError::malformed(name, text),
        }
    }

    /// The same, with the place where it was found.
    pub(crate) fn at(self, place: &str) -> Self {
        match self {
            Self::Format(text) => Self::Format(format!("`{place}`: {text}")),
            read @ Self::Read(_) => read,
        }
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<String> for Fault {
    fn from(text: String) -> Self {
        Self::Format(text)
    }
}

impl From<&str> for Fault {
    fn from(text: &str) -> Self {
        Self::Format(text.to_owned())
    }
}

/// A file of groups and arrays.
#[derive(Debug)]
pub(crate) struct File {
    storage: Storage,
    root: u64,
}

/// A group or an array: its header.
#[derive(Debug)]
pub(crate) struct Object {
    messages: Vec<Message>,
}

impl File {
    pub(crate) fn open(mut storage: Storage) -> Result<Self, Fault> {
        let root = header::root(&mut storage)?;
        Ok(Self { storage, root })
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The root group.
    pub(crate) fn root(&mut self) -> Result<Object, Fault> {
        self.object(self.root)
    }

    fn object(&mut self, address: u64) -> Result<Object, Fault> {
        Ok(Object { messages: header::messages(&mut self.storage, address)? })
    }

    /// The names in a group, in the order of the file.
    pub(crate) fn names(&mut self, group: &Object) -> Result<Vec<String>, Fault> {
        Ok(links::all(&mut self.storage, group)?.into_iter().map(|link| link.name).collect())
    }

    /// The object of this name in a group.
    pub(crate) fn find(&mut self, group: &Object, name: &str) -> Result<Option<Object>, Fault> {
        let links = links::all(&mut self.storage, group)?;
        let Some(link) = links.into_iter().find(|link| link.name == name) else { return Ok(None) };
        let address = link
            .address
            .ok_or_else(|| Fault::from(format!("`{name}` is a link to elsewhere, which is not followed")))?;
        self.object(address).map(Some)
    }

    /// The attribute of this name.
    pub(crate) fn attribute(&mut self, object: &Object, name: &str) -> Result<Option<Value>, Fault> {
        attribute::find(&mut self.storage, object, name)
    }

    /// The array that an object is.
    pub(crate) fn array(&mut self, object: &Object) -> Result<Array, Fault> {
        Array::open(&mut self.storage, object)
    }

    /// The bytes of rows `rows` of an array: its first dimension.
    pub(crate) fn rows(&mut self, array: &Array, rows: std::ops::Range<u64>) -> Result<Vec<u8>, Fault> {
        array.rows(&mut self.storage, rows)
    }

    /// The texts in `bytes`, elements of a type of texts.
    pub(crate) fn texts(&mut self, datatype: &Datatype, bytes: &[u8]) -> Result<Vec<String>, Fault> {
        global_heap::texts(&mut self.storage, datatype, bytes)
    }
}

impl Object {
    /// Whether it is an array.
    pub(crate) fn is_array(&self) -> bool {
        self.message(kind::LAYOUT).is_some()
    }

    fn message(&self, kind: u16) -> Option<&[u8]> {
        self.messages.iter().find(|message| message.kind == kind).map(|message| &message.data[..])
    }

    fn all(&self, kind: u16) -> impl Iterator<Item = &[u8]> {
        self.messages.iter().filter(move |message| message.kind == kind).map(|message| &message.data[..])
    }
}
