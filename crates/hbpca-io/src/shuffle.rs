//! Rows in random order, in bounded memory.
//!
//! Every row goes to one of P buckets, drawn independently and uniformly, and each bucket is shuffled in memory when all rows
//! are there. Given the sizes of the buckets, every assignment of rows to them is equally likely, and so is every order within;
//! the n! permutations hence are. Memory holds one bucket: a few parts' worth, or 1/512 of the data if that is more.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

use hbpca::Matrix;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::WriteError;
use crate::block::{Labels, Layout, RowBlock, Values};
use crate::sink::{RowSink, Summary, for_each_dense};

/// The most buckets: each is an open file.
const MOST_BUCKETS: u64 = 512;

/// Hands rows on to another sink, in random order.
pub(crate) struct Shuffle {
    name: String,
    sink: Box<dyn RowSink>,
    generator: ChaCha8Rng,
    buckets: Vec<Bucket>,
    summary: Summary,
    record: Vec<u8>,
}

/// Rows that wait in an unnamed file.
struct Bucket {
    out: BufWriter<File>,
    n_rows: usize,
}

impl Shuffle {
    /// A shuffle on the way to `sink`; what waits is kept in `folder`, about `bucket_bytes` in one file.
    pub(crate) fn new(
        sink: Box<dyn RowSink>,
        name: &str,
        folder: &Path,
        summary: &Summary,
        seed: u64,
        bucket_bytes: usize,
    ) -> Result<Self, WriteError> {
        let entry = if summary.single { 4 } else { 8 } + if summary.sparse { 4 } else { 0 };
        let bytes = (summary.n_entries as u64).saturating_mul(entry);
        let n_buckets = bytes.div_ceil(bucket_bytes.max(1) as u64).clamp(1, MOST_BUCKETS);
        let bucket = |_| {
            let file = tempfile::tempfile_in(folder)?;
            Ok(Bucket { out: BufWriter::with_capacity(64 << 10, file), n_rows: 0 })
        };
        let buckets: io::Result<Vec<Bucket>> = (0..n_buckets).map(bucket).collect();
        Ok(Self {
            name: name.to_owned(),
            sink,
            generator: ChaCha8Rng::seed_from_u64(seed),
            buckets: buckets.map_err(|source| WriteError::io(name, source))?,
            summary: *summary,
            record: Vec::new(),
        })
    }

    /// Row `l` as bytes: the number of its entries and their columns if rows are sparse, values, label.
    fn encode(&mut self, rows: &Matrix<'_>, l: usize, labels: Option<&Labels>) {
        let Summary { sparse, single, .. } = self.summary;
        let record = &mut self.record;
        record.clear();
        if sparse {
            let mut n = 0_u32;
            record.extend([0; 4]);
            rows.for_each_in_row(l, |j, _| {
                record.extend((j as u32).to_le_bytes());
                n += 1;
            });
            record[..4].copy_from_slice(&n.to_le_bytes());
        }
        let push = |value: f64| {
            if single {
                record.extend((value as f32).to_le_bytes());
            } else {
                record.extend(value.to_le_bytes());
            }
        };
        if sparse {
            let mut push = push;
            rows.for_each_in_row(l, |_, value| push(value));
        } else {
            for_each_dense(rows, l, push);
        }
        let record = &mut self.record;
        match labels {
            None => record.push(0),
            Some(Labels::Numbers(x)) => {
                record.push(1);
                record.extend(x[l].to_le_bytes());
            }
            Some(Labels::Texts(x)) => {
                record.push(2);
                record.extend((x[l].len() as u32).to_le_bytes());
                record.extend(x[l].as_bytes());
            }
        }
    }

    /// The rows of a bucket, shuffled.
    fn shuffled(&mut self, bucket: Bucket) -> io::Result<RowBlock> {
        let n = bucket.n_rows;
        let mut file = bucket.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        let mut input = BufReader::with_capacity(1 << 20, file);
        let rows: io::Result<Vec<Row>> = (0..n).map(|_| Row::read(&mut input, &self.summary)).collect();
        let mut rows = rows?;
        for l in (1..n).rev() {
            rows.swap(l, below(&mut self.generator, l as u64 + 1) as usize);
        }
        Ok(self.block(rows))
    }

    fn block(&self, rows: Vec<Row>) -> RowBlock {
        let mut values = if self.summary.single { Values::F32(Vec::new()) } else { Values::F64(Vec::new()) };
        let (mut columns, mut row_ends) = (Vec::new(), Vec::new());
        let mut labels = Some(Labels::Numbers(Vec::new()));
        for row in rows {
            values.append(row.values);
            columns.extend(row.columns);
            row_ends.push(values.len());
            labels = match (labels, row.label) {
                (Some(mut all), Some(label)) => {
                    all.append(label);
                    Some(all)
                }
                _ => None,
            };
        }
        let layout = if self.summary.sparse {
            Layout::Sparse { row_ends, columns }
        } else {
            Layout::Dense(self.summary.n_columns)
        };
        RowBlock { layout, values, labels, kept: Vec::new(), narrowed: false }
    }
}

impl RowSink for Shuffle {
    fn write_rows(&mut self, rows: &Matrix<'_>, labels: Option<&Labels>) -> Result<(), WriteError> {
        for l in 0..rows.n_rows() {
            self.encode(rows, l, labels);
            let chosen = below(&mut self.generator, self.buckets.len() as u64) as usize;
            let bucket = &mut self.buckets[chosen];
            bucket.n_rows += 1;
            bucket.out.write_all(&self.record).map_err(|source| WriteError::io(&self.name, source))?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), WriteError> {
        for bucket in std::mem::take(&mut self.buckets) {
            if bucket.n_rows == 0 {
                continue;
            }
            let mut block = self.shuffled(bucket).map_err(|source| WriteError::io(&self.name, source))?;
            let labels = block.labels.take();
            let matrix = block
                .into_matrix(self.summary.n_columns, 0)
                .map_err(|error| WriteError::unsuitable(&self.name, error.to_string()))?;
            self.sink.write_rows(&matrix, labels.as_ref())?;
        }
        self.sink.finish()
    }
}

/// A row that waited.
struct Row {
    columns: Vec<u32>,
    values: Values,
    label: Option<Labels>,
}

impl Row {
    fn read(input: &mut impl Read, summary: &Summary) -> io::Result<Self> {
        let mut columns = Vec::new();
        let mut n = summary.n_columns;
        if summary.sparse {
            n = u32::from_le_bytes(array(input)?) as usize;
            columns = (0..n).map(|_| array(input).map(u32::from_le_bytes)).collect::<io::Result<_>>()?;
        }
        let values = if summary.single {
            Values::F32((0..n).map(|_| array(input).map(f32::from_le_bytes)).collect::<io::Result<_>>()?)
        } else {
            Values::F64((0..n).map(|_| array(input).map(f64::from_le_bytes)).collect::<io::Result<_>>()?)
        };
        let [kind] = array(input)?;
        let label = match kind {
            0 => None,
            1 => Some(Labels::Numbers(vec![f64::from_le_bytes(array(input)?)])),
            _ => {
                let mut text = vec![0; u32::from_le_bytes(array(input)?) as usize];
                input.read_exact(&mut text)?;
                Some(Labels::Texts(vec![String::from_utf8_lossy(&text).into_owned()]))
            }
        };
        Ok(Self { columns, values, label })
    }
}

fn array<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Uniform on 0 … bound − 1 (Lemire 2019): the high word of a 64×64-bit product, redrawn where it would be biased.
fn below(generator: &mut ChaCha8Rng, bound: u64) -> u64 {
    let threshold = bound.wrapping_neg() % bound;
    loop {
        let product = u128::from(generator.next_u64()) * u128::from(bound);
        if product as u64 >= threshold {
            return (product >> 64) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hbpca::{Csr, Dense};
    use std::sync::{Arc, Mutex};

    /// Keeps the first value and the label of every row.
    struct Kept(Arc<Mutex<Vec<(f64, String)>>>);

    impl RowSink for Kept {
        fn write_rows(&mut self, rows: &Matrix<'_>, labels: Option<&Labels>) -> Result<(), WriteError> {
            let mut kept = self.0.lock().unwrap();
            for l in 0..rows.n_rows() {
                let mut first = None;
                rows.for_each_in_row(l, |_, x| first = first.or(Some(x)));
                kept.push((first.unwrap(), labels.map_or_else(String::new, |all| all.text(l).into_owned())));
            }
            Ok(())
        }

        fn finish(self: Box<Self>) -> Result<(), WriteError> {
            Ok(())
        }
    }

    fn shuffled(x: &Matrix<'_>, labels: Option<&Labels>, seed: u64, bytes: usize) -> Vec<(f64, String)> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let sink = Box::new(Kept(Arc::clone(&kept)));
        let folder = std::env::temp_dir();
        let mut shuffle = Box::new(Shuffle::new(sink, "x", &folder, &Summary::of(x), seed, bytes).unwrap());
        shuffle.write_rows(x, labels).unwrap();
        shuffle.finish().unwrap();
        Arc::into_inner(kept).unwrap().into_inner().unwrap()
    }

    fn column(n: usize) -> Matrix<'static> {
        Dense::new((0..n).map(|l| l as f64).collect(), n, 1).unwrap().into()
    }

    #[test]
    fn every_permutation_is_equally_likely() {
        let x = column(4);
        // Two rows a bucket on average: the law must not show the buckets.
        let (n_trials, mut counts) = (4800_u32, std::collections::HashMap::new());
        for seed in 0..n_trials {
            let order: Vec<u64> =
                shuffled(&x, None, u64::from(seed), 16).iter().map(|x| x.0 as u64).collect();
            *counts.entry(order).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        let expected = f64::from(n_trials) / 24.0;
        let chi2: f64 = counts.values().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
        // χ² with 23 degrees of freedom exceeds 23 + 6√46 with a probability below 10⁻⁴.
        assert!(chi2 < 23.0 + 6.0 * 46_f64.sqrt(), "χ² = {chi2}");
    }

    #[test]
    fn the_seed_decides_and_every_row_comes_once_with_its_label() {
        let numbers = Labels::Numbers((0..3000).map(f64::from).collect());
        let texts = Labels::Texts((0..3000).map(|l| l.to_string()).collect());
        let sparse = Csr::new(
            9,
            (0..=3000).collect::<Vec<_>>(),
            vec![8; 3000],
            (0..3000).map(|l| l as f32).collect::<Vec<_>>(),
        );
        for x in [column(3000), sparse.unwrap().into()] {
            for labels in [&numbers, &texts] {
                let [a, b, c] = [1, 1, 2].map(|seed| shuffled(&x, Some(labels), seed, 800));
                assert_eq!(a, b);
                assert_ne!(a, c);
                assert!(a.iter().all(|(value, label)| value.to_string() == *label));
                let mut sorted: Vec<usize> = a.iter().map(|x| x.0 as usize).collect();
                assert!(!sorted.is_sorted());
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..3000));
            }
        }
    }
}
