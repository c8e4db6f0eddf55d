//! Texts that are not UTF-8, turned into it as they are read.

use std::io::{self, Read};

/// How the characters of a text are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// The usual one.
    Utf8,
    /// Two or four bytes a character, the lower byte first.
    Utf16Le,
    /// Two or four bytes a character, the higher byte first.
    Utf16Be,
    /// One byte a character: ISO 8859-1.
    Latin1,
    /// One byte a character: that of western Windows.
    Windows1252,
}

impl Encoding {
    /// Every encoding.
    pub const ALL: [Self; 5] = [Self::Utf8, Self::Utf16Le, Self::Utf16Be, Self::Latin1, Self::Windows1252];

    /// The name users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16Le => "utf-16le",
            Self::Utf16Be => "utf-16be",
            Self::Latin1 => "latin1",
            Self::Windows1252 => "windows-1252",
        }
    }

    /// The encoding of a name users type; [`Encoding::name`] and a few synonyms.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().replace('_', "-").as_str() {
            "utf-8" | "utf8" | "ascii" => Self::Utf8,
            "utf-16le" | "utf-16-le" | "utf-16" | "utf16" => Self::Utf16Le,
            "utf-16be" | "utf-16-be" => Self::Utf16Be,
            "latin1" | "latin-1" | "iso-8859-1" => Self::Latin1,
            "windows-1252" | "cp1252" => Self::Windows1252,
            _ => return None,
        })
    }

    /// UTF-16, where a mark at the start says so, or where every other byte of the first is 0, as in Latin texts.
    pub(crate) fn recognise(head: &[u8]) -> Option<Self> {
        const SHOWN: usize = 32;
        match head {
            [0xFF, 0xFE, ..] => return Some(Self::Utf16Le),
            [0xFE, 0xFF, ..] => return Some(Self::Utf16Be),
            _ => {}
        }
        let pairs = &head.as_chunks::<2>().0[..(head.len() / 2).min(SHOWN)];
        if pairs.len() < 2 {
            return None;
        }
        let is_text = |byte: u8| byte >= b' ' || matches!(byte, b'\t' | b'\n' | b'\r');
        if pairs.iter().all(|&[low, high]| high == 0 && is_text(low)) {
            return Some(Self::Utf16Le);
        }
        pairs.iter().all(|&[high, low]| high == 0 && is_text(low)).then_some(Self::Utf16Be)
    }
}

impl std::fmt::Display for Encoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What windows-1252 has between 0x80 and 0x9F; five bytes have no character.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Reads a text as UTF-8, whatever it is stored in.
pub(crate) struct Transcoder<R> {
    inner: R,
    encoding: Encoding,
    /// Bytes that are not yet a character.
    rest: Vec<u8>,
    /// UTF-8 that was not yet handed on, and how much of it was.
    ready: Vec<u8>,
    taken: usize,
    at_start: bool,
}

impl<R: Read> Transcoder<R> {
    pub(crate) fn new(inner: R, encoding: Encoding) -> Self {
        Self { inner, encoding, rest: Vec::new(), ready: Vec::new(), taken: 0, at_start: true }
    }

    /// Turns more bytes into characters; without any at the end of the file.
    fn refill(&mut self) -> io::Result<()> {
        const BYTES: usize = 64 << 10;
        (self.taken, self.ready) = (0, Vec::new());
        while self.ready.is_empty() {
            let before = self.rest.len();
            self.rest.resize(before + BYTES, 0);
            let n = loop {
                match self.inner.read(&mut self.rest[before..]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => break other?,
                }
            };
            self.rest.truncate(before + n);
            let text = self.decode(n == 0)?;
            let text = if self.at_start { text.strip_prefix('\u{feff}').unwrap_or(&text) } else { &text };
            self.at_start &= text.is_empty();
            self.ready = text.as_bytes().to_vec();
            if n == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The characters of all bytes that are there, but for those that the next bytes complete.
    fn decode(&mut self, is_end: bool) -> io::Result<String> {
        let bytes = std::mem::take(&mut self.rest);
        let unit = match self.encoding {
            Encoding::Utf8 => return String::from_utf8(bytes).map_err(|_| broken("UTF-8")),
            Encoding::Latin1 => return Ok(bytes.iter().map(|&byte| char::from(byte)).collect()),
            Encoding::Windows1252 => return Ok(bytes.iter().map(|&byte| windows(byte)).collect()),
            Encoding::Utf16Le => u16::from_le_bytes,
            Encoding::Utf16Be => u16::from_be_bytes,
        };
        let (pairs, odd) = bytes.as_chunks::<2>();
        let mut units: Vec<u16> = pairs.iter().map(|&pair| unit(pair)).collect();
        let is_half = units.last().is_some_and(|unit| (0xD800..0xDC00).contains(unit));
        let waiting = odd.len() + if is_half { 2 } else { 0 };
        if is_half {
            units.pop();
        }
        if is_end && waiting > 0 {
            return Err(broken("UTF-16: it is cut off"));
        }
        self.rest = bytes[bytes.len() - waiting..].to_vec();
        char::decode_utf16(units).collect::<Result<String, _>>().map_err(|_| broken("UTF-16"))
    }
}

fn windows(byte: u8) -> char {
    match byte {
        0x80..=0x9F => WINDOWS[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the text is not {what}; give its --encoding"))
}

impl<R: Read> Read for Transcoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.ready.len() {
            self.refill()?;
        }
        let n = buffer.len().min(self.ready.len() - self.taken);
        buffer[..n].copy_from_slice(&self.ready[self.taken..self.taken + n]);
        self.taken += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands on a few bytes at a time, so that characters are cut.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(buffer.len());
            self.0.read(&mut buffer[..n])
        }
    }

    fn decoded(bytes: &[u8], encoding: Encoding, step: usize) -> io::Result<String> {
        let mut text = String::new();
        Transcoder::new(Slow(bytes, step), encoding).read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn texts_come_out_the_same_however_they_are_cut() {
        let text = "größe,長さ,𝛼\r\n1,2,3\n";
        for with_mark in [false, true] {
            let marked = if with_mark { format!("\u{feff}{text}") } else { text.to_owned() };
            let little: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let big: Vec<u8> = marked.encode_utf16().flat_map(u16::to_be_bytes).collect();
            for step in [1, 2, 3, 1000] {
                assert_eq!(decoded(&little, Encoding::Utf16Le, step).unwrap(), text);
                assert_eq!(decoded(&big, Encoding::Utf16Be, step).unwrap(), text);
            }
        }
        assert_eq!(decoded(b"gr\xf6\xdfe \x80", Encoding::Latin1, 2).unwrap(), "größe \u{80}");
        assert_eq!(decoded(b"gr\xf6\xdfe \x80", Encoding::Windows1252, 2).unwrap(), "größe €");
    }

    #[test]
    fn what_is_no_text_is_refused() {
        assert!(decoded(&[0x61, 0, 0x62], Encoding::Utf16Le, 9).is_err(), "cut off");
        assert!(decoded(&[0x00, 0xD8, 0x61, 0x00], Encoding::Utf16Le, 9).is_err(), "half a pair");
        assert!(decoded(&[0xff], Encoding::Utf8, 9).is_err());
    }

    #[test]
    fn utf_16_is_recognised_with_and_without_a_mark() {
        let little: Vec<u8> = "a,b\n1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "a,b\n1,2\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(Encoding::recognise(&little), Some(Encoding::Utf16Le));
        assert_eq!(Encoding::recognise(&big), Some(Encoding::Utf16Be));
        assert_eq!(Encoding::recognise(b"\xff\xfea"), Some(Encoding::Utf16Le));
        for head in [&b"a,b\n1,2\n"[..], b"", b"\0", b"\0\0\x08\x03", b"\x93NUMPY\x01\0", b"1\0"] {
            assert_eq!(Encoding::recognise(head), None, "{head:?}");
        }
        for encoding in Encoding::ALL {
            assert_eq!(Encoding::from_name(encoding.name()), Some(encoding));
        }
    }
}
