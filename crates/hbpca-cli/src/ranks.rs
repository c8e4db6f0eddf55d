//! The ranks that a launcher started, and what they agree on.

use hbpca::Error;
use hbpca::operator::Communicator;

use crate::exit::{Exit, Failure};

#[cfg(unix)]
pub use hbpca_mpi::{Launcher, Mpi};

/// Joins the other ranks, if a launcher started several.
#[cfg(unix)]
pub fn join() -> Result<Option<Mpi>, Failure> {
    Mpi::start().map_err(|error| Failure::Usage(error.to_string()))
}

/// Whether a launcher made this process another rank than the first, whose messages are enough.
pub fn is_another() -> bool {
    #[cfg(not(unix))]
    return false;
    #[cfg(unix)]
    Launcher::of_environment().is_some_and(|launcher| launcher.rank.is_some_and(|rank| rank > 0))
}

/// Before the ranks have met, each fails alone, and a launcher ends all of them with the first: rank 0 gets the time to say why.
pub fn let_rank_0_speak() {
    if is_another() {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

/// What everyone did, or the failure of the first rank that could not, on every rank.
pub fn agree<T>(ranks: &dyn Communicator, own: Result<T, Failure>) -> Result<T, Failure> {
    let failed = first(ranks, own.is_err()).map_err(|error| Failure::ranks(&error))?;
    let Some(rank) = failed else { return own };
    let text = own.as_ref().err().map_or_else(String::new, ToString::to_string);
    let code = own.as_ref().err().map_or(0, |failure| failure.exit() as u8);
    let (code, text) = told(ranks, rank, code, &text).map_err(|error| Failure::ranks(&error))?;
    match own {
        Err(failure) if rank == ranks.rank() => Err(failure),
        _ => Err(Failure::OnRank { rank, exit: Exit::of_code(code), message: text }),
    }
}

/// Whether all say yes.
pub fn all(ranks: &dyn Communicator, yes: bool) -> Result<bool, Failure> {
    first(ranks, !yes).map(|no| no.is_none()).map_err(|error| Failure::ranks(&error))
}

/// The sum of everyone's counts.
pub fn total(ranks: &dyn Communicator, count: usize) -> Result<usize, Failure> {
    let sum = || {
        let mut sum = [count as f64];
        if ranks.rank() > 0 {
            ranks.send(&sum, 0)?;
        } else {
            for rank in 1..ranks.size() {
                let mut theirs = [0.0];
                ranks.receive(&mut theirs, rank)?;
                sum[0] += theirs[0];
            }
        }
        ranks.broadcast(&mut sum, 0)?;
        Ok(sum[0] as usize)
    };
    sum().map_err(|error: Error| Failure::ranks(&error))
}

/// The column names of rank 0, which those of all other ranks must be: rows with the columns in another order would be added up
/// silently.
pub fn same_names(
    ranks: &dyn Communicator,
    own: Option<Vec<String>>,
) -> Result<Option<Vec<String>>, Failure> {
    let text = own.as_ref().map_or_else(String::new, |names| names.join("\n"));
    let (named, first) =
        told(ranks, 0, u8::from(own.is_some()), &text).map_err(|error| Failure::ranks(&error))?;
    let differ = named != u8::from(own.is_some()) || first != text;
    let way_out = "columns are not those of rank 0's parts; on several ranks all parts have the same columns in the same order: \
                   convert them to one chunk folder first (hbpca convert PARTS all.chunks), which matches them by name";
    agree(ranks, if differ { Err(Failure::Input(format!("its {way_out}"))) } else { Ok(own) })
}

/// The first rank that says yes.
fn first(ranks: &dyn Communicator, yes: bool) -> Result<Option<usize>, Error> {
    let mut first = [if yes { ranks.rank() } else { ranks.size() } as f64];
    if ranks.rank() > 0 {
        ranks.send(&first, 0)?;
    } else {
        for rank in 1..ranks.size() {
            let mut theirs = [0.0];
            ranks.receive(&mut theirs, rank)?;
            first[0] = first[0].min(theirs[0]);
        }
    }
    ranks.broadcast(&mut first, 0)?;
    let first = first[0] as usize;
    Ok((first < ranks.size()).then_some(first))
}

/// What rank `rank` says: a code and a text.
fn told(ranks: &dyn Communicator, rank: usize, code: u8, text: &str) -> Result<(u8, String), Error> {
    let mut head = [f64::from(code), text.len() as f64];
    ranks.broadcast(&mut head, rank)?;
    let mut bytes: Vec<f64> = text.bytes().map(f64::from).collect();
    bytes.resize(head[1] as usize, 0.0);
    ranks.broadcast(&mut bytes, rank)?;
    let bytes: Vec<u8> = bytes.into_iter().map(|x| x as u8).collect();
    Ok((head[0] as u8, String::from_utf8_lossy(&bytes).into_owned()))
}

/// Ends this rank as rank 0 ends: with its exit code. Where ranks lost each other, all are ended.
#[cfg(unix)]
pub fn part(ranks: &Mpi, result: &Result<Exit, Failure>) -> u8 {
    let own = match result {
        Ok(exit) => *exit,
        Err(failure) => failure.exit(),
    } as u8;
    if matches!(result, Err(Failure::Ranks(_))) {
        ranks.abort(own);
        return own;
    }
    let Ok((code, _)) = told(ranks, 0, own, "") else {
        ranks.abort(own);
        return own;
    };
    ranks.finish();
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use hbpca::operator::{ThreadRank, thread_ranks};

    fn on_three_ranks<T: Send>(each: impl Fn(ThreadRank) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let each = &each;
            let running: Vec<_> =
                thread_ranks(3).into_iter().map(|rank| scope.spawn(move || each(rank))).collect();
            running.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }

    #[test]
    fn other_columns_than_those_of_rank_0_are_refused() {
        let names = |of: &[&str]| Some(of.iter().map(ToString::to_string).collect::<Vec<_>>());
        let same = on_three_ranks(|rank| same_names(&rank, names(&["a", "b"])).unwrap());
        assert_eq!(same, vec![names(&["a", "b"]); 3]);
        for other in [names(&["b", "a"]), names(&["a"]), None] {
            let said = on_three_ranks(|rank| {
                let own = if rank.rank() == 2 { other.clone() } else { names(&["a", "b"]) };
                same_names(&rank, own).unwrap_err().to_string()
            });
            assert!(said[0].starts_with("rank 2: its columns are not those of rank 0"), "{said:?}");
        }
    }

    #[test]
    fn the_first_failure_is_everyones() {
        let failures = on_three_ranks(|rank| {
            let own = match rank.rank() {
                0 => Ok(()),
                1 => Err(Failure::Input("x.csv: no such file".into())),
                _ => Err(Failure::Usage("later".into())),
            };
            agree(&rank, own).unwrap_err()
        });
        let said: Vec<String> = failures.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            ["rank 1: x.csv: no such file", "x.csv: no such file", "rank 1: x.csv: no such file"]
        );
        assert!(failures.iter().all(|failure| failure.exit() == Exit::BadInput));
    }
}
