//! The headers of a column's pages, looked at before the decoder believes them.
//!
//! The decoder takes as much memory as a page or a dictionary claims to need before it looks at what is there, so
//! that a few bytes could ask for gigabytes. A page header is a struct in Thrift's compact protocol: its second
//! and third fields are the sizes of the page, unpacked and packed, its seventh begins with the number of values
//! of a dictionary.

use std::io::Read;

use ::parquet::basic::Compression;
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::file::reader::ChunkReader;

use super::file::SharedBytes;

/// Refuses pages that claim more bytes or values than can be in them.
pub(super) fn check(bytes: &SharedBytes, chunk: &ColumnChunkMetaData) -> Result<(), String> {
    let compression = chunk.compression();
    let (mut at, length) = chunk.byte_range();
    let end = at.saturating_add(length);
    while at < end {
        let reader = bytes.get_read(at).map_err(|error| error.to_string())?;
        let Some(page) = Page::read(reader) else { return Err("a page header is damaged".into()) };
        if page.unpacked > page.most_bytes(compression) {
            return Err(format!(
                "a page of {} bytes claims to unpack to {}, which {compression} never does",
                page.packed, page.unpacked
            ));
        }
        if page.n_entries > page.most_entries() {
            return Err(format!("a dictionary of {} bytes claims {} values", page.packed, page.n_entries));
        }
        at = at.saturating_add(page.header).saturating_add(page.packed);
    }
    Ok(())
}

/// What a page says about its size.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    unpacked: u64,
    packed: u64,
    /// Values of a dictionary.
    n_entries: u64,
    /// Bytes of the header itself.
    header: u64,
}

impl Page {
    /// What the compression can make of the bytes: Snappy copies at most 64 bytes for 3 read, LZ4 at most 255 and
    /// deflate at most 1032 for 1; the others know no bound but are not met beyond this one.
    fn most_bytes(&self, compression: Compression) -> u64 {
        let for_one = match compression {
            Compression::UNCOMPRESSED => 1,
            Compression::SNAPPY => 22,
            Compression::LZ4 | Compression::LZ4_RAW => 256,
            Compression::GZIP(_) => 1032,
            _ => 1 << 16,
        };
        self.packed.saturating_add(16).saturating_mul(for_one)
    }

    /// Values of a dictionary take at least four bytes each, and being different they do not pack well.
    fn most_entries(&self) -> u64 {
        (self.unpacked / 4).min(self.packed.saturating_add(16).saturating_mul(1024))
    }

    /// `None` if there is no header.
    fn read(reader: impl Read) -> Option<Self> {
        let mut thrift = Compact { reader, read: 0 };
        let (mut unpacked, mut packed, mut n_entries) = (None, None, 0);
        let mut field = thrift.field(0)?;
        while field.1 != STOP {
            match field.0 {
                2 => unpacked = u64::try_from(thrift.integer(field.1)?).ok(),
                3 => packed = u64::try_from(thrift.integer(field.1)?).ok(),
                7 => {
                    let first = thrift.field(0)?;
                    n_entries = u64::try_from(thrift.integer(first.1)?).ok()?;
                    thrift.skip_struct(first.0, 0)?;
                }
                _ => thrift.skip(field.1, 0)?,
            }
            field = thrift.field(field.0)?;
        }
        Some(Self { unpacked: unpacked?, packed: packed?, n_entries, header: thrift.read })
    }
}

/// The type that ends a struct.
const STOP: u8 = 0;

/// Thrift's compact protocol, as far as page headers need it.
struct Compact<R> {
    reader: R,
    read: u64,
}

impl<R: Read> Compact<R> {
    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        self.reader.read_exact(&mut byte).ok()?;
        self.read += 1;
        Some(byte[0])
    }

    /// Seven bits a byte, the lowest first; the high bit says that more follow.
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// An integer of any width: 0, −1, 1, −2, … are written as 0, 1, 2, 3, …
    fn integer(&mut self, kind: u8) -> Option<i64> {
        let written = matches!(kind, 4..=6).then(|| self.varint())??;
        Some((written >> 1).cast_signed() ^ -(written & 1).cast_signed())
    }

    /// Number and type of the next field of a struct; of type [`STOP`] at its end.
    fn field(&mut self, previous: i64) -> Option<(i64, u8)> {
        let byte = self.byte()?;
        let (step, kind) = (i64::from(byte >> 4), byte & 0x0F);
        let id = if step == 0 && kind != STOP { self.integer(4)? } else { previous.checked_add(step)? };
        Some((id, kind))
    }

    /// Passes over a value.
    fn skip(&mut self, kind: u8, depth: u8) -> Option<()> {
        const DEEPEST: u8 = 16;
        if depth > DEEPEST {
            return None;
        }
        match kind {
            1 | 2 => {}
            3 => self.skip_bytes(1)?,
            4..=6 => {
                self.varint()?;
            }
            7 => self.skip_bytes(8)?,
            8 => {
                let length = self.varint()?;
                self.skip_bytes(length)?;
            }
            9 | 10 => {
                let byte = self.byte()?;
                let length = if byte >> 4 == 15 { self.varint()? } else { u64::from(byte >> 4) };
                for _ in 0..length {
                    // Flags in a list take a byte each.
                    match byte & 0x0F {
                        1 | 2 => self.skip_bytes(1)?,
                        other => self.skip(other, depth + 1)?,
                    }
                }
            }
            12 => self.skip_struct(0, depth)?,
            _ => return None,
        }
        Some(())
    }

    /// Passes over the rest of a struct, after its field number `previous`.
    fn skip_struct(&mut self, previous: i64, depth: u8) -> Option<()> {
        let mut field = self.field(previous)?;
        while field.1 != STOP {
            self.skip(field.1, depth + 1)?;
            field = self.field(field.0)?;
        }
        Some(())
    }

    fn skip_bytes(&mut self, n: u64) -> Option<()> {
        let skipped = std::io::copy(&mut (&mut self.reader).take(n), &mut std::io::sink()).ok()?;
        self.read += skipped;
        (skipped == n).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type 0, 300 bytes unpacked, 20 packed, then a struct of a number, a text and a list of two flags.
    const HEADER: [u8; 17] =
        [0x15, 0, 0x15, 0xD8, 0x04, 0x15, 0x28, 0x2C, 0x15, 6, 0x18, 2, b'a', b'b', 0x19, 0x21, 1];

    #[test]
    fn sizes_are_found_and_the_rest_is_passed_over() {
        let bytes = [&HEADER[..], &[2, 0, 0, 0xFF]].concat();
        assert_eq!(
            Page::read(&bytes[..]),
            Some(Page { unpacked: 300, packed: 20, n_entries: 0, header: 20 })
        );
        for cut in 0..20 {
            assert_eq!(Page::read(&bytes[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn a_dictionary_says_how_many_values_it_has() {
        // 80 bytes unpacked, 20 packed; 1000 values, encoded plainly, not sorted.
        let bytes = [0x15, 4, 0x15, 0xA0, 0x01, 0x15, 0x28, 0x4C, 0x15, 0xD0, 0x0F, 0x15, 0, 0x12, 0, 0];
        let page = Page::read(&bytes[..]).unwrap();
        assert_eq!(page, Page { unpacked: 80, packed: 20, n_entries: 1000, header: 16 });
        assert_eq!(page.most_entries(), 20);
        assert_eq!(page.most_bytes(Compression::SNAPPY), 792);
        assert_eq!(page.most_bytes(Compression::UNCOMPRESSED), 36);
    }

    #[test]
    fn nonsense_ends() {
        assert_eq!(Page::read(&[0][..]), None); // no sizes
        assert_eq!(Page::read(&[0x1C; 1000][..]), None); // structs without end
        assert_eq!(
            Page::read(&[0x16, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF][..]),
            None
        );
    }
}
