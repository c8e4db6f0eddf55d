//! Compression, recognised by its first bytes when reading and by the file's name when writing.

use std::io::{self, BufRead, Read, Write};
use std::path::Path;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// gzip, of one or several members.
    Gzip,
    /// bzip2, of one or several streams.
    Bzip2,
    /// xz, of one or several streams.
    Xz,
    /// Zstandard, of one or several frames.
    Zstd,
}

impl Compression {
    /// Every compression.
    pub const ALL: [Self; 4] = [Self::Gzip, Self::Bzip2, Self::Xz, Self::Zstd];

    /// The extension, without its dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Gzip => "gz",
            Self::Bzip2 => "bz2",
            Self::Xz => "xz",
            Self::Zstd => "zst",
        }
    }

    /// What a file's name promises.
    pub fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Self::ALL.into_iter().find(|x| x.extension() == extension)
    }

    /// The name without an extension of compression.
    pub fn strip_extension(name: &str) -> &str {
        match name.rsplit_once('.') {
            Some((stem, extension)) if Self::ALL.iter().any(|x| x.extension() == extension) => stem,
            _ => name,
        }
    }

    /// What the first bytes show.
    pub fn from_content(head: &[u8]) -> Option<Self> {
        match head {
            [0x1F, 0x8B, ..] => Some(Self::Gzip),
            // The digit is the block size; the six bytes after it, the digits of π, begin a block.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..] => Some(Self::Bzip2),
            [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// A reader of the plain bytes.
    pub(crate) fn decompress<'a>(
        self,
        compressed: impl BufRead + Send + 'a,
    ) -> io::Result<Box<dyn Read + Send + 'a>> {
        Ok(match self {
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(compressed)),
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(compressed)),
            Self::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(compressed)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(compressed)?),
        })
    }

    /// A writer of plain bytes; [`Compressor::finish`] must end it.
    pub(crate) fn compress<W: Write>(this: Option<Self>, out: W) -> io::Result<Compressor<W>> {
        Ok(match this {
            None => Compressor::Plain(out),
            Some(Self::Gzip) => {
                Compressor::Gzip(flate2::write::GzEncoder::new(out, flate2::Compression::new(6)))
            }
            Some(Self::Bzip2) => {
                Compressor::Bzip2(bzip2::write::BzEncoder::new(out, bzip2::Compression::new(9)))
            }
            Some(Self::Xz) => Compressor::Xz(liblzma::write::XzEncoder::new(out, 6)),
            Some(Self::Zstd) => Compressor::Zstd(zstd::stream::write::Encoder::new(out, 3)?),
        })
    }
}

/// Compresses what is written to it.
pub(crate) enum Compressor<W: Write> {
    Plain(W),
    Gzip(flate2::write::GzEncoder<W>),
    Bzip2(bzip2::write::BzEncoder<W>),
    Xz(liblzma::write::XzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> Compressor<W> {
    /// Writes what is still inside and gives the writer back.
    pub(crate) fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(out) => Ok(out),
            Self::Gzip(x) => x.finish(),
            Self::Bzip2(x) => x.finish(),
            Self::Xz(x) => x.finish(),
            Self::Zstd(x) => x.finish(),
        }
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(x) => x.write(bytes),
            Self::Gzip(x) => x.write(bytes),
            Self::Bzip2(x) => x.write(bytes),
            Self::Xz(x) => x.write(bytes),
            Self::Zstd(x) => x.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(x) => x.flush(),
            Self::Gzip(x) => x.flush(),
            Self::Bzip2(x) => x.flush(),
            Self::Xz(x) => x.flush(),
            Self::Zstd(x) => x.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressed(how: Compression, plain: &[u8]) -> Vec<u8> {
        let mut out = Compression::compress(Some(how), Vec::new()).unwrap();
        out.write_all(plain).unwrap();
        out.flush().unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn streams_one_after_the_other_are_one_text() {
        for how in Compression::ALL {
            let mut bytes = compressed(how, b"first,");
            bytes.extend(compressed(how, b"second"));
            assert_eq!(Compression::from_content(&bytes), Some(how));
            let mut plain = String::new();
            how.decompress(&bytes[..]).unwrap().read_to_string(&mut plain).unwrap();
            assert_eq!(plain, "first,second", "{how:?}");
        }
    }

    #[test]
    fn an_empty_stream_is_recognised() {
        for how in Compression::ALL {
            assert_eq!(Compression::from_content(&compressed(how, b"")), Some(how));
        }
    }

    #[test]
    fn text_is_not_taken_for_compressed() {
        assert_eq!(Compression::from_content(b"BZh9,name\n"), None);
        assert_eq!(Compression::from_content(b""), None);
    }

    #[test]
    fn a_cut_stream_is_an_error() {
        for how in Compression::ALL {
            let bytes = compressed(how, &[7; 1000]);
            let cut = &bytes[..bytes.len() - 4];
            assert!(how.decompress(cut).unwrap().read_to_end(&mut Vec::new()).is_err(), "{how:?}");
        }
    }
}
