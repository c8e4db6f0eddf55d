//! The arrays in a zip archive, each checked against the bytes that are there.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek};

use zip::ZipArchive;

use crate::ReadError;
use crate::binary::read_claimed;
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
        let bytes = read_claimed(&mut entry, size as usize, &place)?;
        Ok(Array { header, bytes })
    }

    /// The whole numbers of an array of one dimension.
    pub(super) fn indices(&mut self, array: &str) -> Result<Vec<u64>, ReadError> {
        let found = self.array(array)?;
        let element = self.element(array, &found)?;
        element.decode_indices(&found.bytes, Some).ok_or_else(|| {
            ReadError::malformed(&self.name, format!("`{array}` holds something else than numbers from 0 on"))
        })
    }

    /// Row or column numbers, each below `bound`.
    pub(super) fn places(&mut self, array: &str, bound: usize) -> Result<Vec<u32>, ReadError> {
        let found = self.array(array)?;
        let element = self.element(array, &found)?;
        let keep = |x: u64| u32::try_from(x).ok().filter(|&x| (x as usize) < bound);
        element.decode_indices(&found.bytes, keep).ok_or_else(|| {
            let text = format!("`{array}` holds something else than numbers from 0 to below {bound}");
            ReadError::malformed(&self.name, text)
        })
    }

    pub(super) fn values(&mut self, array: &str) -> Result<Values, ReadError> {
        let found = self.array(array)?;
        Ok(self.element(array, &found)?.decode(&found.bytes))
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
