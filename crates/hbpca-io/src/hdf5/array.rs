//! Arrays of one or two dimensions, read by rows: ranges of their first dimension.

use std::ops::Range;

use rayon::prelude::*;

use super::chunk_index::{Grid, Index, StoredChunk, find_chunks};
use super::fields::Fields;
use super::filters::{self, Filter};
use super::header::kind;
use super::storage::Storage;
use super::{Datatype, Fault, Object};

/// Chunks that are unpacked together, at least.
const CHUNKS_AT_ONCE: u64 = 32;
/// The bytes of a chunk, as the format limits them.
const MOST_OF_A_CHUNK: u64 = u32::MAX as u64;

/// Bytes that a packed byte can become, and some more.
const MOST_GROWTH: u64 = 1100;
const SLACK: u64 = 1 << 16;

/// The class of a dataspace without elements.
const NULL: u8 = 2;
/// Classes of layouts.
const COMPACT: u8 = 0;
const CONTIGUOUS: u8 = 1;
const CHUNKED: u8 = 2;
/// The flag of chunks whose last ones are not filtered.
const PLAIN_EDGES: u8 = 1;

/// An array in the file.
#[derive(Debug)]
pub(crate) struct Array {
    pub(crate) shape: Vec<u64>,
    pub(crate) datatype: Datatype,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// In the header.
    Compact(Vec<u8>),
    /// In one piece; nowhere if nothing was ever written.
    Contiguous(Option<u64>),
    Chunked(Chunks),
}

#[derive(Debug)]
struct Chunks {
    grid: Grid,
    /// By their number in the grid.
    stored: Vec<StoredChunk>,
    /// Bytes of a chunk when it is unpacked.
    length: usize,
    filters: Vec<Filter>,
}

/// How many elements there are in each dimension, now and at most.
pub(super) struct Extent {
    pub(super) shape: Vec<u64>,
    pub(super) most: Vec<Option<u64>>,
}

/// The extent that a message describes.
pub(super) fn extent(message: &[u8]) -> Result<Extent, Fault> {
    let mut fields = Fields::new("dataspace", message);
    let version = fields.version(&[1, 2])?;
    let (n, flags) = (usize::from(fields.u8()?), fields.u8()?);
    if version == 2 && fields.u8()? == NULL {
        return Ok(Extent { shape: vec![0], most: vec![Some(0)] });
    }
    fields.skip(if version == 1 { 5 } else { 0 })?;
    let shape = (0..n).map(|_| fields.u64()).collect::<Result<Vec<_>, _>>()?;
    let most = match flags & 1 {
        0 => shape.iter().copied().map(Some).collect(),
        _ => (0..n).map(|_| fields.address()).collect::<Result<Vec<_>, _>>()?,
    };
    Ok(Extent { shape, most })
}

/// How many elements a shape has.
pub(super) fn elements(shape: &[u64]) -> Result<u64, Fault> {
    let all = shape.iter().try_fold(1_u64, |product, n| product.checked_mul(*n));
    all.ok_or_else(|| format!("an array of shape {shape:?} is too large").into())
}

impl Array {
    pub(super) fn open(storage: &mut Storage, object: &Object) -> Result<Self, Fault> {
        let wanted = |kind, what: &str| {
            object.message(kind).ok_or_else(|| Fault::from(format!("an array has no {what}")))
        };
        let layout = wanted(kind::LAYOUT, "layout")?;
        let datatype = Datatype::parse(wanted(kind::DATATYPE, "datatype")?)?;
        let extent = extent(wanted(kind::DATASPACE, "dataspace")?)?;
        let filters = object.message(kind::FILTERS).map_or_else(|| Ok(Vec::new()), filters::parse)?;
        if !matches!(extent.shape.len(), 1 | 2) {
            return Err(format!(
                "an array of {} dimensions is not read, only of 1 and 2",
                extent.shape.len()
            )
            .into());
        }
        let bytes = elements(&extent.shape)?.checked_mul(datatype.size() as u64);
        let bytes = bytes.ok_or_else(|| Fault::from("an array is too large"))?;
        let mut fields = Fields::new("layout", layout);
        let version = fields.version(&[3, 4, 5])?;
        let place = match fields.u8()? {
            COMPACT => {
                let length = usize::from(fields.u16()?);
                let data = fields.bytes(length)?;
                if data.len() as u64 != bytes {
                    return Err(format!("an array of {bytes} bytes is stored in {length}").into());
                }
                Place::Compact(data.to_vec())
            }
            CONTIGUOUS => {
                let address = fields.address()?;
                let fits =
                    address.is_some_and(|at| at.checked_add(bytes).is_some_and(|end| end <= storage.size()));
                if bytes > 0 && !fits {
                    return Err(format!(
                        "an array of {bytes} bytes lies outside of the file: it is cut off or damaged"
                    )
                    .into());
                }
                Place::Contiguous(address)
            }
            CHUNKED => Place::Chunked(Chunks::open(storage, fields, version, &extent, &datatype, filters)?),
            other => return Err(format!("a layout of class {other} is not read").into()),
        };
        Ok(Self { shape: extent.shape, datatype, place })
    }

    /// Elements of a row.
    fn columns(&self) -> u64 {
        self.shape.get(1).copied().unwrap_or(1)
    }

    /// Bytes of a row.
    fn row_bytes(&self) -> u64 {
        self.columns().saturating_mul(self.datatype.size() as u64)
    }

    /// Rows that are stored together, and read together at best.
    pub(crate) fn rows_together(&self) -> u64 {
        match &self.place {
            Place::Chunked(chunks) => chunks.grid.chunk[0],
            _ => 1,
        }
    }

    /// Its bytes when they are unpacked.
    pub(crate) fn bytes(&self) -> u64 {
        self.shape[0].saturating_mul(self.row_bytes())
    }

    /// The bytes of rows `rows`.
    pub(super) fn rows(&self, storage: &mut Storage, rows: Range<u64>) -> Result<Vec<u8>, Fault> {
        if rows.start > rows.end || rows.end > self.shape[0] {
            return Err(format!("rows {rows:?} of an array of {}", self.shape[0]).into());
        }
        let row_bytes = self.row_bytes();
        let (start, length) = (rows.start * row_bytes, (rows.end - rows.start) * row_bytes);
        if length == 0 {
            return Ok(Vec::new());
        }
        match &self.place {
            Place::Compact(data) => Ok(data[start as usize..(start + length) as usize].to_vec()),
            Place::Contiguous(Some(address)) => storage.read(address.saturating_add(start), length),
            Place::Contiguous(None) => Err("an array was never written".into()),
            Place::Chunked(chunks) => chunks.rows(storage, rows, self.columns(), self.datatype.size()),
        }
    }
}

/// Refuses an array of which some chunks were never written, and one that claims more than its chunks can unpack to: everything else follows from its size.
fn refuse_gaps(stored: &[StoredChunk], grid: &Grid, length: u64) -> Result<(), Fault> {
    let all = grid.all().ok_or_else(|| Fault::from("an array has too many chunks"))?;
    if stored.len() as u64 != all {
        return Err(format!(
            "{} of the {all} chunks of an array were never written",
            all - stored.len() as u64
        )
        .into());
    }
    let packed: u64 = stored.iter().map(|chunk| chunk.length).sum();
    if all.saturating_mul(length) > packed.saturating_mul(MOST_GROWTH).saturating_add(SLACK) {
        return Err(
            format!("an array of {all} chunks of {length} bytes cannot come from {packed} bytes").into()
        );
    }
    Ok(())
}

impl Chunks {
    fn open(
        storage: &mut Storage,
        mut fields: Fields<'_>,
        version: u8,
        extent: &Extent,
        datatype: &Datatype,
        filters: Vec<Filter>,
    ) -> Result<Self, Fault> {
        let old = version == 3;
        let flags = if old { 0 } else { fields.u8()? };
        if flags & PLAIN_EDGES != 0 && !filters.is_empty() {
            return Err("chunks at the edge of an array are stored in another way, which is not read".into());
        }
        let dimensions = usize::from(fields.u8()?);
        if dimensions != extent.shape.len() + 1 {
            return Err(
                format!("chunks of {dimensions} dimensions in an array of {}", extent.shape.len()).into()
            );
        }
        let tree = if old { fields.address()? } else { None };
        let width = if old { 4 } else { usize::from(fields.u8()?) };
        let mut chunk = (0..dimensions).map(|_| fields.number(width)).collect::<Result<Vec<_>, _>>()?;
        let size = chunk.pop();
        if size != Some(datatype.size() as u64) || chunk.contains(&0) {
            return Err(format!(
                "chunks of shape {chunk:?} with elements of {size:?} bytes where the type has {}",
                datatype.size()
            )
            .into());
        }
        let length =
            elements(&chunk)?.checked_mul(datatype.size() as u64).filter(|length| *length <= MOST_OF_A_CHUNK);
        let length = length.ok_or_else(|| Fault::from(format!("chunks of shape {chunk:?} are too large")))?;
        let grid = Grid { shape: extent.shape.clone(), most: extent.most.clone(), chunk };
        let filtered = !filters.is_empty();
        let index = if old { Index::Tree(tree) } else { Index::parse(fields, flags)? };
        let stored = find_chunks(storage, &index, &grid, length, filtered)?;
        refuse_gaps(&stored, &grid, length)?;
        Ok(Self { grid, stored, length: length as usize, filters })
    }

    fn chunk(&self, number: u64) -> Result<&StoredChunk, Fault> {
        let found = self.stored.binary_search_by_key(&number, |chunk| chunk.number);
        found
            .map(|at| &self.stored[at])
            .map_err(|_| format!("chunk {number} of an array was never written").into())
    }

    /// Reads whole bands of chunks, some at a time, and takes the rows out of them.
    fn rows(
        &self,
        storage: &mut Storage,
        rows: Range<u64>,
        columns: u64,
        size: usize,
    ) -> Result<Vec<u8>, Fault> {
        let (height, across) = (self.grid.chunk[0], self.grid.across());
        let bands = rows.start / height..rows.end.div_ceil(height);
        let mut bytes = Vec::new();
        let step = CHUNKS_AT_ONCE.div_ceil(across).max(1);
        let mut band = bands.start;
        while band < bands.end {
            let end = bands.end.min(band.saturating_add(step));
            let mut stored = Vec::new();
            for number in band.saturating_mul(across)..end.saturating_mul(across) {
                let chunk = self.chunk(number)?;
                stored.push((storage.read(chunk.address, chunk.length)?, chunk.mask));
            }
            let unpack =
                |(stored, mask): (Vec<u8>, u32)| filters::undo(&self.filters, mask, stored, self.length);
            let unpacked = if self.filters.is_empty() {
                stored.into_iter().map(unpack).collect::<Result<Vec<_>, _>>()?
            } else {
                // All are unpacked before the first fault is looked for: which thread fails first is chance.
                let all: Vec<Result<Vec<u8>, Fault>> = stored.into_par_iter().map(unpack).collect();
                all.into_iter().collect::<Result<Vec<_>, _>>()?
            };
            for (chunks, band) in unpacked.chunks(across as usize).zip(band..end) {
                let first = band * height;
                let within =
                    rows.start.max(first) - first..rows.end.min(first.saturating_add(height)) - first;
                self.append(chunks, within, columns as usize, size, &mut bytes);
            }
            band = end;
        }
        Ok(bytes)
    }

    /// Appends rows `within` of a band of chunks that stand side by side.
    fn append(
        &self,
        chunks: &[Vec<u8>],
        within: Range<u64>,
        columns: usize,
        size: usize,
        bytes: &mut Vec<u8>,
    ) {
        let width = self.grid.chunk.get(1).map_or(1, |width| *width as usize) * size;
        let (start, end) = (within.start as usize, within.end as usize);
        bytes.reserve((end - start) * columns * size);
        if let [chunk] = chunks
            && width == columns * size
        {
            bytes.extend_from_slice(&chunk[start * width..end * width]);
            return;
        }
        for row in start..end {
            let mut left = columns * size;
            for chunk in chunks {
                let taken = left.min(width);
                bytes.extend_from_slice(&chunk[row * width..row * width + taken]);
                left -= taken;
            }
        }
    }
}
