//! The fields of a structure, one after the other, each checked against the bytes that are there.

use super::Fault;

/// Stands for no address.
const UNDEFINED: u64 = u64::MAX;

/// What is left of a structure.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    /// What messages call the structure.
    what: &'static str,
}

impl<'a> Fields<'a> {
    pub(super) fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self { rest: bytes, what }
    }

    /// The same with a signature taken off, which must be this one.
    pub(super) fn signed(what: &'static str, signature: &[u8], bytes: &'a [u8]) -> Result<Self, Fault> {
        match bytes.strip_prefix(signature) {
            Some(rest) => Ok(Self { rest, what }),
            None => Err(format!("the {what} is not where it should be").into()),
        }
    }

    pub(super) fn bytes(&mut self, n: usize) -> Result<&'a [u8], Fault> {
        match self.rest.split_at_checked(n) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(format!("a {} ends too early", self.what).into()),
        }
    }

    pub(super) fn skip(&mut self, n: usize) -> Result<(), Fault> {
        self.bytes(n).map(drop)
    }

    /// A whole number of `n` bytes, at most 8.
    pub(super) fn number(&mut self, n: usize) -> Result<u64, Fault> {
        if n > 8 {
            return Err(format!("a {} has a number of {n} bytes", self.what).into());
        }
        Ok(self.bytes(n)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub(super) fn u8(&mut self) -> Result<u8, Fault> {
        self.number(1).map(|x| x as u8)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Fault> {
        self.number(2).map(|x| x as u16)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        self.number(4).map(|x| x as u32)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Fault> {
        self.number(8)
    }

    /// An address; nothing where it is not defined.
    pub(super) fn address(&mut self) -> Result<Option<u64>, Fault> {
        Ok(Some(self.u64()?).filter(|address| *address != UNDEFINED))
    }

    /// An address that must be there.
    pub(super) fn defined_address(&mut self) -> Result<u64, Fault> {
        let what = self.what;
        self.address()?.ok_or_else(|| format!("a {what} has an address that is not defined").into())
    }

    /// Refuses a version that is not among `known`.
    pub(super) fn version(&mut self, known: &[u8]) -> Result<u8, Fault> {
        let version = self.u8()?;
        if known.contains(&version) {
            Ok(version)
        } else {
            Err(format!("a {} of version {version} is not read", self.what).into())
        }
    }

    /// A text that a zero byte ends; with the zero it takes a multiple of `unit` bytes.
    pub(super) fn text(&mut self, unit: usize) -> Result<&'a [u8], Fault> {
        let what = self.what;
        let end = self.rest.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| Fault::from(format!("a {what} has a name without an end")))?;
        let taken = self.bytes((end + 1).next_multiple_of(unit))?;
        Ok(&taken[..end])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }
}
