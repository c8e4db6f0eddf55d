//! What a fit does about checkpoints while it runs.

use std::collections::BTreeMap;

use super::{Checkpoint, CheckpointEvery, CheckpointSink, Checkpoints, Paused, Progress, SOFTWARE};
use crate::columns::ColumnStatistics;
use crate::config::FitConfig;
use crate::observe::Record;
use crate::stopwatch::Stopwatch;
use crate::{Error, State};

/// What a fit does about checkpoints while it runs.
pub(crate) struct Session<'a> {
    checkpoints: Checkpoints<'a>,
    choices: BTreeMap<String, String>,
    earlier: Vec<Record>,
    last: Progress,
}

impl<'a> Session<'a> {
    /// Refuses a checkpoint of another version, other data or other choices, naming the difference.
    pub(crate) fn new(config: &FitConfig, checkpoints: Checkpoints<'a>) -> Result<Self, Error> {
        let choices = config.choices();
        let mut last = Progress { passes: 0.0, seconds: 0.0, ends: false };
        if let Some(from) = &checkpoints.resume {
            from.check(&checkpoints.data, &choices)?;
            last.seconds = from.paused.seconds;
            last.passes = from.paused.history.last().map_or(0.0, |record| record.passes);
        }
        let earlier = checkpoints.resume.as_ref().map_or_else(Vec::new, |from| from.earlier.clone());
        Ok(Self { checkpoints, choices, earlier, last })
    }

    /// A clock that goes on from what the fit has taken so far.
    pub(crate) fn clock(&self) -> Stopwatch {
        self.checkpoints
            .resume
            .as_ref()
            .map_or_else(Stopwatch::start, |from| Stopwatch::start_at(from.seconds))
    }

    /// Whether the fit goes on from a checkpoint.
    pub(crate) fn resumes(&self) -> bool {
        self.checkpoints.resume.is_some()
    }

    /// Whether checkpoints are saved.
    pub(crate) fn saves(&self) -> bool {
        self.checkpoints.save.is_some()
    }

    /// Statistics of the n rows and d columns, where they are known already.
    pub(crate) fn statistics(&self, n: usize, d: usize) -> Result<Option<ColumnStatistics>, Error> {
        let Some(from) = &self.checkpoints.resume else { return Ok(None) };
        let mut statistics = ColumnStatistics::empty(d);
        let walk = |archive: &mut crate::Archive<'_>| {
            archive.part("statistics", |archive| statistics.archive(archive))
        };
        from.paused.state.restore(walk)?;
        if statistics.n_rows() == n {
            return Ok(Some(statistics));
        }
        Err(Error::Checkpoint(format!("it is of {} rows where the data has {n}", statistics.n_rows())))
    }

    /// Sets `run` up as it was when it was saved; returns why that solver, and the run itself.
    pub(crate) fn resume(&mut self, run: &mut FitConfig) -> Option<(String, Paused)> {
        let from = self.checkpoints.resume.take()?;
        (run.solver, run.eta) = (from.solver, from.eta);
        if run.variance_share.is_some() {
            run.k = from.k;
        }
        run.start = None; // where it began is in its state
        Some((from.chosen_because, from.paused))
    }

    /// What happened before the run that is resumed, for observers to hear of.
    pub(crate) fn earlier(&self) -> &[Record] {
        &self.earlier
    }

    /// A run is over, and one for more components follows.
    pub(crate) fn outgrow(&mut self, history: Vec<Record>) {
        self.earlier.extend(history);
    }

    /// Saves `run`, if that is wanted.
    pub(crate) fn sink<'b>(
        &'b mut self,
        run: &'b FitConfig,
        chosen_because: &'b str,
        statistics: Option<ColumnStatistics>,
        clock: &'b Stopwatch,
    ) -> Option<FitSink<'a, 'b>> {
        self.saves().then_some(FitSink { session: self, run, chosen_because, statistics, clock })
    }
}

/// Makes a checkpoint of a run.
pub(crate) struct FitSink<'a, 'b> {
    session: &'b mut Session<'a>,
    run: &'b FitConfig,
    chosen_because: &'b str,
    statistics: Option<ColumnStatistics>,
    clock: &'b Stopwatch,
}

impl CheckpointSink for FitSink<'_, '_> {
    fn wants(&mut self, progress: Progress) -> bool {
        let last = self.session.last;
        let due = match self.session.checkpoints.every {
            CheckpointEvery::Passes(passes) => progress.passes - last.passes >= passes,
            CheckpointEvery::Seconds(seconds) => progress.seconds - last.seconds >= seconds,
        };
        if due {
            self.session.last = progress;
        }
        due || progress.ends
    }

    fn save(&mut self, mut paused: Paused) -> Result<(), Error> {
        if let Some(statistics) = &mut self.statistics {
            let walk = |archive: &mut crate::Archive<'_>| {
                archive.part("statistics", |archive| statistics.archive(archive))
            };
            paused.state.merge(State::of(walk)?);
        }
        let checkpoints = &mut self.session.checkpoints;
        let Some(save) = &mut checkpoints.save else { return Ok(()) };
        save(&Checkpoint {
            software: SOFTWARE.into(),
            data: checkpoints.data.clone(),
            choices: self.session.choices.clone(),
            solver: self.run.solver,
            chosen_because: self.chosen_because.to_owned(),
            k: self.run.k,
            eta: self.run.eta,
            seconds: self.clock.seconds(),
            earlier: self.session.earlier.clone(),
            paused,
        })
    }
}
