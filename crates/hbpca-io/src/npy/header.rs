//! The header of a NumPy array: a Python dictionary of `descr`, `fortran_order` and `shape`.

use std::io::{self, Read};

use crate::element::{Element, Number};

/// What an array says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The type, as NumPy writes it.
    pub(crate) descr: String,
    pub(crate) fortran_order: bool,
    pub(crate) shape: Vec<usize>,
    /// Bytes before the first number.
    pub(crate) data_start: u64,
}

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// A header is short; one that claims more is not a header.
const LONGEST: usize = 1 << 20;

impl Header {
    /// Reads the header; an error of kind `InvalidData` says what is wrong with it.
    pub(crate) fn read(reader: &mut dyn Read) -> io::Result<Self> {
        let mut start = [0; 8];
        reader.read_exact(&mut start)?;
        if !start.starts_with(MAGIC) {
            return Err(invalid("this is no NumPy array: it does not start with \\x93NUMPY"));
        }
        let (length, start) = match start[6] {
            1 => {
                let mut length = [0; 2];
                reader.read_exact(&mut length)?;
                (usize::from(u16::from_le_bytes(length)), 10)
            }
            2 | 3 => {
                let mut length = [0; 4];
                reader.read_exact(&mut length)?;
                (u32::from_le_bytes(length) as usize, 12)
            }
            version => {
                return Err(invalid(format!(
                    "version {version} of NumPy's format is unknown; 1 to 3 are read"
                )));
            }
        };
        if length > LONGEST {
            return Err(invalid(format!("a NumPy header of {length} bytes is no header")));
        }
        let mut text = vec![0; length];
        reader.read_exact(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let wrong = || invalid(format!("the NumPy header `{}` is not understood", text.trim()));
        let header = Self::from_dictionary(&text).ok_or_else(wrong)?;
        Ok(Self { data_start: (start + length) as u64, ..header })
    }

    fn from_dictionary(text: &str) -> Option<Self> {
        let value = |key: &str| {
            let after = text.find(&format!("'{key}'")).map(|at| &text[at + key.len() + 2..])?;
            after.trim_start().strip_prefix(':').map(str::trim_start)
        };
        let descr = value("descr")?;
        let descr = match descr.strip_prefix('\'') {
            Some(quoted) => quoted[..quoted.find('\'')?].to_owned(),
            None => "a record".to_owned(),
        };
        let order = value("fortran_order")?;
        let fortran_order = order.starts_with("True");
        if !fortran_order && !order.starts_with("False") {
            return None;
        }
        let shape = value("shape")?.strip_prefix('(')?;
        let lengths = shape[..shape.find(')')?].split(',').map(str::trim).filter(|x| !x.is_empty());
        // A length beyond usize is kept as the largest one, which no file can hold.
        let shape = lengths
            .map(|x| {
                let digits = x.bytes().all(|byte| byte.is_ascii_digit());
                digits.then(|| x.parse().unwrap_or(usize::MAX))
            })
            .collect::<Option<_>>()?;
        Some(Self { descr, fortran_order, shape, data_start: 0 })
    }

    /// The header of a C-ordered array, padded so that the numbers start at a multiple of 64 bytes.
    pub(crate) fn bytes(descr: &str, shape: &[usize]) -> Vec<u8> {
        let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
        let comma = if shape.len() == 1 { "," } else { "" };
        let mut text = format!(
            "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}",
            lengths.join(", ")
        );
        let unpadded = MAGIC.len() + 4 + text.len() + 1;
        text += &" ".repeat(unpadded.next_multiple_of(64) - unpadded);
        text.push('\n');
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes
    }

    /// The type of the numbers, or what it is instead.
    pub(crate) fn element(&self) -> Result<Element, String> {
        let refused = || {
            format!(
                "entries of type `{}` are not read: store f4, f8, whole numbers or booleans, for example with \
                 x.astype('f4')",
                self.descr
            )
        };
        let (order, kind) = self.descr.split_at_checked(1).ok_or_else(refused)?;
        let big_endian = match order {
            "<" | "|" => false,
            ">" => true,
            "=" => cfg!(target_endian = "big"),
            _ => return Err(refused()),
        };
        let number = match kind {
            "f4" => Number::F32,
            "f8" => Number::F64,
            "i1" => Number::I8,
            "u1" | "b1" => Number::U8,
            "i2" => Number::I16,
            "u2" => Number::U16,
            "i4" => Number::I32,
            "u4" => Number::U32,
            "i8" => Number::I64,
            "u8" => Number::U64,
            _ => return Err(refused()),
        };
        Ok(Element { number, big_endian })
    }

    /// Rows and columns. An array of one dimension is one column.
    pub(crate) fn rows_and_columns(&self) -> Result<(usize, usize), String> {
        match *self.shape {
            [n] => Ok((n, 1)),
            [n, d] => Ok((n, d)),
            [] => Err("a single number is no matrix".into()),
            _ => Err(format!(
                "the array has {} dimensions, a matrix has 2: store x.reshape(len(x), -1)",
                self.shape.len()
            )),
        }
    }

    /// Numbers in the array, as far as memory can count them.
    pub(crate) fn n_numbers(&self) -> usize {
        self.shape.iter().fold(1, |n, &length| n.saturating_mul(length))
    }

    /// Bytes that the numbers need.
    pub(crate) fn data_bytes(&self, element: Element) -> u128 {
        self.shape.iter().fold(element.size() as u128, |bytes, &x| bytes.saturating_mul(x as u128))
    }
}

fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(dictionary: &str) -> Option<Header> {
        Header::from_dictionary(dictionary)
    }

    #[test]
    fn what_is_written_is_read() {
        for shape in [vec![3, 4], vec![7], vec![], vec![1, 2, 3]] {
            let bytes = Header::bytes("<f8", &shape);
            assert_eq!(bytes.len() % 64, 0);
            let read = Header::read(&mut &bytes[..]).unwrap();
            assert_eq!((read.shape, read.descr.as_str(), read.fortran_order), (shape, "<f8", false));
            assert_eq!(read.data_start, bytes.len() as u64);
        }
    }

    #[test]
    fn all_versions_are_read_and_others_refused() {
        let text = b"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n";
        for version in 1..=4_u8 {
            let mut bytes = MAGIC.to_vec();
            bytes.extend([version, 0]);
            if version == 1 {
                bytes.extend((text.len() as u16).to_le_bytes());
            } else {
                bytes.extend((text.len() as u32).to_le_bytes());
            }
            bytes.extend(text);
            let read = Header::read(&mut &bytes[..]);
            if version < 4 {
                assert!(read.unwrap().fortran_order);
            } else {
                assert!(read.unwrap_err().to_string().contains("version 4"));
            }
        }
        let endless = [&MAGIC[..], &[2, 0, 255, 255, 255, 255]].concat();
        assert!(Header::read(&mut &endless[..]).unwrap_err().to_string().contains("is no header"));
        assert!(Header::read(&mut &b"NUMPY___"[..]).unwrap_err().to_string().contains("no NumPy array"));
    }

    #[test]
    fn dictionaries_that_are_none_are_refused() {
        assert!(header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}").is_some());
        for wrong in [
            "",
            "{'descr': '<f4', 'shape': (2, 3)}",
            "{'descr': '<f4', 'fortran_order': 1, 'shape': (2, 3)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3",
            "{'descr': '<f4, 'fortran_order': False}",
            "{'descr' '<f4', 'fortran_order': False, 'shape': (2, 3)}",
        ] {
            assert_eq!(header(wrong), None, "{wrong}");
        }
        let huge = header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999, 3)}")
            .unwrap();
        assert!(huge.data_bytes(huge.element().unwrap()) > 1 << 64);
    }

    #[test]
    fn types_and_shapes_that_are_no_matrix_are_refused() {
        let of = |descr: &str, shape: &[usize]| Header {
            descr: descr.into(),
            fortran_order: false,
            shape: shape.to_vec(),
            data_start: 0,
        };
        for descr in ["<f2", "<c16", "|O", "<U3", "a record", "", "é", "<f16"] {
            assert!(of(descr, &[1]).element().unwrap_err().contains("are not read"), "{descr}");
        }
        assert_eq!(of(">i2", &[]).element(), Ok(Element { number: Number::I16, big_endian: true }));
        assert_eq!(of("|b1", &[]).element(), Ok(Element { number: Number::U8, big_endian: false }));
        assert_eq!(of("<f4", &[5]).rows_and_columns(), Ok((5, 1)));
        assert!(of("<f4", &[]).rows_and_columns().unwrap_err().contains("single number"));
        assert!(of("<f4", &[1, 2, 3]).rows_and_columns().unwrap_err().contains("3 dimensions"));
    }
}
