//! The arrays in a zip archive, each checked against the bytes that are there.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek};

use zip::ZipArchive;

use crate::ReadError;
use crate::block::Values;
use crate::element::Element;
use crate::input::Opened;
use crate::npy::{self, Header};

trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

/// The archive and the bytes it was made of.
pub(super) struct Archive {
    pub(super) name: String,
    zip: ZipArchive<Box<dyn ReadSeek>>,
    pub(super) size: u64,
}

/// An array of an archive.
pub(super) struct Array {
    pub(super) header: Header,
    pub(super) bytes: Vec<u8>,
}

impl Archive {
    pub(super) fn open(mut opened: Opened) -> Result<Self, ReadError> {
        let name = opened.name.clone();
        let bytes: Box<dyn ReadSeek> = match &opened.plain {
            Some(path) => {
                Box::new(BufReader::new(File::open(path).map_err(|source| ReadError::io(&name, source))?))
            }
            None => Box::new(Cursor::new(opened.read_all()?)),
        };
        let mut bytes = bytes;
        let size = bytes.seek(io::SeekFrom::End(0)).map_err(|source| ReadError::io(&name, source))?;
        let zip = ZipArchive::new(bytes).map_err(|error| unzip_error(&name, error))?;
        Ok(Self { name, zip, size })
    }

    /// The names of all arrays.
    pub(super) fn names(&self) -> Vec<String> {
        self.zip.file_names().filter_map(|name| name.strip_suffix(".npy")).map(str::to_owned).collect()
    }

    pub(super) fn has(&self, array: &str) -> bool {
        self.zip.index_for_name(&format!("{array}.npy")).is_some()
    }

    pub(super) fn array(&mut self, array: &str) -> Result<Array, ReadError> {
        let mut bytes = Vec::new();
        let header = self.blocks(array, |_, block| {
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        Ok(Array { header, bytes })
    }

    /// Hands on the bytes of an array some at a time, always whole numbers: neither the claim of a header nor a second copy of
    /// the array takes memory.
    fn blocks(
        &mut self,
        array: &str,
        mut each: impl FnMut(&Header, &[u8]) -> Result<(), ReadError>,
    ) -> Result<Header, ReadError> {
        const BLOCK: usize = 64 << 10;
        let place = format!("{}({array})", self.name);
        let mut entry = self.zip.by_name(&format!("{array}.npy")).map_err(|error| match error {
            zip::result::ZipError::FileNotFound => {
                ReadError::malformed(&self.name, format!("the archive holds no array `{array}`"))
            }
            other => unzip_error(&place, other),
        })?;
        let header = npy::read_header(&place, &mut entry)?;
        let size = match header.element() {
            Ok(element) => header.data_bytes(element),
            // Texts (`format`) have no numbers in them but a length in bytes or characters.
            Err(_) => text_bytes(&header.descr).map_err(|text| ReadError::malformed(&place, text))?,
        };
        let room = entry.size().saturating_sub(header.data_start);
        if size > u128::from(room) {
            let text = format!("shape {:?} needs {size} bytes, but there are only {room}", header.shape);
            return Err(ReadError::malformed(&place, text));
        }
        let mut left = size as usize;
        let mut block = vec![0; BLOCK.min(left)];
        while left > 0 {
            let part = &mut block[..BLOCK.min(left)];
            entry.read_exact(part).map_err(|source| ReadError::io(&place, source))?;
            each(&header, part)?;
            left -= part.len();
        }
        Ok(header)
    }

    /// The numbers of an array through `keep`; `what` says what they must be.
    fn numbers<T>(
        &mut self,
        array: &str,
        keep: impl Fn(u64) -> Option<T>,
        what: &str,
    ) -> Result<Vec<T>, ReadError> {
        let (name, most) = (self.name.clone(), self.most_numbers());
        let malformed = |text: String| ReadError::malformed(&name, text);
        let mut all = Vec::new();
        self.blocks(array, |header, block| {
            let element = header.element().map_err(|text| malformed(format!("`{array}`: {text}")))?;
            all.reserve_exact(header.n_numbers().min(most).saturating_sub(all.len()));
            let some = element.decode_indices(block, &keep);
            all.extend(some.ok_or_else(|| malformed(format!("`{array}` holds something else than {what}")))?);
            Ok(())
        })?;
        Ok(all)
    }

    /// Room is made at once for so many numbers, as many as real archives unpack to; beyond that it grows with what is there.
    fn most_numbers(&self) -> usize {
        usize::try_from(self.size.saturating_mul(4)).unwrap_or(usize::MAX)
    }

    /// The whole numbers of an array of one dimension.
    pub(super) fn indices(&mut self, array: &str) -> Result<Vec<u64>, ReadError> {
        self.numbers(array, Some, "numbers from 0 on")
    }

    /// Row or column numbers, each below `bound`.
    pub(super) fn places(&mut self, array: &str, bound: usize) -> Result<Vec<u32>, ReadError> {
        let keep = |x: u64| u32::try_from(x).ok().filter(|&x| (x as usize) < bound);
        self.numbers(array, keep, &format!("numbers from 0 to below {bound}"))
    }

    pub(super) fn values(&mut self, array: &str) -> Result<Values, ReadError> {
        let (name, most) = (self.name.clone(), self.most_numbers());
        let mut all: Option<Values> = None;
        let header = self.blocks(array, |header, block| {
            let element = header.element();
            let element =
                element.map_err(|text| ReadError::malformed(&name, format!("`{array}`: {text}")))?;
            let some = element.decode(block);
            let room = header.n_numbers().min(most);
            all.get_or_insert_with(|| some.empty_like(room)).append(some);
            Ok(())
        })?;
        match all {
            Some(values) => Ok(values),
            // No numbers, but of some type.
            None => Ok(self.element(array, &Array { header, bytes: Vec::new() })?.decode(&[])),
        }
    }

    pub(super) fn element(&self, array: &str, found: &Array) -> Result<Element, ReadError> {
        found.header.element().map_err(|text| ReadError::malformed(&self.name, format!("`{array}`: {text}")))
    }
}

fn unzip_error(name: &str, error: zip::result::ZipError) -> ReadError {
    match error {
        zip::result::ZipError::Io(source) => ReadError::io(name, source),
        other => ReadError::malformed(name, format!("not a zip archive that can be read: {other}")),
    }
}

/// Bytes of a text of NumPy's type `S3` or `U3`.
fn text_bytes(descr: &str) -> Result<u128, String> {
    let kind = descr.trim_start_matches(['<', '>', '|', '=']);
    let unit = match kind.bytes().next() {
        Some(b'S') => 1,
        Some(b'U') => 4,
        _ => return Err(format!("entries of type `{descr}` are not read")),
    };
    let length: u128 = kind[1..].parse().map_err(|_| format!("entries of type `{descr}` are not read"))?;
    if length > 64 {
        Err(format!("a text of {length} characters is no name of a format"))
    } else {
        Ok(length * unit)
    }
}
