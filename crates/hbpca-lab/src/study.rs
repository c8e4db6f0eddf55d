//! The paper's central trade-off made visible: the final error over step size × batch size.

use hbpca::theory::{Problem, best_step_size};

use crate::LabError;
use crate::experiment::StudySpec;
use crate::figure::chart::HeatMap;
use crate::figure::text::grouped;
use crate::progress::Progress;
use crate::race::side_by_side::side_by_side;
use crate::race::{Clock, Curve, Run, RunSpec, RunStore, Track};
use crate::statistics::log_spaced;

/// One batch size of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyLine {
    /// |S| as the description has it.
    pub share: String,
    /// |S| in rows.
    pub batch: usize,
    /// m = n/|S|.
    pub epoch: usize,
    /// Mean log₁₀ error at the end of the budget, for every x.
    pub log_errors: Vec<f64>,
    /// Whether every run converges, for every x.
    pub converges: Vec<bool>,
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
            let converging = |runs: &[Run]| runs.iter().all(|run| converges(run, spec));
            let converges = runs.chunks(cells.len() / x.len()).map(converging).collect();
            let problem = Problem::new(lambda1, lambda2, reference.variance_of(batch), epoch);
            let theory = problem.ok().map(|problem| scale.x(best_step_size(&problem).eta, lambda1));
            lines.push(StudyLine { share: share.to_string(), batch, epoch, log_errors, converges, theory });
        }
        Ok(Self {
            dataset: track.dataset.id.clone(),
            title: track.dataset.title.clone(),
            thinned_from: track.dataset.thinned_from,
            solver: spec.solver.label(),
            n: reference.n,
            lambda1,
            passes: spec.passes,
            x,
            lines,
        })
    }

    /// The map of final errors, with the theory's best step drawn in.
    pub fn heat_map(&self, note: Option<String>) -> HeatMap {
        let line = |line: &StudyLine| format!("{} ({})", line.share, grouped(line.batch));
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
}

/// Whether a run reaches the floor, or halves tan²∠(w̃, u₁) over each half of the budget. Linear convergence is that of
/// tan², also at the start where the error itself is still near 1.
fn converges(run: &Run, spec: &StudySpec) -> bool {
    let curve = Curve::new(std::slice::from_ref(run));
    let at_floor = run.looks.last().is_some_and(|look| look.error <= spec.floor);
    let tangent = |passes: f64| {
        let square = 10.0_f64.powf(curve.log_error_at(passes));
        square / (1.0 - square)
    };
    let [start, middle, end] = [0.0, spec.passes / 2.0, spec.passes].map(tangent);
    at_floor || (middle <= start / 2.0 && end <= middle / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::Look;
    use hbpca::Outcome;

    fn run(errors: &[f64]) -> Run {
        let look = |(i, error): (usize, &f64)| Look {
            passes: 1.0 + 3.0 * i as f64,
            seconds: 0.0,
            error: *error,
            lambda2: None,
        };
        let looks = errors.iter().enumerate().map(look).collect();
        Run { seed: 0, eta: None, outcome: Outcome::Budget, looks }
    }

    #[test]
    fn a_tangent_that_shrinks_converges_and_one_that_stalls_does_not() {
        let spec = StudySpec { passes: 16.0, ..StudySpec::built_in().unwrap() };
        // tan² = 1000·4⁻ⁱ: the error is still above a half after four epochs.
        let slow: Vec<f64> = (0..5).map(|i| 1.0 / (1.0 + 0.25_f64.powi(i).recip() / 1000.0)).collect();
        assert!(slow[4] > 0.5 && converges(&run(&slow), &spec));
        assert!(!converges(&run(&[0.9, 1e-3, 1e-3, 1e-3, 1e-3]), &spec), "falls and stalls");
        assert!(!converges(&run(&[0.9, 0.95, 0.5, 0.97, 1.0]), &spec), "wanders");
        assert!(converges(&run(&[0.9, 1e-9, spec.floor]), &spec), "reaches the floor early");
    }
}
