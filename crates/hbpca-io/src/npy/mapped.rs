//! A NumPy array left on disk and read through the page cache: nothing is copied.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

use hbpca::{Dense, Matrix};
use memmap2::Mmap;

use super::{Header, read_header};
use crate::ReadError;
use crate::element::Number;

/// A plain `.npy` file of f32 or f64 in C order and this machine's byte order, mapped into memory.
#[derive(Debug)]
pub struct MappedNpy {
    name: String,
    header: Header,
    number: Number,
    map: Mmap,
}

impl MappedNpy {
    /// Maps the file. `Ok(None)` means that the file is fine but must be read instead: other types, Fortran
    /// order, the other byte order or an odd alignment.
    pub fn open(path: &Path) -> Result<Option<Self>, ReadError> {
        let name = path.display().to_string();
        let refused = |source| ReadError::io(&name, source);
        let mut file = File::open(path).map_err(refused)?;
        let size = file.metadata().map_err(refused)?.len();
        let header = read_header(&name, &mut file)?;
        let malformed = |message| ReadError::malformed(&name, message);
        let element = header.element().map_err(malformed)?;
        let (n, d) = header.rows_and_columns().map_err(malformed)?;
        let needed = header.data_bytes(element).saturating_add(u128::from(header.data_start));
        if needed > u128::from(size) {
            return Err(ReadError::malformed(
                &name,
                format!(
                    "{n} rows × {d} columns need {needed} bytes, but the file has only {size}: it is cut off or \
                     its header is wrong"
                ),
            ));
        }
        let by_row = !header.fortran_order || d == 1;
        let own_order = element.big_endian == cfg!(target_endian = "big");
        let aligned = header.data_start % element.size() as u64 == 0;
        if element.is_integer() || !by_row || !own_order || !aligned {
            return Ok(None);
        }
        let map = map(&file).map_err(|source| ReadError::io(&name, source))?;
        Ok(Some(Self { name, number: element.number, map, header }))
    }

    /// The matrix, borrowed from the map. Entries that are not finite are found by the first pass over them
    /// all, such as `hbpca::ColumnStatistics`.
    pub fn matrix(&self) -> Result<Matrix<'_>, ReadError> {
        let malformed = |message: String| ReadError::malformed(&self.name, message);
        let (n, d) = self.header.rows_and_columns().map_err(malformed)?;
        let start = self.header.data_start as usize;
        // n·d·size fits the file, as was checked when it was opened.
        let bytes = |size: usize| &self.map[start..start + n * d * size];
        let odd = |error: bytemuck::PodCastError| malformed(error.to_string());
        let wrong = |error: hbpca::Error| malformed(error.to_string());
        Ok(if self.number == Number::F32 {
            let values = bytemuck::try_cast_slice::<u8, f32>(bytes(4)).map_err(odd)?;
            Dense::deferring_finite_check(Cow::Borrowed(values), n, d).map_err(wrong)?.into()
        } else {
            let values = bytemuck::try_cast_slice::<u8, f64>(bytes(8)).map_err(odd)?;
            Dense::deferring_finite_check(Cow::Borrowed(values), n, d).map_err(wrong)?.into()
        })
    }
}

/// Maps a file, of which every content is valid.
#[allow(unsafe_code, reason = "mapping a file is unsafe by nature; this is the only place that does it")]
pub(crate) fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the map is private to this process and only read. Another process that shortens the file
    // meanwhile makes reads fail with a signal, as for every program that maps files; one that changes it
    // changes numbers or codes, of which every bit pattern is a valid one.
    unsafe { Mmap::map(file) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WriteOptions, write};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_mapped_matrix_is_the_one_written() {
        let folder = folder();
        let path = folder.path().join("x.npy");
        for single in [true, false] {
            let matrix: Matrix = if single {
                Dense::new(vec![1.0_f32, 2.0, 3.5, -4.0, 5.0, 6.0], 3, 2).unwrap().into()
            } else {
                Dense::new(vec![0.1_f64, 2.0, 3.5, -4.0, 5.0, 6.0], 3, 2).unwrap().into()
            };
            write(&path, &matrix, &WriteOptions::default()).unwrap();
            let mapped = MappedNpy::open(&path).unwrap().unwrap();
            match (&matrix, mapped.matrix().unwrap()) {
                (Matrix::DenseF32(a), Matrix::DenseF32(b)) => assert_eq!(a.values(), b.values()),
                (Matrix::DenseF64(a), Matrix::DenseF64(b)) => assert_eq!(a.values(), b.values()),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn what_cannot_be_mapped_is_left_to_the_reader_and_faults_are_named() {
        let folder = folder();
        let path = folder.path().join("x.npy");
        let mut bytes = Header::bytes("<i4", &[2, 1]);
        bytes.extend([0; 8]);
        std::fs::write(&path, &bytes).unwrap();
        assert!(MappedNpy::open(&path).unwrap().is_none());
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(MappedNpy::open(&path).unwrap_err().to_string().contains("cut off"));
        std::fs::write(&path, Header::bytes("<f4", &[0, 1])).unwrap();
        assert!(MappedNpy::open(&path).unwrap().unwrap().matrix().unwrap_err().to_string().contains("empty"));
        assert!(MappedNpy::open(&folder.path().join("none")).unwrap_err().to_string().contains("none: "));
    }
}
