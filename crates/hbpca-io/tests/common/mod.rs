//! Seeded changes of files.

/// SplitMix64: a named generator, so that the same files are tried everywhere.
pub struct Random(u64);

impl Random {
    /// From the seed of the campaign, or a fixed one.
    pub fn seeded() -> Self {
        Self(from_environment("PROPTEST_RNG_SEED").unwrap_or(1))
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    /// Changes, inserts, removes or repeats a few bytes.
    pub fn mutate(&mut self, bytes: &mut Vec<u8>) {
        const TOKENS: [&[u8]; 16] = [
            b"\n",
            b" ",
            b":",
            b",",
            b"\"",
            b"#",
            b"%",
            b"-",
            b"0",
            b"1e999",
            b"nan",
            b"99999999999999999999",
            b"\0",
            b"\xFF\xFF\xFF\xFF",
            b"\x7F\xFF\xFF\xFF",
            b"'",
        ];
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            match self.below(5) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 if at < bytes.len() => bytes[at] = self.below(256) as u8,
                2 => {
                    let token = TOKENS[self.below(TOKENS.len())];
                    bytes.splice(at..at, token.iter().copied());
                }
                3 => {
                    let end = bytes.len().min(at + 1 + self.below(8));
                    bytes.drain(at..end);
                }
                _ => {
                    let end = bytes.len().min(at + 1 + self.below(16));
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
            }
        }
    }
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|x| x.parse().ok())
}

/// How many changed files to try: those of the campaign, at least `least`.
pub fn cases(least: u64) -> u64 {
    from_environment("PROPTEST_CASES").unwrap_or(0).max(least)
}
