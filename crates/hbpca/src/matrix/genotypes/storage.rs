//! Where the codes are: in memory, in a map of a file, or elsewhere, from where they are read a span of variants at a time.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use super::{Genotypes, PER_BYTE};
use crate::Error;

/// Variants whose products are gathered before they are added to those of others: spans begin at multiples of it, so that sums do not depend on where
/// the codes are.
pub(crate) const GROUP: usize = 512;
/// A span is read at once: that many bytes, or a group where that takes more.
const BYTES_OF_A_SPAN: usize = 4 << 20;
/// Spans in memory while they are read: the one that is computed on, and the next.
const IN_FLIGHT: usize = 2;

/// Packed variants that lie elsewhere and are read again and again.
pub trait VariantSource: Send + Sync {
    /// Fills `codes` with those of variant `first` and of as many after it as it has room for, ⌈n/4⌉ bytes each.
    fn read(&self, first: usize, codes: &mut [u8]) -> Result<(), Error>;
}

/// Bytes that belong to someone else, such as a map of a file.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Where the codes are.
#[derive(Clone)]
pub(super) enum Storage {
    Held(Arc<Vec<u8>>),
    Mapped(SharedBytes),
    Read { source: Arc<dyn VariantSource>, bytes_read: Arc<AtomicU64> },
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Held(_) => "in memory",
            Self::Mapped(_) => "mapped",
            Self::Read { .. } => "read",
        })
    }
}

/// Variants that follow each other.
pub(crate) struct Span<'c> {
    /// Which.
    pub(crate) variants: Range<usize>,
    stride: usize,
    codes: &'c [u8],
}

impl Span<'_> {
    /// The codes of variant j, which is one of them.
    pub(crate) fn codes_of(&self, j: usize) -> &[u8] {
        let at = (j - self.variants.start) * self.stride;
        &self.codes[at..at + self.stride]
    }
}

/// Which span comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Ascending,
    /// After an ascending walk the last spans are still in the page cache.
    Descending,
}

impl Genotypes {
    /// Bytes of the codes of a variant.
    pub(super) fn stride(&self) -> usize {
        self.n.div_ceil(PER_BYTE)
    }

    /// Bytes of memory that the codes take: all of them, or those of the spans that are read ahead.
    pub(crate) fn memory(&self) -> usize {
        match self.storage {
            Storage::Held(_) => self.bytes(),
            Storage::Mapped(_) => 0,
            Storage::Read { .. } => IN_FLIGHT * self.variants_of_span().min(self.d) * self.stride(),
        }
    }

    /// Bytes read so far from where they lie; none of codes in memory.
    pub fn bytes_read(&self) -> u64 {
        match &self.storage {
            Storage::Read { bytes_read, .. } => bytes_read.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    /// Whether they are read anew in every pass.
    pub fn is_on_disk(&self) -> bool {
        matches!(self.storage, Storage::Read { .. })
    }

    /// Whether they are all in memory.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.storage, Storage::Held(_))
    }

    fn variants_of_span(&self) -> usize {
        match self.storage {
            Storage::Held(_) => self.d,
            _ => GROUP * (BYTES_OF_A_SPAN / (GROUP * self.stride())).max(1),
        }
    }

    /// Calls `each` for all variants in spans, the next of which is read meanwhile. Codes in memory are one span.
    pub(crate) fn for_each_span(
        &self,
        order: Order,
        mut each: impl FnMut(&Span<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let length = self.variants_of_span();
        let mut spans: Vec<_> =
            (0..self.d).step_by(length).map(|first| first..self.d.min(first + length)).collect();
        if order == Order::Descending {
            spans.reverse();
        }
        match &self.storage {
            Storage::Held(codes) => self.walk(spans, codes, each),
            Storage::Mapped(codes) => self.walk(spans, (**codes).as_ref(), each),
            Storage::Read { source, bytes_read } => {
                let stride = self.stride();
                let read = |span: &Range<usize>, codes: &mut Vec<u8>| {
                    codes.resize(span.len() * stride, 0);
                    source.read(span.start, codes)?;
                    bytes_read.fetch_add(codes.len() as u64, Ordering::Relaxed);
                    Ok(())
                };
                read_ahead(spans, read, |variants, codes| each(&Span { variants, stride, codes }))
            }
        }
    }

    fn walk(
        &self,
        spans: Vec<Range<usize>>,
        codes: &[u8],
        mut each: impl FnMut(&Span<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let stride = self.stride();
        for variants in spans {
            let codes = codes.get(variants.start * stride..variants.end * stride);
            let codes = codes.ok_or_else(|| Error::Source("the mapped genotypes became shorter".into()))?;
            each(&Span { variants, stride, codes })?;
        }
        Ok(())
    }

    /// Fills `codes` with those of variants from `first` on.
    pub(super) fn read_variants(&self, first: usize, codes: &mut [u8]) -> Result<(), Error> {
        let start = first * self.stride();
        let held: &[u8] = match &self.storage {
            Storage::Held(held) => held,
            Storage::Mapped(held) => (**held).as_ref(),
            Storage::Read { source, .. } => return source.read(first, codes),
        };
        let found = held.get(start..start + codes.len());
        codes.copy_from_slice(
            found.ok_or_else(|| Error::Source("the mapped genotypes became shorter".into()))?,
        );
        Ok(())
    }
}

/// Reads spans in this order in a thread of its own, one ahead of `each`.
fn read_ahead(
    spans: Vec<Range<usize>>,
    read: impl Fn(&Range<usize>, &mut Vec<u8>) -> Result<(), Error> + Send,
    mut each: impl FnMut(Range<usize>, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let n_spans = spans.len();
    let (hand_over, ready) = mpsc::sync_channel(IN_FLIGHT);
    let (give_back, returned) = mpsc::channel();
    (0..IN_FLIGHT).for_each(|_| drop(give_back.send(Vec::new())));
    thread::scope(|scope| {
        let reading = move || {
            for span in spans {
                let Ok(mut codes) = returned.recv() else { return };
                let found = read(&span, &mut codes).map(|()| (span, codes));
                let failed = found.is_err();
                // Nobody listens any more once the other side failed.
                if hand_over.send(found).is_err() || failed {
                    return;
                }
            }
        };
        let started = thread::Builder::new().spawn_scoped(scope, reading);
        started.map_err(|error| {
            Error::Numerical(format!("a thread that reads could not be started: {error}"))
        })?;
        // Both ends go when this is over, which ends the other thread.
        let (ready, give_back) = (ready, give_back);
        for _ in 0..n_spans {
            let Ok(found) = ready.recv() else { return Err(Error::Abandoned) };
            let (variants, codes) = found?;
            each(variants, &codes)?;
            drop(give_back.send(codes));
        }
        Ok(())
    })
}
