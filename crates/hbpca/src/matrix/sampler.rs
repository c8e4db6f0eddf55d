//! Uniform mini-batches of row numbers.
//!
//! The generator is ChaCha8 (`rand_chacha`), seeded by `seed_from_u64`; integers below n are drawn by Lemire's
//! multiplication with rejection on 64-bit words. Only integer operations are used, so that the stream of batches
//! for a seed is the same on every platform. Batches are handed out in ascending order: rows are visited as they
//! lie in memory.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::{Archive, Error};

/// Whether a row may appear twice in one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// Every row at most once: a batch of n rows is the whole matrix.
    #[default]
    Without,
    /// Independent draws.
    With,
}

/// A seeded source of mini-batches of `batch` rows out of n.
///
/// ```
/// use hbpca::{Replacement, Sampler};
/// let mut sampler = Sampler::new(1000, 10, Replacement::Without, 0)?;
/// let first = sampler.draw().to_vec();
/// assert!(first.len() == 10 && first.is_sorted() && sampler.draw() != first);
/// # Ok::<(), hbpca::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sampler {
    generator: ChaCha8Rng,
    n: usize,
    replacement: Replacement,
    rows: Vec<usize>,
    chosen: Vec<u64>,
    runs: Option<Runs>,
}

/// Batches of whole runs: `rows` then holds the numbers of runs.
#[derive(Clone, Debug)]
struct Runs {
    n: usize,
    length: usize,
    rows: Vec<usize>,
}

impl Sampler {
    /// Batches of `batch` rows out of `n`.
    pub fn new(n: usize, batch: usize, replacement: Replacement, seed: u64) -> Result<Self, Error> {
        if batch == 0 {
            return Err(Error::parameter("batch", "0 rows", "give at least 1, or a share such as 1%"));
        }
        if n == 0 || (batch > n && replacement == Replacement::Without) {
            let advice = format!("the data has only {n} rows; give at most that, or a share such as 1%");
            return Err(Error::parameter("batch", format!("{batch} rows"), advice));
        }
        let chosen = if replacement == Replacement::Without { vec![0; n.div_ceil(64)] } else { Vec::new() };
        let generator = ChaCha8Rng::seed_from_u64(seed);
        Ok(Self { generator, n, replacement, rows: vec![0; batch], chosen, runs: None })
    }

    /// Batches of about `batch` rows in runs of `length` rows that follow each other, from row 0, `length`, 2·`length`, … on: what
    /// a disk reads well. Every run is equally likely, and so is every row; rows of one run come together or not at all, and the
    /// last run is short where n is no multiple of `length`.
    pub fn in_ranges(
        n: usize,
        batch: usize,
        length: usize,
        replacement: Replacement,
        seed: u64,
    ) -> Result<Self, Error> {
        let checked = Self::new(n, batch, replacement, seed)?;
        if length <= 1 {
            return Ok(checked);
        }
        let sampler = Self::new(n.div_ceil(length), batch.div_ceil(length), replacement, seed)?;
        Ok(Self { runs: Some(Runs { n, length, rows: Vec::new() }), ..sampler })
    }

    /// Rows in a batch, at most.
    pub fn batch(&self) -> usize {
        self.rows.len() * self.runs.as_ref().map_or(1, |runs| runs.length)
    }

    /// Batches of `batch` rows out of `n` from now on; the generator goes on where it is.
    pub(crate) fn resize(&mut self, n: usize, batch: usize) {
        self.n = n;
        self.rows.resize(batch, 0);
        if self.replacement == Replacement::Without {
            self.chosen.resize(n.div_ceil(64), 0);
        }
    }

    /// Walks over the position in the stream of batches.
    pub(crate) fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        // Words of 32 bits, counted in 68 bits.
        let at = self.generator.get_word_pos();
        let (mut high, mut low) = ((at >> 32) as u64, (at as u64) & u64::from(u32::MAX));
        archive.count("words_high", &mut high)?;
        archive.count("words_low", &mut low)?;
        archive.check("words_high", high < 1 << 36, "is beyond the generator's last word")?;
        archive.check("words_low", u32::try_from(low).is_ok(), "has more than 32 bits")?;
        if archive.is_restoring() {
            self.generator.set_word_pos(u128::from(high) << 32 | u128::from(low));
        }
        Ok(())
    }

    /// The next batch, ascending.
    pub fn draw(&mut self) -> &[usize] {
        match self.replacement {
            Replacement::With => {
                for row in &mut self.rows {
                    *row = below(&mut self.generator, self.n as u64) as usize;
                }
                self.rows.sort_unstable();
            }
            Replacement::Without => self.draw_distinct(),
        }
        let Some(Runs { n, length, rows }) = &mut self.runs else { return &self.rows };
        rows.clear();
        rows.extend(self.rows.iter().flat_map(|run| run * *length..(*n).min((run + 1) * *length)));
        if self.replacement == Replacement::With {
            rows.sort_unstable(); // a run drawn twice
        }
        rows
    }

    /// Marks rows in a bitmap, redrawing those already marked, and reads it off in order. Above n/2 the rows
    /// left out are drawn instead, so that redraws stay below one a row.
    fn draw_distinct(&mut self) {
        let (n, batch) = (self.n, self.rows.len());
        let complement = batch > n / 2;
        let mut to_mark = if complement { n - batch } else { batch };
        self.chosen.fill(if complement { u64::MAX } else { 0 });
        while to_mark > 0 {
            let row = below(&mut self.generator, n as u64) as usize;
            let bit = 1 << (row % 64);
            if (self.chosen[row / 64] & bit != 0) == complement {
                self.chosen[row / 64] ^= bit;
                to_mark -= 1;
            }
        }
        let mut rows = self.rows.iter_mut();
        for (i, &word) in self.chosen.iter().enumerate() {
            let mut word = word;
            while word != 0 {
                let row = i * 64 + word.trailing_zeros() as usize;
                word &= word - 1;
                match rows.next() {
                    Some(slot) => *slot = row,
                    None => return, // bits past n, set when the complement is drawn
                }
            }
        }
    }
}

/// Uniform on 0 … bound − 1 (Lemire 2019): the high word of a 64×64-bit product, redrawn where it would be biased.
pub(crate) fn below(generator: &mut ChaCha8Rng, bound: u64) -> u64 {
    loop {
        let product = u128::from(generator.next_u64()) * u128::from(bound);
        // The bias lies below 2⁶⁴ mod bound < bound; the division is rarely needed.
        let low = product as u64;
        if low >= bound || low >= bound.wrapping_neg() % bound {
            return (product >> 64) as u64;
        }
    }
}

/// `len` independent numbers with mean 0 and a bell-shaped density (the sum of four uniforms): a random direction,
/// from integer operations and exact scalings only, so that it is the same on every platform.
pub(crate) fn random_direction(seed: u64, len: usize) -> Vec<f64> {
    let mut uniform = uniform(seed);
    (0..len).map(|_| uniform() + uniform() + uniform() + uniform()).collect()
}

/// `len` independent normal numbers (Box & Muller).
pub(crate) fn random_normal(seed: u64, len: usize) -> Vec<f64> {
    let mut uniform = uniform(seed);
    let mut normal = || {
        let (radius, angle) = ((-2.0 * (0.5 - uniform()).ln()).sqrt(), std::f64::consts::TAU * uniform());
        radius * angle.cos()
    };
    (0..len).map(|_| normal()).collect()
}

/// `len` independent numbers, uniform between −½ and ½: what a space is filled up with where no direction need be as likely
/// as any other, at a quarter of the cost.
pub(crate) fn random_filling(seed: u64, len: usize) -> Vec<f64> {
    let mut uniform = uniform(seed);
    (0..len).map(|_| uniform()).collect()
}

/// Numbers between −½ and ½, from another stream than the batches of the same seed.
fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(1);
    move || (generator.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64) - 0.5
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "counts")]
mod tests {
    use super::*;

    #[test]
    fn batches_are_ascending_distinct_and_of_the_right_size() {
        for (n, batch) in [(1, 1), (64, 64), (65, 64), (100, 99), (1000, 10), (1000, 500), (1000, 501)] {
            let mut sampler = Sampler::new(n, batch, Replacement::Without, 7).unwrap();
            for _ in 0..20 {
                let rows = sampler.draw();
                assert_eq!(rows.len(), batch);
                assert!(rows.windows(2).all(|w| w[0] < w[1]) && rows[batch - 1] < n, "n={n} batch={batch}");
            }
        }
    }

    #[test]
    fn every_row_is_equally_likely() {
        // Counts are (hyper)geometric with variance ≤ T·(b/n): six standard deviations hold for all 50 rows.
        for replacement in [Replacement::With, Replacement::Without] {
            for batch in [5, 40] {
                let (n, draws) = (50, 20_000);
                let mut sampler = Sampler::new(n, batch, replacement, 1).unwrap();
                let mut counts = vec![0.0; n];
                for _ in 0..draws {
                    sampler.draw().iter().for_each(|&l| counts[l] += 1.0);
                }
                let mean = f64::from(draws) * batch as f64 / n as f64;
                for count in counts {
                    assert!((count - mean).abs() < 6.0 * mean.sqrt(), "{count} against {mean}");
                }
            }
        }
    }

    #[test]
    fn runs_come_whole_and_every_row_is_equally_likely() {
        let (n, batch, length, draws) = (47, 12, 5, 20_000);
        for replacement in [Replacement::With, Replacement::Without] {
            let mut sampler = Sampler::in_ranges(n, batch, length, replacement, 1).unwrap();
            assert_eq!(sampler.batch(), 15);
            let mut counts = vec![0.0; n];
            for _ in 0..draws {
                let rows = sampler.draw();
                assert!(rows.is_sorted() && rows.len() + 3 * length > 15);
                rows.iter().for_each(|&l| counts[l] += 1.0);
            }
            // 3 of 10 runs, the last with 2 rows; six standard deviations.
            let mean = f64::from(draws) * 0.3;
            assert!(counts.iter().all(|count| (count - mean).abs() < 6.0 * mean.sqrt()), "{counts:?}");
            assert!(counts.chunks(length).all(|run| run.iter().all(|count| *count == run[0])));
        }
        let one = Sampler::in_ranges(47, 12, 1, Replacement::Without, 3).unwrap().draw().to_vec();
        assert_eq!(one, Sampler::new(47, 12, Replacement::Without, 3).unwrap().draw());
    }

    #[test]
    fn the_stream_of_a_seed_is_fixed() {
        // Written down once; a change here changes every published result with a seed.
        let mut sampler = Sampler::new(1000, 5, Replacement::Without, 42).unwrap();
        assert_eq!([sampler.draw().to_vec(), sampler.draw().to_vec()], STREAM_42);
        let bits: Vec<u64> = random_direction(42, 2).iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits, DIRECTION_42);
    }
    const STREAM_42: [[usize; 5]; 2] = [[288, 427, 627, 681, 950], [149, 238, 308, 771, 803]];
    const DIRECTION_42: [u64; 2] = [4_596_819_928_217_986_828, 13_830_377_804_527_537_254];

    #[test]
    fn streams_go_on_where_they_were_saved() {
        use crate::State;
        for replacement in [Replacement::With, Replacement::Without] {
            let fresh = || Sampler::new(1000, 7, replacement, 3).unwrap();
            let mut sampler = fresh();
            for _ in 0..40 {
                let state = State::of(|archive| sampler.archive(archive)).unwrap();
                let mut resumed = fresh();
                state.restore(|archive| resumed.archive(archive)).unwrap();
                assert_eq!(sampler.draw(), resumed.draw());
            }
        }
    }

    #[test]
    fn batch_larger_than_n_is_refused() {
        let error = Sampler::new(10, 11, Replacement::Without, 0).unwrap_err().to_string();
        assert_eq!(
            error,
            "batch = 11 rows: the data has only 10 rows; give at most that, or a share such as 1%"
        );
        assert!(Sampler::new(10, 11, Replacement::With, 0).is_ok());
    }

    #[test]
    fn empty_batch_is_refused() {
        let error = Sampler::new(10, 0, Replacement::With, 0).unwrap_err().to_string();
        assert_eq!(error, "batch = 0 rows: give at least 1, or a share such as 1%");
    }
}
