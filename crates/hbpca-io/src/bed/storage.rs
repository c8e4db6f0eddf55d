//! Where the codes of a `.bed` are while they are worked on: in memory, in a map, or on disk.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use hbpca::Error;
use hbpca::genotypes::{Genotypes, VariantSource};

use super::{HEADER, check_header, check_size};
use crate::ReadError;
use crate::npy::map;
use crate::on_disk::WatchedFile;

/// The file is read in every pass, and has to stay as it is.
struct BedOnDisk {
    file: Mutex<WatchedFile>,
    /// Bytes of a variant.
    stride: u64,
}

impl VariantSource for BedOnDisk {
    fn read(&self, first: usize, codes: &mut [u8]) -> Result<(), Error> {
        let at = HEADER as u64 + first as u64 * self.stride;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.fill(at, codes).map_err(|error| Error::Source(Box::new(error)))
    }
}

/// The bytes after the header of a mapped file.
struct Mapped(memmap2::Mmap);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0[HEADER..]
    }
}

/// The codes of a file of n samples and d variants, named in its .fam and .bim, left where they are.
pub(super) fn on_disk(path: &Path, names: [&str; 2], n: usize, d: usize) -> Result<Genotypes, ReadError> {
    let name = path.display().to_string();
    let mut file = WatchedFile::open(&name, path)?;
    let mut header = vec![0; HEADER.min(file.size() as usize)];
    file.fill(0, &mut header)?;
    check_header(&name, &header)?;
    check_size(&name, names, (n, d), file.size())?;
    let source = BedOnDisk { file: Mutex::new(file), stride: n.div_ceil(4) as u64 };
    let genotypes = Genotypes::read_from(n, d, Arc::new(source));
    genotypes.map_err(|error| ReadError::malformed(&name, error.to_string()))
}

/// The same in a map of the file.
pub(super) fn mapped(path: &Path, names: [&str; 2], n: usize, d: usize) -> Result<Genotypes, ReadError> {
    let name = path.display().to_string();
    let refused = |source| ReadError::io(&name, source);
    let file = std::fs::File::open(path).map_err(refused)?;
    if file.metadata().map_err(refused)?.len() < HEADER as u64 {
        check_header(&name, &[])?;
    }
    let bytes = map(&file).map_err(refused)?;
    check_header(&name, &bytes)?;
    check_size(&name, names, (n, d), bytes.len() as u64)?;
    let genotypes = Genotypes::mapped(n, d, Arc::new(Mapped(bytes)));
    genotypes.map_err(|error| ReadError::malformed(&name, error.to_string()))
}
