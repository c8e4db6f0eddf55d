//! The paper's central trade-off made visible: the final error over step size × batch size.

use hbpca::theory::{Problem, best_step_size};

use crate::LabError;
use crate::experiment::StudySpec;
use crate::figure::chart::HeatMap;
use crate::figure::text::{grouped, per_cent};
use crate::progress::Progress;
use crate::race::side_by_side::side_by_side;
use crate::race::{Clock, Curve, RunSpec, RunStore, Track};
use crate::statistics::log_spaced;

/// One batch size of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyLine {
    /// |S| in rows.
    pub batch: usize,
    /// m = n/|S|.
    pub epoch: usize,
    /// Mean log₁₀ error at the end of the budget, for every x.
    pub log_errors: Vec<f64>,
    /// Digits won over the second half of the budget, for every x.
    pub late_digits: Vec<f64>,
    /// Where the theory expects the best step, as x; nothing where its model has no answer.
    pub theory: Option<f64>,
}

/// Final errors of one data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The data set's short name.
    pub dataset: String,
    /// The data set's name on figures.
    pub title: String,
    /// Rows of the files, where only some were used.
    pub thinned_from: Option<usize>,
    /// The solver's name on figures.
    pub solver: String,
    /// n.
    pub n: usize,
    /// λ₁, which turns x into η.
    pub lambda1: f64,
    /// Passes of every run.
    pub passes: f64,
    /// Error at which runs stop.
    pub floor: f64,
    /// Step sizes, as x = ηλ₁/(1 − η).
    pub x: Vec<f64>,
    /// Lines by increasing batch.
    pub lines: Vec<StudyLine>,
}

impl Study {
    /// Runs `spec` on a data set, taking finished runs from `store`.
    pub fn run(
        spec: &StudySpec,
        track: &Track<'_>,
        store: &RunStore,
        progress: &Progress,
    ) -> Result<Self, LabError> {
        let reference = track.reference;
        let [lambda1, lambda2] = reference.eigenvalues;
        let scale = spec.solver.step_scale();
        let x = log_spaced(spec.grid.smallest, spec.grid.largest, spec.grid.points);
        let mut lines: Vec<StudyLine> = Vec::new();
        for share in spec.batches()? {
            let batch = share.rows(reference.n)?;
            if lines.iter().any(|line| line.batch == batch) {
                continue;
            }
            let epoch = (reference.n as f64 / batch as f64).round().max(2.0) as usize;
            let cells: Vec<(f64, u64)> =
                x.iter().flat_map(|x| (0..spec.seeds).map(move |seed| (*x, seed))).collect();
            let runs = side_by_side(&cells, |(x, seed)| {
                progress.say(&format!("{} {}: |S| = {share}, x = {x:.1e}", spec.name, track.dataset.id));
                let (contender, passes, floor) = (spec.solver, spec.passes, spec.floor);
                let (eta, seed, clock) = (Some(scale.eta(*x, lambda1)), *seed, Clock::Processor);
                store.obtain(track, &RunSpec { contender, eta, batch, epoch, seed, passes, floor, clock })
            })?;
            let curves: Vec<Curve> = runs.chunks(cells.len() / x.len()).map(Curve::new).collect();
            let log_errors: Vec<f64> = curves.iter().map(Curve::final_log_error).collect();
            let halfway = curves.iter().map(|curve| curve.log_error_at(spec.passes / 2.0));
            let late_digits = halfway.zip(&log_errors).map(|(before, end)| before - end).collect();
            let problem = Problem::new(lambda1, lambda2, reference.variance_of(batch), epoch);
            let theory = problem.ok().map(|problem| scale.x(best_step_size(&problem).eta, lambda1));
            lines.push(StudyLine { batch, epoch, log_errors, late_digits, theory });
        }
        Ok(Self {
            dataset: track.dataset.id.clone(),
            title: track.dataset.title.clone(),
            thinned_from: track.dataset.thinned_from,
            solver: spec.solver.label(),
            n: reference.n,
            lambda1,
            passes: spec.passes,
            floor: spec.floor,
            x,
            lines,
        })
    }

    /// The map of final errors, with the theory's best step drawn in.
    pub fn heat_map(&self, note: Option<String>) -> HeatMap {
        let line = |line: &StudyLine| {
            let share = per_cent(line.batch as f64 / self.n as f64);
            format!("{share} ({})", grouped(line.batch))
        };
        HeatMap {
            title: format!("{} on {}: error after {} passes", self.solver, self.title, self.passes),
            note,
            x_label: "step size, x = ηλ₁/(1 − η)".into(),
            x: self.x.clone(),
            y_label: "batch |S|, with m = n/|S|".into(),
            y: self.lines.iter().map(line).collect(),
            value_label: "mean log₁₀ of 1 − (w̃ᵀu₁)²; darker is better".into(),
            values: self.lines.iter().map(|line| line.log_errors.clone()).collect(),
            marks: self.lines.iter().map(|line| line.theory).collect(),
            mark_label: "the best step by the theory's model (at the edge where it lies beyond)".into(),
        }
    }

    /// The study as CSV.
    pub fn csv(&self) -> String {
        let cells = |line: &StudyLine, x: f64, error: f64| {
            let theory = line.theory.map_or(String::new(), |x| format!("{x:e}"));
            format!("{},{},{},{x:e},{error},{theory}", self.dataset, line.batch, line.epoch)
        };
        let of_line = |line: &StudyLine| -> Vec<String> {
            self.x.iter().zip(&line.log_errors).map(|(x, error)| cells(line, *x, *error)).collect()
        };
        self.lines.iter().flat_map(of_line).flat_map(|cells| [cells, "\n".to_owned()]).collect()
    }

    /// Header of [`Study::csv`].
    pub const CSV_HEADER: &'static str = "dataset,batch,epoch,x,mean_log10_error,theory_x\n";
}

impl StudyLine {
    /// Column and value of the smallest error.
    pub fn best(&self) -> Option<(usize, f64)> {
        self.log_errors.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Whether some step converges: to the floor, or below 10⁻¹ and by another factor of two over the second half of
    /// the budget.
    pub fn converges(&self, floor: f64) -> bool {
        let falls = |(error, digits): (&f64, &f64)| *error < -1.0 && *digits >= 2.0_f64.log10();
        let at_floor = |error: &f64| *error <= floor.log10();
        self.log_errors.iter().any(at_floor) || self.log_errors.iter().zip(&self.late_digits).any(falls)
    }
}
