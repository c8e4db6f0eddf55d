//! What was done to a chunk before it was written, undone.

use std::io::Read;

use flate2::read::ZlibDecoder;

use super::Fault;
use super::fields::Fields;

/// Filters in a row.
const MOST_FILTERS: u8 = 32;
/// Bytes that one byte of deflate unpacks to at most.
const DEFLATE_GROWTH: usize = 1032;

/// One step between an array and its bytes in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Filter {
    Deflate,
    /// The first bytes of all elements, then the second ones, and so on.
    Shuffle {
        size: usize,
    },
    Fletcher32,
    Lzf,
}

/// The filters of an array, in the order in which they were applied.
pub(super) fn parse(message: &[u8]) -> Result<Vec<Filter>, Fault> {
    let mut fields = Fields::new("list of filters", message);
    let version = fields.version(&[1, 2])?;
    let n = fields.u8()?;
    if n > MOST_FILTERS {
        return Err(format!("{n} filters in a row are not read, at most {MOST_FILTERS}").into());
    }
    fields.skip(if version == 1 { 6 } else { 0 })?;
    let mut filters = Vec::new();
    for _ in 0..n {
        let id = fields.u16()?;
        let name_length = if version == 1 || id >= 256 { usize::from(fields.u16()?) } else { 0 };
        fields.skip(2)?;
        let n_values = usize::from(fields.u16()?);
        let name = fields.bytes(if version == 1 { name_length.next_multiple_of(8) } else { name_length })?;
        let mut values = Fields::new("filter", fields.bytes(4 * n_values)?);
        if version == 1 && n_values % 2 == 1 {
            fields.skip(4)?;
        }
        filters.push(match id {
            1 => Filter::Deflate,
            2 => Filter::Shuffle { size: values.u32()? as usize },
            3 => Filter::Fletcher32,
            32_000 => Filter::Lzf,
            other => return Err(unknown(other, name)),
        });
    }
    Ok(filters)
}

fn unknown(id: u16, name: &[u8]) -> Fault {
    let known = match id {
        4 => "szip",
        5 => "nbit",
        6 => "scale-offset",
        32_001 => "Blosc",
        32_004 => "LZ4",
        32_008 => "bitshuffle",
        32_015 => "Zstandard",
        32_026 => "Blosc2",
        _ => "",
    };
    let stored = String::from_utf8_lossy(name);
    let name = if known.is_empty() { stored.trim_end_matches('\0') } else { known };
    format!("it is compressed by filter {id} ({name}), which is not read: write it with compression=\"gzip\" or \"lzf\"").into()
}

/// The bytes of a chunk, which are `length`; bit i of `mask` says that filter i was left out.
pub(super) fn undo(filters: &[Filter], mask: u32, stored: Vec<u8>, length: usize) -> Result<Vec<u8>, Fault> {
    let mut bytes = stored;
    for (i, filter) in filters.iter().enumerate().rev() {
        if mask >> i & 1 != 0 {
            continue;
        }
        // A checksum beneath may make what comes out longer than the chunk.
        let most = length.saturating_add(4 * filters.len());
        bytes = match filter {
            Filter::Deflate => inflate(&bytes, most)?,
            Filter::Shuffle { size } => unshuffled(bytes, *size),
            Filter::Fletcher32 => without_checksum(bytes)?,
            Filter::Lzf => unpack_lzf(&bytes, most)?,
        };
    }
    if bytes.len() == length {
        Ok(bytes)
    } else {
        Err(format!("a chunk of {length} bytes unpacks to {}", bytes.len()).into())
    }
}

fn inflate(bytes: &[u8], most: usize) -> Result<Vec<u8>, Fault> {
    let mut unpacked = Vec::with_capacity(most.min(bytes.len().saturating_mul(DEFLATE_GROWTH)));
    let read = ZlibDecoder::new(bytes).take(most as u64 + 1).read_to_end(&mut unpacked);
    read.map_err(|error| Fault::from(format!("a chunk cannot be unpacked: {error}")))?;
    Ok(unpacked)
}

fn unshuffled(bytes: Vec<u8>, size: usize) -> Vec<u8> {
    if size <= 1 || bytes.len() < 2 * size {
        return bytes;
    }
    let n = bytes.len() / size;
    let mut whole = vec![0; bytes.len()];
    let (elements, rest) = whole.split_at_mut(n * size);
    rest.copy_from_slice(&bytes[n * size..]);
    match size {
        2 => gather::<2>(&bytes, elements),
        4 => gather::<4>(&bytes, elements),
        8 => gather::<8>(&bytes, elements),
        _ => {
            for (j, plane) in bytes.chunks_exact(n).take(size).enumerate() {
                elements.iter_mut().skip(j).step_by(size).zip(plane).for_each(|(to, from)| *to = *from);
            }
        }
    }
    whole
}

/// Elements of N bytes from N planes.
fn gather<const N: usize>(bytes: &[u8], elements: &mut [u8]) {
    let (elements, _) = elements.as_chunks_mut::<N>();
    let n = elements.len();
    let planes: [&[u8]; N] = std::array::from_fn(|j| &bytes[j * n..(j + 1) * n]);
    for (i, element) in elements.iter_mut().enumerate() {
        *element = std::array::from_fn(|j| planes[j][i]);
    }
}

/// Takes off the checksum at the end, which must be right.
fn without_checksum(mut bytes: Vec<u8>) -> Result<Vec<u8>, Fault> {
    let at = bytes.len().checked_sub(4).ok_or_else(|| Fault::from("a chunk has no checksum"))?;
    let stored = Fields::new("checksum", &bytes.split_off(at)).u32()?;
    if fletcher32(&bytes) == stored {
        Ok(bytes)
    } else {
        Err("a chunk is damaged: its checksum is another".into())
    }
}

/// Sums of 16-bit words, high byte first, and of these sums, both modulo 65,535.
fn fletcher32(bytes: &[u8]) -> u32 {
    let (mut sum, mut sums) = (0_u32, 0_u32);
    let (words, rest) = bytes.as_chunks::<2>();
    // So many words that no sum overflows.
    for words in words.chunks(360) {
        for word in words {
            sum += u32::from(u16::from_be_bytes(*word));
            sums += sum;
        }
        (sum, sums) = (folded(sum), folded(sums));
    }
    if let [last] = rest {
        sum += u32::from(*last) << 8;
        sums += sum;
        (sum, sums) = (folded(sum), folded(sums));
    }
    folded(sums) << 16 | folded(sum)
}

fn folded(sum: u32) -> u32 {
    (sum & 0xFFFF) + (sum >> 16)
}

/// LZF: runs of literals, and copies of what came at most 8 KiB before.
fn unpack_lzf(bytes: &[u8], most: usize) -> Result<Vec<u8>, Fault> {
    const GROWTH: usize = 132;
    let mut unpacked: Vec<u8> = Vec::with_capacity(most.min(bytes.len().saturating_mul(GROWTH)));
    let mut fields = Fields::new("chunk", bytes);
    while !fields.is_empty() {
        let control = usize::from(fields.u8()?);
        if control < 32 {
            unpacked.extend_from_slice(fields.bytes(control + 1)?);
        } else {
            let mut length = (control >> 5) + 2;
            if length == 9 {
                length += usize::from(fields.u8()?);
            }
            let back = ((control & 31) << 8 | usize::from(fields.u8()?)) + 1;
            let start = unpacked.len().checked_sub(back);
            let start = start.ok_or_else(|| Fault::from("a chunk copies from before its start"))?;
            // What is copied may reach into what is being written.
            for at in start..start + length {
                unpacked.push(unpacked[at]);
            }
        }
        if unpacked.len() > most {
            return Err("a chunk unpacks to more than its size".into());
        }
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_become_elements() {
        let shuffled = |n: usize, size: usize| -> Vec<u8> {
            (0..size).flat_map(|j| (0..n).map(move |i| (i * size + j) as u8)).collect()
        };
        for size in [1, 2, 3, 4, 8] {
            let mut bytes = shuffled(5, size);
            bytes.push(99);
            let mut expected: Vec<u8> = (0..5 * size).map(|x| x as u8).collect();
            expected.push(99);
            if size == 1 {
                expected = bytes.clone();
            }
            assert_eq!(unshuffled(bytes, size), expected, "{size}");
        }
    }

    #[test]
    fn lzf_copies_overlap_and_stay_inside() {
        // A literal `ab`, then 8 bytes from 2 before.
        assert_eq!(unpack_lzf(&[1, b'a', b'b', 6 << 5, 1], 100).unwrap(), b"ababababab");
        // The long form: 9 + 3 bytes from 1 before.
        assert_eq!(unpack_lzf(&[0, b'x', 7 << 5, 3, 0], 100).unwrap(), b"x".repeat(13));
        for (wrong, most) in
            [(&[1, b'a'][..], 9), (&[7 << 5, 3], 9), (&[1 << 5, 0], 9), (&[0, b'x', 7 << 5, 99, 0], 9)]
        {
            assert!(unpack_lzf(wrong, most).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_chunk_that_unpacks_to_more_or_less_is_refused() {
        use std::io::Write;
        let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&[7; 1000]).unwrap();
        let packed = packed.finish().unwrap();
        assert_eq!(undo(&[Filter::Deflate], 0, packed.clone(), 1000).unwrap(), [7; 1000]);
        for length in [0, 999, 1001, 1 << 30] {
            assert!(undo(&[Filter::Deflate], 0, packed.clone(), length).is_err());
        }
        assert_eq!(
            undo(&[Filter::Deflate], 1, packed.clone(), packed.len()).unwrap(),
            packed,
            "left out by the mask"
        );
    }
}
