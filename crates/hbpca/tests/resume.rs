//! A run that was put aside and taken up again has the same bits as one that was not.
#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    clippy::cast_possible_wrap,
    reason = "tests stop at surprises, compare bits and count small"
)]

mod common;

use std::ops::ControlFlow;

use common::*;
use hbpca::checkpoint::{Checkpoint, CheckpointEvery, Checkpoints, State, Tensor};
use hbpca::{
    Batch, Error, Event, Fit, FitConfig, Limits, Matrix, MomentumChoice, Observer, Outcome, Preprocessing,
    Record, Replacement, SolverKind,
};

const N: usize = 400;
const D: usize = 50;

fn data() -> [(&'static str, Matrix<'static>); 2] {
    let values = sparse_values(N, D, 0.3, 5);
    [("dense", dense_f32(&values, D)), ("sparse", csr(&values, D))]
}

/// Columns enough for all solvers to look more than a few times.
fn wide_data() -> [(&'static str, Matrix<'static>); 2] {
    let d = 260;
    let values = sparse_values(N, d, 0.3, 5);
    [("dense", dense_f32(&values, d)), ("sparse", csr(&values, d))]
}

fn config(solver: SolverKind) -> FitConfig {
    FitConfig {
        k: if solver.finds_many() { 3 } else { 1 },
        solver,
        limits: Limits { tol: 1e-11, max_passes: 16.0, ..Limits::default() },
        batch: Batch::Rows(20),
        epoch: 5,
        seed: 11,
        ..FitConfig::default()
    }
}

/// The fit, and all its checkpoints.
fn kept(config: &FitConfig, x: &Matrix<'_>, weights: Option<&[f64]>) -> (Fit, Vec<Checkpoint>) {
    let mut kept = Vec::new();
    let keep = |checkpoint: &Checkpoint| {
        kept.push(checkpoint.clone());
        Ok(())
    };
    let every = CheckpointEvery::Passes(0.0);
    let checkpoints = Checkpoints { data: "data".into(), every, save: Some(Box::new(keep)), resume: None };
    let fit = config.run().weights(weights).checkpoints(checkpoints).fit(x).unwrap();
    (fit, kept)
}

fn from(checkpoint: &Checkpoint) -> Checkpoints<'static> {
    Checkpoints { data: "data".into(), resume: Some(checkpoint.clone()), ..Checkpoints::default() }
}

/// Every record that an observer is told of.
#[derive(Default)]
struct Heard(Vec<Record>);

impl Observer for Heard {
    fn notify(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Resumed { history, .. } => self.0.extend_from_slice(history),
            Event::Looked { record, .. } => self.0.push((*record).clone()),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn timeless(history: &[Record]) -> Vec<Record> {
    let without_clock = |record: &Record| {
        let mut record = record.clone();
        record.seconds = 0.0;
        record
    };
    history.iter().map(without_clock).collect()
}

#[track_caller]
fn assert_same(a: &Fit, b: &Fit, what: &str) {
    let bits = |fit: &Fit| -> Vec<u64> { fit.model.components().iter().map(|x| x.to_bits()).collect() };
    assert_eq!(bits(a), bits(b), "{what}");
    assert_eq!((&a.model, &a.certificate, a.outcome), (&b.model, &b.certificate, b.outcome), "{what}");
    assert_eq!(timeless(&a.history), timeless(&b.history), "{what}");
    assert_eq!((a.passes, a.full_passes, a.solver), (b.passes, b.full_passes, b.solver), "{what}");
    assert_eq!((&a.chosen_because, a.statistics_passes), (&b.chosen_because, b.statistics_passes), "{what}");
}

/// Resumes from each of the first checkpoints and the last.
#[track_caller]
fn assert_law(config: &FitConfig, x: &Matrix<'_>, weights: Option<&[f64]>, what: &str) -> usize {
    let whole = config.run().weights(weights).fit(x).unwrap();
    let (watched, checkpoints) = kept(config, x, weights);
    assert_same(&watched, &whole, &format!("{what}: keeping changes nothing"));
    for (j, checkpoint) in checkpoints.iter().enumerate() {
        if j < 9 || j + 1 == checkpoints.len() {
            let resumed = config.run().weights(weights).checkpoints(from(checkpoint)).fit(x).unwrap();
            assert_same(&resumed, &whole, &format!("{what}: from checkpoint {j}"));
            assert!(resumed.seconds >= checkpoint.seconds);
        }
    }
    checkpoints.len()
}

#[test]
fn what_auto_learns_is_learned_again() {
    let (n, d) = (6000, 400);
    let x = dense_f32(random_block(n * d, 1, 3).values(), d);
    let config = FitConfig { k: 10, ..FitConfig::default() };
    let looks = assert_law(&config, &x, None, "auto on a flat spectrum");
    let fit = config.fit(&x).unwrap();
    assert_eq!(fit.solver, SolverKind::Covariance);
    assert!(looks > fit.history.len(), "checkpoints of both solvers");
}

#[test]
fn every_solver_goes_on_with_the_same_bits() {
    for kind in SolverKind::ALL {
        for (storage, x) in wide_data() {
            let looks = assert_law(&config(kind), &x, None, &format!("{kind}, {storage}"));
            assert!(looks >= if kind == SolverKind::Covariance { 1 } else { 6 }, "{kind}: {looks} looks");
        }
    }
}

#[test]
fn choices_that_change_the_way_go_on_too() {
    let [(_, dense), (_, sparse)] = data();
    let weights: Vec<f64> = (0..N).map(|l| (l % 4) as f64).collect();
    let base = FitConfig { preprocessing: Preprocessing::STANDARDIZE, ..config(SolverKind::Krylov) };
    assert_law(&base, &sparse, Some(&weights), "weights and scaling");
    // More looks than the residual can use: stagnation, with its patience.
    let limits = Limits { tol: 0.0, max_passes: 60.0, ..Limits::default() };
    for kind in [SolverKind::Krylov, SolverKind::Anchored, SolverKind::PowerM] {
        assert_law(&FitConfig { limits, ..config(kind) }, &dense, None, "stagnating");
    }
    let oracle = MomentumChoice::Oracle(0.9);
    for kind in [SolverKind::PowerM, SolverKind::VrPowerM, SolverKind::VrHbPower] {
        let replacement = Replacement::With;
        let config = FitConfig { momentum: oracle, replacement, eta: Some(0.3), ..config(kind) };
        assert_law(&config, &dense, None, &format!("{kind} with λ₂ known"));
    }
    let start = Some(random_block(D, 2, 8));
    for kind in [SolverKind::Krylov, SolverKind::Anchored, SolverKind::Power] {
        assert_law(&FitConfig { start: start.clone(), ..config(kind) }, &dense, None, "from a start");
    }
}

#[test]
fn vectors_of_the_rows_go_on_too() {
    // So many more columns than rows that `krylov` begins with the other side.
    let (n, d) = (60, 9000);
    let mut values = sparse_values(n, d, 0.01, 5);
    (0..n).for_each(|l| values[l * d + l % 7] += 3.0 / (1 + l % 7) as f64);
    let limits = Limits { tol: 1e-9, ..Limits::default() };
    let config = FitConfig { k: 4, limits, preprocessing: Preprocessing::NONE, ..config(SolverKind::Krylov) };
    let x = csr_f32(&values, d);
    let looks = assert_law(&config, &x, None, "rows");
    let (_, checkpoints) = kept(&config, &x, None);
    let of_rows = |checkpoint: &Checkpoint| format!("{checkpoint:?}").contains("length");
    assert!(looks >= 6 && of_rows(&checkpoints[0]) && !of_rows(&checkpoints[looks - 1]), "{looks} looks");
    // Limits under which a run would not have begun there.
    let few = Limits { max_passes: 100.0, ..config.limits };
    let resumed = FitConfig { limits: few, ..config.clone() };
    let resumed = resumed.run().checkpoints(from(&checkpoints[0])).fit(&x).unwrap();
    assert_eq!((resumed.outcome, &resumed.model), (Outcome::Converged, &config.fit(&x).unwrap().model));
}

#[test]
fn copies_that_krylov_doubts_about_are_found_after_a_break() {
    // Eight copies of the largest value, a block of three: the block grows before converged is said.
    let lambda: Vec<f64> = (0..40).map(|i| if i < 8 { 1.0 } else { 0.9_f64.powi(i) }).collect();
    let (values, _) = with_spectrum(200, &lambda, 3);
    let config = FitConfig { k: 5, ..config(SolverKind::Krylov) };
    let config = FitConfig { limits: Limits { max_passes: 100.0, ..config.limits }, ..config };
    assert_law(&config, &csr(&values, 40), None, "copies");
}

#[test]
fn shares_of_the_variance_grow_on() {
    for (storage, x) in data() {
        for kind in [SolverKind::Auto, SolverKind::Krylov, SolverKind::Anchored, SolverKind::Covariance] {
            let config = FitConfig { k: 1, variance_share: Some(0.6), ..config(kind) };
            let limits = Limits { tol: 1e-4, max_passes: 200.0, ..Limits::default() };
            let config = FitConfig { limits, ..config };
            let mut told = Heard::default();
            let whole = config.run().observer(&mut told).fit(&x).unwrap();
            let (_, checkpoints) = kept(&config, &x, None);
            let sizes: Vec<usize> = checkpoints.iter().map(|c| c.k).collect();
            assert!(
                kind == SolverKind::Covariance
                    || kind == SolverKind::Auto
                    || sizes[0] < sizes[sizes.len() - 1]
            );
            for (j, checkpoint) in checkpoints.iter().enumerate() {
                let mut retold = Heard::default();
                let observers: &mut [&mut (dyn Observer + Send)] = &mut [&mut retold];
                let resumed =
                    config.run().observers(observers).checkpoints(from(checkpoint)).fit(&x).unwrap();
                assert_same(&resumed, &whole, &format!("{kind}, {storage}, checkpoint {j}"));
                assert_eq!(timeless(&retold.0), timeless(&told.0), "{kind}, {storage}, checkpoint {j}");
            }
        }
    }
}

#[test]
fn covariance_in_single_precision_goes_on_in_double_for_a_smaller_tolerance() {
    let (_, x) = &data()[0];
    let with = |tol: f64| FitConfig {
        limits: Limits { tol, ..Limits::default() },
        ..config(SolverKind::Covariance)
    };
    for loose in [1e-2, 1e-5] {
        let (content, checkpoints) = kept(&with(loose), x, None);
        assert_eq!(content.outcome, Outcome::Converged);
        let last = checkpoints.last().unwrap();
        let resumed = with(1e-10).run().checkpoints(from(last)).fit(x).unwrap();
        assert_eq!(resumed.outcome, Outcome::Converged, "from {loose:e}");
        assert!(resumed.certificate.holds(1e-10));
    }
}

#[test]
fn limits_may_change_and_a_finished_run_returns_at_once() {
    let (_, x) = &data()[0];
    let config = config(SolverKind::Power);
    let more = |tol: f64, max_passes: f64| FitConfig {
        limits: Limits { tol, max_passes, ..Limits::default() },
        ..config.clone()
    };
    let (short, checkpoints) = kept(&more(1e-11, 7.0), x, None);
    assert_eq!((short.outcome, short.passes), (Outcome::Budget, 7.0));
    let last = checkpoints.last().unwrap();
    let longer = more(1e-11, 16.0).run().checkpoints(from(last)).fit(x).unwrap();
    assert_same(&longer, &more(1e-11, 16.0).fit(x).unwrap(), "a larger budget");
    // The residual that was reached is enough now.
    let residual = short.certificate.relative_residuals[0];
    let content = more(residual * 1.01, 16.0).run().checkpoints(from(last)).fit(x).unwrap();
    assert_eq!((content.outcome, content.passes), (Outcome::Converged, 7.0));
    assert_eq!(content.history.len(), short.history.len());
    // Seconds count from the first start.
    let limits = Limits { max_seconds: last.paused.seconds / 2.0, ..Limits::default() };
    let late = FitConfig { limits, ..config.clone() }.run().checkpoints(from(last)).fit(x).unwrap();
    assert_eq!((late.outcome, late.passes), (Outcome::Budget, 7.0));
}

#[test]
fn an_interrupted_run_is_kept_where_it_stopped() {
    let (_, x) = &wide_data()[1];
    for kind in [SolverKind::Krylov, SolverKind::Anchored, SolverKind::VrHbPower] {
        let config = config(kind);
        let whole = config.fit(x).unwrap();
        let mut looks = 0;
        let mut stop = |event: &Event<'_>| {
            looks += usize::from(matches!(event, Event::Looked { .. }));
            if looks == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut last = None;
        let keep = |checkpoint: &Checkpoint| {
            last = Some(checkpoint.clone());
            Ok(())
        };
        let every = CheckpointEvery::Seconds(1e9); // only the end is kept
        let checkpoints =
            Checkpoints { data: "data".into(), every, save: Some(Box::new(keep)), resume: None };
        let observers: &mut [&mut (dyn Observer + Send)] = &mut [&mut stop];
        let stopped = config.run().observers(observers).checkpoints(checkpoints).fit(x).unwrap();
        assert_eq!((stopped.outcome, stopped.history.len()), (Outcome::Interrupted, 3));
        let resumed = config.run().checkpoints(from(&last.unwrap())).fit(x).unwrap();
        assert_same(&resumed, &whole, kind.name());
    }
}

#[test]
fn observers_hear_what_was_before_and_of_new_looks_only() {
    let (_, x) = &data()[0];
    let config = config(SolverKind::Power);
    let (whole, checkpoints) = kept(&config, x, None);
    let mut heard = Heard::default();
    let observers: &mut [&mut (dyn Observer + Send)] = &mut [&mut heard];
    config.run().observers(observers).checkpoints(from(&checkpoints[3])).fit(x).unwrap();
    assert_eq!(timeless(&heard.0), timeless(&whole.history));
}

#[test]
fn checkpoints_come_as_often_as_asked() {
    let (_, x) = &data()[0];
    let config = config(SolverKind::Power); // a pass a look, 16 of them
    for (every, want) in [
        (CheckpointEvery::Passes(1.0), 16),
        (CheckpointEvery::Passes(3.0), 6), // after 3, 6, …, 15 passes and at the end
        (CheckpointEvery::Passes(1e9), 1),
        (CheckpointEvery::Seconds(0.0), 16),
    ] {
        let mut passes = Vec::new();
        let keep = |checkpoint: &Checkpoint| {
            passes.push(checkpoint.paused.read.full_passes);
            Ok(())
        };
        let checkpoints =
            Checkpoints { data: String::new(), every, save: Some(Box::new(keep)), resume: None };
        config.run().checkpoints(checkpoints).fit(x).unwrap();
        assert_eq!((passes.len(), passes.last()), (want, Some(&16)), "{every}: {passes:?}");
    }
    let keep = |_: &Checkpoint| Err(Error::Checkpoint("no room".into()));
    let checkpoints = Checkpoints { save: Some(Box::new(keep)), ..Checkpoints::default() };
    let error = config.run().checkpoints(checkpoints).fit(x).unwrap_err().to_string();
    assert!(error.ends_with("no room"), "{error}");
}

fn refusal(config: &FitConfig, x: &Matrix<'_>, checkpoints: Checkpoints<'_>) -> String {
    config.run().checkpoints(checkpoints).fit(x).unwrap_err().to_string()
}

#[test]
fn other_data_versions_and_choices_are_refused_by_name() {
    let (_, x) = &data()[0];
    let config = config(SolverKind::VrHbPower);
    let (_, checkpoints) = kept(&config, x, None);
    let one = &checkpoints[1];
    let other = Checkpoints { data: "other".into(), ..from(one) };
    assert_eq!(
        refusal(&config, x, other),
        "the run cannot be resumed from this checkpoint: it belongs to other data (\"data\", and this is \"other\"): \
         give the data it was made from, or begin anew"
    );
    let newer = Checkpoint { software: "hbpca 99.0.0".into(), ..one.clone() };
    let said = refusal(&config, x, from(&newer));
    assert!(said.contains("written by \"hbpca 99.0.0\"") && said.contains("or begin anew"), "{said}");
    let base = || config.clone();
    let changed = [
        ("seed", FitConfig { seed: 12, ..base() }),
        ("solver", FitConfig { solver: SolverKind::VrPca, ..base() }),
        ("k", FitConfig { k: 2, solver: SolverKind::Krylov, ..base() }),
        ("scaling", FitConfig { preprocessing: Preprocessing::STANDARDIZE, ..base() }),
        ("centering", FitConfig { preprocessing: Preprocessing::NONE, ..base() }),
        ("eta", FitConfig { eta: Some(0.25), ..base() }),
        ("momentum", FitConfig { momentum: MomentumChoice::Oracle(0.5), ..base() }),
        ("batch", FitConfig { batch: Batch::Rows(21), ..base() }),
        ("epoch", FitConfig { epoch: 6, ..base() }),
        ("replacement", FitConfig { replacement: Replacement::With, ..base() }),
        ("start", FitConfig { start: Some(random_block(D, 1, 1)), ..base() }),
    ];
    for (name, config) in changed {
        let said = refusal(&config, x, from(one));
        assert!(said.contains(&format!("its {name} is ")), "{name}: {said}");
        assert!(said.ends_with("is asked for: resume with the same, or begin anew"), "{said}");
    }
    let fewer = dense_f32(&sparse_values(N - 1, D, 0.3, 5), D);
    assert!(refusal(&config, &fewer, from(one)).contains("it is of 400 rows where the data has 399"));
}

#[test]
fn a_start_need_not_be_given_again_and_threads_may_differ() {
    let (_, x) = &data()[0];
    let plain = config(SolverKind::Krylov);
    let started = FitConfig { start: Some(random_block(D, 2, 8)), ..plain.clone() };
    let (whole, checkpoints) = kept(&started, x, None);
    for config in [plain, FitConfig { threads: 3, ..started }] {
        let resumed = config.run().checkpoints(from(&checkpoints[1])).fit(x).unwrap();
        assert_same(&resumed, &whole, "other threads, no start");
    }
}

/// The same state with one tensor or count replaced.
fn forged(checkpoint: &Checkpoint, name: &str, forge: Forgery) -> Checkpoint {
    let (mut tensors, mut counts) =
        (checkpoint.paused.state.tensors().clone(), checkpoint.paused.state.counts().clone());
    match forge {
        Forgery::Gone => {
            tensors.remove(name);
            counts.remove(name);
        }
        Forgery::Count(count) => {
            counts.insert(name.into(), count);
        }
        Forgery::Shape(change) => {
            let shape: Vec<usize> = tensors[name].shape().iter().map(|x| change(*x)).collect();
            let values = vec![0.5; shape.iter().product()];
            tensors.insert(name.into(), Tensor::new(shape, values).unwrap());
        }
        Forgery::Value(value) => {
            let tensor = &tensors[name];
            let values = vec![value; tensor.values().len()];
            tensors.insert(name.into(), Tensor::new(tensor.shape().to_vec(), values).unwrap());
        }
    }
    let mut forged = checkpoint.clone();
    forged.paused.state = State::from_parts(tensors, counts);
    forged
}

#[derive(Clone, Copy)]
enum Forgery {
    Gone,
    Count(u64),
    Shape(fn(usize) -> usize),
    Value(f64),
}

/// What checkpoints of version 0.1 do not have.
fn may_be_gone(name: &str) -> bool {
    [
        "driver.best.parts.theta",
        "solver.locked.groups",
        "solver.given",
        "solver.polished",
        "solver.searching",
        "solver.basis.anew.error",
        "driver.best.null",
    ]
    .contains(&name)
}

#[test]
fn hostile_states_are_errors_and_never_panics() {
    for kind in SolverKind::ALL {
        for (storage, x) in data() {
            let limits = Limits { tol: 1e-11, max_passes: 8.0, ..Limits::default() };
            let config = FitConfig { limits, ..config(kind) };
            let (_, checkpoints) = kept(&config, &x, None);
            let one = &checkpoints[checkpoints.len() / 2];
            for (name, tensor) in one.paused.state.tensors() {
                let resume = |forgery| config.run().checkpoints(from(&forged(one, name, forgery))).fit(&x);
                let refused = |forgery| {
                    resume(forgery).err().unwrap_or_else(|| panic!("{kind}, {storage}: {name}")).to_string()
                };
                if may_be_gone(name) {
                    assert!(resume(Forgery::Gone).is_ok(), "{name}");
                    continue;
                }
                assert!(refused(Forgery::Gone).ends_with(&format!("its {name} is missing")), "{name}");
                if !tensor.values().is_empty() {
                    assert!(refused(Forgery::Value(f64::NAN)).ends_with(&format!("its {name} holds NaN")));
                    assert!(refused(Forgery::Value(f64::INFINITY)).contains("holds inf"));
                }
                // Lists that may have any length are refused by what they belong to, or harmless.
                for change in [|x| x + 1, |x: usize| x.saturating_sub(1), |x: usize| 2 * x] {
                    let _ = resume(Forgery::Shape(change));
                }
                for value in [0.0, -1.0, 1e300, -1e300, 5e-324] {
                    let _ = resume(Forgery::Value(value));
                }
            }
            for name in one.paused.state.counts().keys() {
                let resume = |forgery| config.run().checkpoints(from(&forged(one, name, forgery))).fit(&x);
                if !may_be_gone(name) {
                    assert!(resume(Forgery::Gone).unwrap_err().to_string().contains("is missing"), "{name}");
                }
                assert!(resume(Forgery::Count(u64::MAX)).unwrap_err().to_string().contains("impossible"));
                for count in [0, 1, 2, 1 << 20, 1 << 53] {
                    let _ = resume(Forgery::Count(count));
                }
            }
        }
    }
}

#[test]
fn numbers_besides_the_state_are_checked_too() {
    let (_, x) = &data()[0];
    let config = config(SolverKind::Krylov);
    let (_, checkpoints) = kept(&config, x, None);
    let forge = |change: &dyn Fn(&mut Checkpoint)| {
        let mut checkpoint = checkpoints[0].clone();
        change(&mut checkpoint);
        refusal(&config, x, from(&checkpoint))
    };
    for contradiction in [
        forge(&|c| c.seconds = f64::NAN),
        forge(&|c| c.paused.seconds = -1.0),
        forge(&|c| c.paused.read.rows = u64::MAX),
        forge(&|c| c.paused.read.full_passes = u64::MAX),
        forge(&|c| c.solver = SolverKind::Auto),
    ] {
        assert!(contradiction.ends_with("its numbers contradict each other"), "{contradiction}");
    }
    assert!(forge(&|c| c.paused.history.clear()).ends_with("its history is empty"));
    // Another solver's state has other names.
    assert!(forge(&|c| c.solver = SolverKind::Anchored).contains("is missing"));
    let share = FitConfig { variance_share: Some(0.5), ..config.clone() };
    let (_, checkpoints) = kept(&share, x, None);
    let huge = Checkpoint { k: usize::MAX, ..checkpoints[0].clone() };
    assert!(refusal(&share, x, from(&huge)).starts_with("k = 18446744073709551615"));
}

#[test]
fn iterates_beyond_the_range_of_numbers_are_not_kept() {
    // Oja's rule with an absurd step: NaN from the first step on, and still a result.
    let x = dense(vec![1e150, 0.0, -1e150, 0.0, 0.0, 1e149, 0.0, -1e149], 2);
    let config = FitConfig {
        solver: SolverKind::Oja,
        eta: Some(1e300),
        epoch: 2,
        limits: Limits { max_passes: 12.0, ..Limits::default() },
        ..FitConfig::default()
    };
    let (fit, checkpoints) = kept(&config, &x, None);
    assert!(checkpoints.len() < fit.history.len(), "{} of {}", checkpoints.len(), fit.history.len());
}
