//! The formats, and how a file's format is found: by name, else by content.

use std::path::Path;

use crate::Compression;
use crate::hdf5::SIGNATURE;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `label index:value …`, sparse text.
    Libsvm,
    /// Delimited text; the delimiter is found when reading, a comma when writing.
    Csv,
    /// Text delimited by tabs.
    Tsv,
    /// One NumPy array.
    Npy,
    /// A SciPy sparse matrix, or one NumPy array, in a zip archive.
    Npz,
    /// The exchange format of NIST.
    MatrixMarket,
    /// The format of MNIST.
    Idx,
    /// Apache Parquet.
    Parquet,
    /// A folder of NumPy or SciPy files with a manifest ([`ChunkFolder`](crate::ChunkFolder)).
    Chunks,
    /// PLINK's packed genotypes ([`BedFile`](crate::BedFile)): three files, which are read and not written.
    Bed,
    /// AnnData's file of cells and genes, which is read and not written.
    H5ad,
}

impl Format {
    /// Every format of a single file.
    pub const ALL: [Self; 8] = [
        Self::Libsvm,
        Self::Csv,
        Self::Tsv,
        Self::Npy,
        Self::Npz,
        Self::MatrixMarket,
        Self::Idx,
        Self::Parquet,
    ];

    /// The name users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Libsvm => "libsvm",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::MatrixMarket => "mtx",
            Self::Idx => "idx",
            Self::Parquet => "parquet",
            Self::Chunks => "chunks",
            Self::Bed => "bed",
            Self::H5ad => "h5ad",
        }
    }

    /// The format of a name users type; [`Format::name`] and a few synonyms.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "libsvm" | "svmlight" | "svm" => Self::Libsvm,
            "csv" => Self::Csv,
            "tsv" | "tab" => Self::Tsv,
            "npy" => Self::Npy,
            "npz" => Self::Npz,
            "mtx" | "mm" | "matrix-market" => Self::MatrixMarket,
            "idx" | "ubyte" => Self::Idx,
            "parquet" | "pq" => Self::Parquet,
            "chunks" => Self::Chunks,
            "bed" => Self::Bed,
            "h5ad" => Self::H5ad,
            _ => return None,
        })
    }

    /// The format a file's name promises, once an extension of compression is taken off.
    pub fn from_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = Compression::strip_extension(&name);
        if name.ends_with("ubyte") {
            return Some(Self::Idx);
        }
        name.rsplit_once('.').and_then(|(_, extension)| Self::from_name(extension))
    }

    /// Whether its files are texts.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Libsvm | Self::Csv | Self::Tsv | Self::MatrixMarket)
    }

    /// The format that the first (decompressed) bytes of a file show.
    pub fn from_content(head: &[u8]) -> Option<Self> {
        match head {
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Some(Self::Npy),
            [b'P', b'K', 3, 4, ..] => Some(Self::Npz),
            [b'P', b'A', b'R', b'1', ..] => Some(Self::Parquet),
            _ if head.starts_with(SIGNATURE) => Some(Self::H5ad),
            [0x6c, 0x1b, 0 | 1, ..] => Some(Self::Bed),
            [0, 0, 0x08 | 0x09 | 0x0B..=0x0E, 1..=255, ..] => Some(Self::Idx),
            _ if head.len() >= 14 && head[..14].eq_ignore_ascii_case(b"%%MatrixMarket") => {
                Some(Self::MatrixMarket)
            }
            _ if head.contains(&0) => None,
            _ => text_format(head),
        }
    }
}

/// LIBSVM if a line's second word is `number:…`, else delimited text.
fn text_format(head: &[u8]) -> Option<Format> {
    let mut lines = head
        .split(|&byte| byte == b'\n')
        .map(|line| line.split(|&byte| byte == b'#').next().unwrap_or_default().trim_ascii())
        .filter(|line| !line.is_empty())
        .peekable();
    lines.peek()?;
    Some(if lines.take(100).any(is_libsvm_line) { Format::Libsvm } else { Format::Csv })
}

fn is_libsvm_line(line: &[u8]) -> bool {
    let pair = |word: &[u8]| {
        let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
        word.starts_with(b"qid:") || (digits > 0 && word.get(digits) == Some(&b':'))
    };
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).nth(1).is_some_and(pair)
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_formats_through_compression() {
        let format = |name: &str| Format::from_path(Path::new(name));
        assert_eq!(format("a/b.csv.gz"), Some(Format::Csv));
        assert_eq!(format("B.TSV"), Some(Format::Tsv));
        assert_eq!(format("x.mtx.xz"), Some(Format::MatrixMarket));
        assert_eq!(format("train-images-idx3-ubyte.gz"), Some(Format::Idx));
        assert_eq!(format("train.svmlight.bz2"), Some(Format::Libsvm));
        assert_eq!(format("x.npy.zst"), Some(Format::Npy));
        assert_eq!(format("x.npz"), Some(Format::Npz));
        assert_eq!(format("x.pq"), Some(Format::Parquet));
        assert_eq!(format("x.BED"), Some(Format::Bed));
        assert_eq!(format("cells.h5ad"), Some(Format::H5ad));
        for unknown in ["a9a.xz", "ijcnn1.tst.bz2", "noextension", "gz", ".."] {
            assert_eq!(format(unknown), None, "{unknown}");
        }
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
        }
    }

    #[test]
    fn content_decides_when_the_name_does_not() {
        let format = Format::from_content;
        assert_eq!(format(b"-1 1:0.5 3:2\n"), Some(Format::Libsvm));
        assert_eq!(format(b"# comment\n1\n1 \n2 qid:3 1:5\n"), Some(Format::Libsvm));
        assert_eq!(format(b"1.5,2\n"), Some(Format::Csv));
        assert_eq!(format(b"12:30 5 7\n"), Some(Format::Csv));
        assert_eq!(format(b"%%MatrixMarket matrix\n"), Some(Format::MatrixMarket));
        assert_eq!(format(b"\x93NUMPY\x01\x00"), Some(Format::Npy));
        assert_eq!(format(b"PK\x03\x04"), Some(Format::Npz));
        assert_eq!(format(b"PAR1"), Some(Format::Parquet));
        assert_eq!(format(b"\x89HDF\r\n\x1a\n\0"), Some(Format::H5ad));
        assert_eq!(format(&[0, 0, 8, 3, 0, 0]), Some(Format::Idx));
        assert_eq!(format(b"\x7fELF\0\0\0"), None);
        assert_eq!(format(b" \n# only a comment\n"), None);
        assert_eq!(format(b""), None);
    }
}
