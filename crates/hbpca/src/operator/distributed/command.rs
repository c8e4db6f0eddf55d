//! What rank 0 asks of all ranks.

use super::Communicator;
use crate::Error;
use crate::operator::Precision;

/// Numbers that a command takes.
const LENGTH: usize = 6;

/// One thing that every rank does next. What belongs to it (V, row numbers, statistics) follows in a broadcast of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Command {
    /// The fit is over.
    End,
    /// Rank `rank` failed and tells why.
    Failed { rank: usize },
    /// Gathers statistics in a pass of their own.
    Statistics,
    /// Gathers statistics of about so many rows of each rank's own.
    Guess { rows: usize, seed: u64 },
    /// Takes over the statistics of all ranks' rows, or a guess of them.
    Know { guessed: bool },
    /// Σ a(aᵀV) over all rows, or over a batch of so many.
    Sum { p: usize, batch: Option<usize>, precision: Precision },
    /// The same about guessed means, gathering statistics.
    FirstSum { p: usize },
    /// Σ aaᵀ.
    Form { precision: Precision },
    /// The same about guessed means, gathering statistics.
    FirstForm,
    /// Sends rows to rank 0: so many that are named, or its pool.
    Rows { named: Option<usize> },
    /// Tells rank 0 which rows are resident.
    Residents,
    /// Tells rank 0 a hash of all rows read.
    Digests,
    /// Fills the pool as it was after so many passes.
    Refill { passes: u64, single: bool },
}

impl Command {
    /// Rank 0 sends it, the others receive it.
    pub(super) fn exchange(self, ranks: &dyn Communicator) -> Result<Self, Error> {
        let mut numbers = self.encode();
        ranks.broadcast(&mut numbers, 0)?;
        Self::decode(numbers)
    }

    fn encode(self) -> [f64; LENGTH] {
        let single = |precision: Precision| f64::from(u8::from(precision == Precision::Single));
        let count = |count: Option<usize>| count.map_or(-1.0, |count| count as f64);
        let (code, rest) = match self {
            Self::End => (0.0, [0.0; LENGTH - 1]),
            Self::Failed { rank } => (1.0, [rank as f64, 0.0, 0.0, 0.0, 0.0]),
            Self::Statistics => (2.0, [0.0; LENGTH - 1]),
            Self::Guess { rows, seed } => {
                (3.0, [rows as f64, (seed >> 32) as f64, (seed & 0xffff_ffff) as f64, 0.0, 0.0])
            }
            Self::Know { guessed } => (4.0, [f64::from(u8::from(guessed)), 0.0, 0.0, 0.0, 0.0]),
            Self::Sum { p, batch, precision } => (5.0, [p as f64, count(batch), single(precision), 0.0, 0.0]),
            Self::FirstSum { p } => (6.0, [p as f64, 0.0, 0.0, 0.0, 0.0]),
            Self::Form { precision } => (7.0, [single(precision), 0.0, 0.0, 0.0, 0.0]),
            Self::FirstForm => (8.0, [0.0; LENGTH - 1]),
            Self::Rows { named } => (9.0, [count(named), 0.0, 0.0, 0.0, 0.0]),
            Self::Residents => (10.0, [0.0; LENGTH - 1]),
            Self::Refill { passes, single } => {
                (11.0, [passes as f64, f64::from(u8::from(single)), 0.0, 0.0, 0.0])
            }
            Self::Digests => (12.0, [0.0; LENGTH - 1]),
        };
        let mut numbers = [code; LENGTH];
        numbers[1..].copy_from_slice(&rest);
        numbers
    }

    fn decode(numbers: [f64; LENGTH]) -> Result<Self, Error> {
        let [code, a, b, c, ..] = numbers;
        let size = |x: f64| x as usize;
        let count = |x: f64| (x >= 0.0).then_some(x as usize);
        let precision = |x: f64| if x > 0.0 { Precision::Single } else { Precision::Double };
        Ok(match size(code) {
            0 => Self::End,
            1 => Self::Failed { rank: size(a) },
            2 => Self::Statistics,
            3 => Self::Guess { rows: size(a), seed: ((b as u64) << 32) | c as u64 },
            4 => Self::Know { guessed: a > 0.0 },
            5 => Self::Sum { p: size(a), batch: count(b), precision: precision(c) },
            6 => Self::FirstSum { p: size(a) },
            7 => Self::Form { precision: precision(a) },
            8 => Self::FirstForm,
            9 => Self::Rows { named: count(a) },
            10 => Self::Residents,
            11 => Self::Refill { passes: a as u64, single: b > 0.0 },
            12 => Self::Digests,
            _ => return Err(Error::Communication(format!("rank 0 sent an unknown command ({code})"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_arrive_as_they_were_sent() {
        let precision = Precision::Single;
        for command in [
            Command::End,
            Command::Failed { rank: 3 },
            Command::Statistics,
            Command::Guess { rows: 500, seed: u64::MAX - 12_345 },
            Command::Know { guessed: true },
            Command::Sum { p: 7, batch: None, precision },
            Command::Sum { p: 1, batch: Some(0), precision: Precision::Double },
            Command::FirstSum { p: 2 },
            Command::Form { precision },
            Command::FirstForm,
            Command::Rows { named: None },
            Command::Rows { named: Some(9) },
            Command::Residents,
            Command::Refill { passes: 4, single: true },
            Command::Digests,
        ] {
            assert_eq!(Command::decode(command.encode()).unwrap(), command);
        }
        assert!(Command::decode([77.0; LENGTH]).is_err());
    }
}
