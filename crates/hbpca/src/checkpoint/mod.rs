//! Fits that are saved while they run, and taken up again with the same bits.
//!
//! A [`Paused`] run is the [`State`] of solver, operator and driver; a [`Checkpoint`] is that with the data and the choices it
//! belongs to. What can be saved names its numbers to an [`Archive`].

mod paused;
mod session;

pub use paused::{CheckpointSink, Paused, Progress};
pub(crate) use session::Session;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::config::{FitConfig, MomentumChoice};
use crate::matrix::{Replacement, fingerprint_of_block};
use crate::observe::Record;
use crate::solver::SolverKind;
pub use crate::state::{Archive, State, Tensor};

/// This software, as checkpoints name it.
pub(crate) const SOFTWARE: &str = concat!("hbpca ", env!("CARGO_PKG_VERSION"));
/// More rows than any run reads.
const MOST_ROWS: u64 = 1 << 53;

/// A fit put aside after a look.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The software that wrote it: another version may compute other bits.
    pub software: String,
    /// Fingerprint of the data.
    pub data: String,
    /// All choices that results depend on, by name.
    pub choices: BTreeMap<String, String>,
    /// The solver that runs.
    pub solver: SolverKind,
    /// Why that solver.
    pub chosen_because: String,
    /// Components sought now: more than at first where a share of the variance is asked for.
    pub k: usize,
    /// The step size, given or found.
    pub eta: Option<f64>,
    /// Seconds of the fit, column statistics included.
    pub seconds: f64,
    /// Records of runs for fewer components that this one grew out of.
    pub earlier: Vec<Record>,
    /// The run, its state with that of the column statistics.
    pub paused: Paused,
}

/// How often a fit is saved.
///
/// ```
/// use hbpca::checkpoint::CheckpointEvery;
/// assert_eq!("1pass".parse::<CheckpointEvery>()?, CheckpointEvery::default());
/// assert_eq!("90s".parse::<CheckpointEvery>()?, CheckpointEvery::Seconds(90.0));
/// # Ok::<(), hbpca::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum CheckpointEvery {
    /// At the first look after so many more passes.
    Passes(f64),
    /// At the first look after so many more seconds.
    Seconds(f64),
}

impl Default for CheckpointEvery {
    fn default() -> Self {
        Self::Passes(1.0)
    }
}

impl fmt::Display for CheckpointEvery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passes(passes) => write!(f, "{passes}pass"),
            Self::Seconds(seconds) => write!(f, "{seconds}s"),
        }
    }
}

impl FromStr for CheckpointEvery {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unreadable = || {
            let advice = "give passes such as 1pass or 5passes, or seconds such as 60s";
            Error::parameter("checkpoint-every", text, advice)
        };
        let number = |text: &str| text.trim().parse().ok().filter(|x: &f64| *x >= 0.0 && x.is_finite());
        // "passes" ends in s, too.
        let passes = text.strip_suffix("passes").or_else(|| text.strip_suffix("pass"));
        let every = match passes {
            Some(count) => number(count).map(Self::Passes),
            None => text.strip_suffix('s').and_then(number).map(Self::Seconds),
        };
        every.ok_or_else(unreadable)
    }
}

/// Writes checkpoints.
pub type SaveCheckpoint<'a> = Box<dyn FnMut(&Checkpoint) -> Result<(), Error> + Send + 'a>;

/// How a fit is saved while it runs, and what it goes on from.
#[derive(Default)]
pub struct Checkpoints<'a> {
    /// Fingerprint of the data, weights included: [`Matrix::fingerprint`](crate::Matrix::fingerprint), or what the storage
    /// offers. Rows on disk bring their own.
    pub data: String,
    /// How often it is saved. It is also saved when it ends, however it does.
    pub every: CheckpointEvery,
    /// What saves it; an error ends the fit.
    pub save: Option<SaveCheckpoint<'a>>,
    /// What to go on from.
    pub resume: Option<Checkpoint>,
}

impl Checkpoint {
    /// Whether a fit of this data with these choices can go on from here.
    fn check(&self, data: &str, choices: &BTreeMap<String, String>) -> Result<(), Error> {
        let refused = |reason: String| Err(Error::Checkpoint(reason));
        if self.software != SOFTWARE {
            return refused(format!(
                "it was written by {:?}, and this is {SOFTWARE:?}: resume with the version that wrote it, or begin anew",
                self.software
            ));
        }
        if self.data != data {
            return refused(format!(
                "it belongs to other data ({:?}, and this is {data:?}): give the data it was made from, or begin anew",
                self.data
            ));
        }
        let nothing = String::from("nothing");
        for name in self.choices.keys().chain(choices.keys()) {
            let [there, here] = [&self.choices, choices].map(|all| all.get(name).unwrap_or(&nothing));
            // The state knows where the run began: the start need not be given again.
            if there != here && !(name == "start" && here == NO_START) {
                return refused(format!(
                    "its {name} is {there:?} where {here:?} is asked for: resume with the same, or begin anew"
                ));
            }
        }
        let known = self.paused.read;
        let sound = self.seconds >= 0.0
            && self.seconds.is_finite()
            && self.paused.seconds >= 0.0
            && self.paused.seconds.is_finite()
            && known.rows <= MOST_ROWS
            && known.full_passes <= MOST_ROWS
            && self.solver != SolverKind::Auto;
        if sound { Ok(()) } else { refused("its numbers contradict each other".into()) }
    }
}

/// What `start` says where none is given.
const NO_START: &str = "random";

impl FitConfig {
    /// Everything that bits depend on, besides the data. Limits do not belong to it, nor threads.
    pub(crate) fn choices(&self) -> BTreeMap<String, String> {
        let or_auto = |x: Option<f64>| x.map_or_else(|| "auto".to_owned(), |x| x.to_string());
        let momentum = match self.momentum {
            MomentumChoice::Adaptive => "adaptive".to_owned(),
            MomentumChoice::Dynamic => "dynamic".to_owned(),
            MomentumChoice::Oracle(lambda2) => format!("oracle with λ₂ = {lambda2}"),
        };
        let replacement = match self.replacement {
            Replacement::Without => "without",
            Replacement::With => "with",
        };
        let preparation = self.preprocessing;
        let all = [
            (
                "k",
                self.variance_share.map_or_else(|| self.k.to_string(), |share| format!("a share of {share}")),
            ),
            ("solver", self.solver.to_string()),
            ("centering", format!("{:?}", preparation.centering).to_lowercase()),
            ("scaling", format!("{:?}", preparation.scaling).to_lowercase()),
            ("eta", or_auto(self.eta)),
            ("momentum", momentum),
            ("batch", self.batch.to_string()),
            ("epoch", self.epoch.to_string()),
            ("replacement", replacement.to_owned()),
            ("arithmetic", format!("{:?}", self.precision).to_lowercase()),
            ("seed", self.seed.to_string()),
            ("start", self.start.as_ref().map_or_else(|| NO_START.to_owned(), fingerprint_of_block)),
        ];
        all.into_iter().map(|(name, choice)| (name.to_owned(), choice)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_as_they_are_written() {
        for (text, every) in [
            ("1pass", CheckpointEvery::Passes(1.0)),
            ("2.5passes", CheckpointEvery::Passes(2.5)),
            ("60s", CheckpointEvery::Seconds(60.0)),
            ("0s", CheckpointEvery::Seconds(0.0)),
        ] {
            assert_eq!(text.parse::<CheckpointEvery>().unwrap(), every);
            assert_eq!(every.to_string().parse::<CheckpointEvery>().unwrap(), every);
        }
        for text in ["", "5", "s", "pass", "-1s", "nans", "infpass", "1 hour"] {
            let error = text.parse::<CheckpointEvery>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("checkpoint-every = {text}: give passes")), "{error}");
        }
    }
}
