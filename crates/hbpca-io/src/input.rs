//! Where bytes come from: files, folders of parts, standard input, memory.

use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::encoding::Transcoder;
use crate::natural_order::natural_order;
use crate::{ChunkFolder, Compression, Encoding, Format, ReadError, ReadOptions};

/// What to read: one matrix, in one or several parts that follow each other row-wise.
pub struct Input(Source);

enum Source {
    Paths(Vec<PathBuf>),
    Reader { name: String, reader: Box<dyn Read + Send> },
}

impl Input {
    /// A file, or a folder of parts.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        Self(Source::Paths(vec![path.into()]))
    }

    /// Several files or folders, parts of one matrix in this order.
    pub fn paths<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> Self {
        Self(Source::Paths(paths.into_iter().map(Into::into).collect()))
    }

    /// Standard input.
    pub fn stdin() -> Self {
        Self::reader("standard input", io::stdin())
    }

    /// Any reader; `name` stands for the file in messages.
    pub fn reader(name: impl Into<String>, reader: impl Read + Send + 'static) -> Self {
        Self(Source::Reader { name: name.into(), reader: Box::new(reader) })
    }

    /// What messages call it: the first file, or the stream.
    pub(crate) fn name(&self) -> String {
        match &self.0 {
            Source::Paths(paths) => paths.first().map_or_else(String::new, |path| path.display().to_string()),
            Source::Reader { name, .. } => name.clone(),
        }
    }

    /// The files, folders unfolded; nothing for a stream.
    pub fn files(&self) -> Result<Option<Vec<PathBuf>>, ReadError> {
        let Source::Paths(paths) = &self.0 else { return Ok(None) };
        let parts = Self(Source::Paths(paths.clone())).into_parts()?;
        let path = |part| match part {
            Part::Path(path) => Some(path),
            Part::Reader { .. } => None,
        };
        Ok(parts.into_iter().map(path).collect())
    }

    /// Whether the input can be read only once.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.0, Source::Reader { .. })
    }

    /// The parts, folders unfolded.
    pub(crate) fn into_parts(self) -> Result<Vec<Part>, ReadError> {
        match self.0 {
            Source::Reader { name, reader } => Ok(vec![Part::Reader { name, reader, size: None }]),
            Source::Paths(paths) => {
                let mut parts = Vec::new();
                for path in paths {
                    if path.is_dir() && !ChunkFolder::recognise(&path) {
                        parts.extend(folder(&path)?);
                    } else {
                        parts.push(Part::Path(path));
                    }
                }
                if parts.is_empty() {
                    return Err(ReadError::option("input", "no file was given"));
                }
                Ok(parts)
            }
        }
    }
}

impl From<&Path> for Input {
    fn from(path: &Path) -> Self {
        Self::path(path)
    }
}

/// The files in a folder, in natural order. Names that start with a dot or an underscore (such as the marks
/// that cluster software leaves) and folders within are passed over.
fn folder(path: &Path) -> Result<Vec<Part>, ReadError> {
    let name = path.display().to_string();
    let refused = |source| ReadError::io(&name, source);
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(refused)? {
        let file = entry.map_err(refused)?.path();
        let hidden = file.file_name().is_none_or(|x| x.to_string_lossy().starts_with(['.', '_']));
        if !hidden && file.is_file() {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(ReadError::malformed(&name, "the folder holds no files"));
    }
    files.sort_by(|a, b| natural_order(&a.to_string_lossy(), &b.to_string_lossy()));
    Ok(files.into_iter().map(Part::Path).collect())
}

/// One file, a chunk folder, or something like a file.
pub(crate) enum Part {
    Path(PathBuf),
    Reader { name: String, reader: Box<dyn Read + Send>, size: Option<u64> },
}

/// A part whose compression and format are known, ready to be read from its start.
pub(crate) struct Opened {
    /// The name for messages.
    pub(crate) name: String,
    pub(crate) format: Format,
    /// The decompressed bytes.
    pub(crate) stream: Box<dyn Read + Send>,
    /// How many bytes `stream` has, when that is known without reading it.
    pub(crate) size: Option<u64>,
    /// The file itself, when it is not compressed.
    pub(crate) plain: Option<PathBuf>,
}

/// Bytes looked at to find the format.
const HEAD: usize = 64 << 10;

impl Part {
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Self {
        let size = Some(bytes.len() as u64);
        Self::Reader { name: "-".into(), reader: Box::new(Cursor::new(bytes)), size }
    }

    /// The name for messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Reader { name, .. } => name.clone(),
        }
    }

    /// Finds compression and format; `counter` will count the bytes read before decompression.
    pub(crate) fn open(self, options: &ReadOptions, counter: &Arc<AtomicU64>) -> Result<Opened, ReadError> {
        let name = self.name();
        let refused = |source| ReadError::io(&name, source);
        let (path, mut raw, size): (_, Box<dyn Read + Send>, _) = match self {
            Self::Reader { reader, size, .. } => (None, reader, size),
            Self::Path(path) => {
                let file = File::open(&path).map_err(refused)?;
                let about = file.metadata().map_err(refused)?;
                let size = about.is_file().then_some(about.len());
                (Some(path), Box::new(file), size)
            }
        };
        let magic = take_head(&mut raw, 8).map_err(refused)?;
        let compression = Compression::from_content(&magic);
        let counted = Counted { inner: Cursor::new(magic).chain(raw), counter: Arc::clone(counter) };
        let mut plain: Box<dyn Read + Send> = match compression {
            None => Box::new(counted),
            Some(how) => how.decompress(BufReader::with_capacity(1 << 16, counted)).map_err(refused)?,
        };
        let mut head = take_head(&mut plain, HEAD).map_err(refused)?;
        let promised = options.format.or_else(|| path.as_deref().and_then(Format::from_path));
        let encoding = encoding(promised, &head, options);
        if let Some(encoding) = encoding {
            let encoded = Cursor::new(std::mem::take(&mut head)).chain(plain);
            plain = Box::new(Transcoder::new(encoded, encoding));
            head = take_head(&mut plain, HEAD).map_err(refused)?;
        }
        let format =
            promised.or_else(|| Format::from_content(&head)).ok_or_else(|| unknown_format(&name, &head))?;
        let as_it_lies = compression.is_none() && encoding.is_none();
        Ok(Opened {
            format,
            stream: Box::new(Cursor::new(head).chain(plain)),
            size: size.filter(|_| as_it_lies),
            plain: path.filter(|path| as_it_lies && path.is_file()),
            name,
        })
    }
}

/// What a text has to be turned into UTF-8 from, if it is one and is not that already.
fn encoding(promised: Option<Format>, head: &[u8], options: &ReadOptions) -> Option<Encoding> {
    let may_be_text = promised.map_or_else(|| Format::from_content(head).is_none(), Format::is_text);
    match options.encoding {
        Some(encoding) => promised.is_none_or(Format::is_text).then_some(encoding),
        None if may_be_text => Encoding::recognise(head),
        None => None,
    }
    .filter(|encoding| *encoding != Encoding::Utf8)
}

fn unknown_format(name: &str, head: &[u8]) -> ReadError {
    if head.trim_ascii().is_empty() {
        return ReadError::malformed(name, "the file is empty: there are no rows");
    }
    let names = Format::ALL.map(Format::name).join(", ");
    ReadError::malformed(
        name,
        format!("the format shows neither in the name nor in the content: name one of {names}"),
    )
}

/// The first bytes, at most `n`, however small the chunks in which they come.
fn take_head(reader: &mut dyn Read, n: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.take(n as u64).read_to_end(&mut head)?;
    Ok(head)
}

impl Opened {
    /// Refuses a claim of more bytes than there are. Where the size is unknown (compressed, or a pipe), only
    /// claims no machine could hold are refused here; others end with the bytes.
    pub(crate) fn refuse_more_than_there_is(&self, claimed: u128, what: &str) -> Result<(), ReadError> {
        const BEYOND_ANY_MACHINE: u128 = 1 << 46;
        let available = self.size.map_or(BEYOND_ANY_MACHINE, u128::from);
        if claimed <= available {
            return Ok(());
        }
        let there = match self.size {
            Some(size) => format!("the file has only {size}: it is cut off or its header is wrong"),
            None => "that is more than any file holds: its header is wrong".into(),
        };
        Err(ReadError::malformed(&self.name, format!("{what} need {claimed} bytes, but {there}")))
    }

    /// All bytes, in memory.
    pub(crate) fn read_all(&mut self) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::with_capacity(self.size.unwrap_or(0) as usize);
        self.stream.read_to_end(&mut bytes).map_err(|source| ReadError::io(&self.name, source))?;
        Ok(bytes)
    }
}

/// Counts the bytes that pass.
struct Counted<R> {
    inner: R,
    counter: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.counter.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
