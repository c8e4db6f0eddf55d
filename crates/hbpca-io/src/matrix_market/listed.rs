//! Entries in the order of the file, and the matrix they make.
//!
//! The lines of a chunk of text are counted before it is parsed, so every chunk has its place in the arrays of the whole
//! beforehand, and nothing is copied.

use super::header::{Header, Symmetry};
use crate::Precision;
use crate::block::{RowBlock, Values};
use crate::sparse::{Entries, compressed};

/// The place of a chunk.
pub(super) enum Place<'a> {
    /// In arrays that are single as long as that loses nothing.
    Single(&'a mut [u32], &'a mut [f32]),
    Double(&'a mut [u32], &'a mut [f64]),
}

/// What became of a chunk whose place was waiting for it.
pub(super) struct Parsed {
    /// Each row in turn with how many entries of it follow each other.
    pub(super) runs: Vec<(u32, u32)>,
    /// Entries, at most one a line.
    pub(super) n_entries: usize,
    /// All values, if one of them did not fit into the place.
    pub(super) doubles: Option<Vec<f64>>,
    /// Bytes of text.
    pub(super) length: usize,
}

/// Entries in the order of the file.
pub(super) struct Listed {
    runs: Vec<(u32, u32)>,
    /// Longer than what is filled, as `values` is.
    columns: Vec<u32>,
    values: Values,
    filled: usize,
    /// How many entries there will be, if that is known.
    room: usize,
    pub(super) text_bytes: u64,
}

impl Listed {
    /// Room for what the header promises, if the size of the file vouches for it.
    pub(super) fn new(header: Header, size_is_known: bool, precision: Precision) -> Self {
        let room = if size_is_known { header.n_listed as usize } else { 0 };
        let values = match precision {
            Precision::F64 => Values::F64(Vec::new()),
            Precision::Auto | Precision::F32 => Values::F32(Vec::new()),
        };
        Self { runs: Vec::new(), columns: vec![0; room], values, filled: 0, room, text_bytes: 0 }
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.filled
    }

    /// One place after the other behind what is filled, each for as many entries as `sizes` says.
    pub(super) fn places(&mut self, sizes: &[usize]) -> Vec<Place<'_>> {
        let needed = self.filled + sizes.iter().sum::<usize>();
        if needed > self.columns.len() {
            self.columns.resize(needed, 0);
        }
        let columns = slices(&mut self.columns[self.filled..], sizes);
        // Room for all values waits for the first ones, which show their type.
        let room = if self.filled > 0 { self.room.max(needed) } else { needed };
        match &mut self.values {
            Values::F32(x) => {
                lengthen(x, needed, room);
                let values = slices(&mut x[self.filled..], sizes);
                columns.zip(values).map(|(columns, values)| Place::Single(columns, values)).collect()
            }
            Values::F64(x) => {
                lengthen(x, needed, room);
                let values = slices(&mut x[self.filled..], sizes);
                columns.zip(values).map(|(columns, values)| Place::Double(columns, values)).collect()
            }
        }
    }

    /// Takes note of what was parsed into places of these sizes, and closes the gaps that lines without an entry left.
    pub(super) fn accept(&mut self, pieces: Vec<Parsed>, sizes: &[usize]) {
        let mut start = self.filled;
        let end = start + sizes.iter().sum::<usize>();
        if pieces.iter().any(|piece| piece.doubles.is_some()) {
            self.widen(end);
        }
        for (piece, size) in pieces.into_iter().zip(sizes) {
            let n = piece.n_entries;
            if let (Some(doubles), Values::F64(x)) = (piece.doubles, &mut self.values) {
                x[start..start + n].copy_from_slice(&doubles[..n]);
            }
            if start > self.filled {
                self.columns.copy_within(start..start + n, self.filled);
                match &mut self.values {
                    Values::F32(x) => x.copy_within(start..start + n, self.filled),
                    Values::F64(x) => x.copy_within(start..start + n, self.filled),
                }
            }
            self.runs.extend_from_slice(&piece.runs);
            self.filled += n;
            self.text_bytes += piece.length as u64;
            start += size;
        }
    }

    /// Makes the values double; only the first `used` of them are more than room.
    fn widen(&mut self, used: usize) {
        if let Values::F32(single) = &self.values {
            let mut double = vec![0.0; self.room.max(single.len())];
            for (wide, &x) in double[..used].iter_mut().zip(single) {
                *wide = f64::from(x);
            }
            self.values = Values::F64(double);
        }
    }

    /// The rows of the matrix; symmetric ones are completed.
    pub(super) fn into_block(mut self, header: Header) -> RowBlock {
        let n_rows = header.n_rows as usize;
        self.columns.truncate(self.filled);
        match &mut self.values {
            Values::F32(x) => x.truncate(self.filled),
            Values::F64(x) => x.truncate(self.filled),
        }
        if header.symmetry != Symmetry::General || !self.runs.is_sorted_by_key(|run| run.0) {
            let mut entries = self.into_entries(n_rows);
            complete(&mut entries, header.symmetry);
            return entries.into_block();
        }
        let mut starts = vec![0_usize; n_rows + 1];
        for &(row, n) in &self.runs {
            starts[row as usize + 1] += n as usize;
        }
        drop(self.runs);
        for l in 0..n_rows {
            starts[l + 1] += starts[l];
        }
        compressed(starts, self.columns, self.values)
    }

    fn into_entries(self, n_rows: usize) -> Entries {
        let mut rows = Vec::with_capacity(self.columns.len());
        for (row, n) in self.runs {
            rows.resize(rows.len() + n as usize, row);
        }
        Entries { n_rows, rows, columns: self.columns, values: self.values }
    }
}

/// Makes `values` as long as `room` unless they are as long as `needed`.
fn lengthen<T: Copy + Default>(values: &mut Vec<T>, needed: usize, room: usize) {
    if values.len() >= needed {
        return;
    }
    if room > needed {
        // New memory is zero without being touched, and is first touched by all threads alike.
        let mut longer = vec![T::default(); room];
        longer[..values.len()].copy_from_slice(values);
        *values = longer;
    } else {
        values.resize(needed, T::default());
    }
}

/// Adds the mirror of every entry off the diagonal.
fn complete(entries: &mut Entries, symmetry: Symmetry) {
    if symmetry == Symmetry::General {
        return;
    }
    let sign = if symmetry == Symmetry::Skew { -1.0 } else { 1.0 };
    for at in 0..entries.rows.len() {
        let (row, column) = (entries.rows[at], entries.columns[at]);
        if row != column {
            entries.rows.push(column);
            entries.columns.push(row);
            match &mut entries.values {
                Values::F32(x) => x.push(sign as f32 * x[at]),
                Values::F64(x) => x.push(sign * x[at]),
            }
        }
    }
}

/// `rest` cut into slices of these sizes.
fn slices<'a, T>(mut rest: &'a mut [T], sizes: &[usize]) -> impl Iterator<Item = &'a mut [T]> {
    sizes.iter().map(move |&size| {
        let (slice, behind) = std::mem::take(&mut rest).split_at_mut(size);
        rest = behind;
        slice
    })
}
