//! `hbpca fit`: data in, a certified model out.

use hbpca::{Centering, Checkpoint, Error, Fit, Keep, Observer, Outcome, Preprocessing, Resumable, Scaling};
use hbpca_io::StoredModel;

use crate::args::FitArgs;
use crate::exit::{Exit, Failure};
use crate::interrupt::Running;
use crate::output::kept::Kept;
use crate::output::progress::Progress;
use crate::output::say::{self, Verbosity};
use crate::output::table::{Side, Table};
use crate::output::trace::Trace;
use crate::output::{self, json, number, warnings};
use crate::plan::{self, Checkpoints, FitPlan, Loaded};

/// Runs `hbpca fit`.
pub fn run(args: &FitArgs) -> Result<Exit, Failure> {
    plan::use_threads(&args.threads)?;
    let FitPlan { source, config, solver_flags, checkpoints, model, mut trace, json, verbosity } =
        FitPlan::new(args)?;
    let loaded = source.read(verbosity)?;
    plan::refuse_huge_covariance(&config, loaded.data.matrix.n_cols())?;

    let limits = &config.limits;
    let mut progress = Progress::new(verbosity, limits.tol, limits.max_passes, limits.max_seconds);
    let mut observers: Vec<&mut (dyn Observer + Send)> = vec![&mut progress];
    observers.extend(trace.as_mut().map(|trace| trace as &mut (dyn Observer + Send)));
    let data = checkpoints.fingerprint(&loaded.data.matrix);
    let Checkpoints { file, every, from, replaces } = checkpoints;
    if let Some(file) = file.as_ref().filter(|_| replaces && verbosity > Verbosity::Quiet) {
        let file = file.display();
        say::warning(&format!(
            "{file} is the checkpoint of an earlier run, and this one replaces it: --resume {file} goes on from it instead"
        ));
    }
    let mut kept = file.map(|file| Kept::new(file, verbosity));
    let mut write = kept.as_mut().map(|kept| {
        |checkpoint: &Checkpoint| {
            kept.keep(checkpoint);
            Ok(())
        }
    });
    let (resumed, from) = from.unzip();
    let keep = write.as_mut().map(|write| write as &mut Keep<'_>);
    let running = Running::with(&limits.cancel);
    let fit = config
        .fit_resumable(&loaded.data.matrix, None, &mut observers, Resumable { data, every, keep, from })
        .map_err(|error| match (&error, resumed) {
            (Error::Checkpoint(_), Some(file)) => Failure::Input(format!("{}: {error}", file.display())),
            _ => Failure::refused(&error, &loaded.name),
        })?;
    drop(running);

    // Files first: a reader of the table that went away must not cost the model.
    if let Some(file) = model {
        StoredModel::of_fit(&fit, &fit.chosen_because, limits.tol).write(file)?;
    }
    trace.map_or(Ok(()), Trace::finish)?;
    let nnz = loaded.data.matrix.nnz();
    if json {
        json::print(&json::FitObject::new(&fit, nnz, &fit.chosen_because, limits.tol, loaded.seconds))?;
    } else {
        output::print(&report(&fit, &loaded))?;
    }
    if verbosity > Verbosity::Quiet {
        let names = loaded.data.column_names.as_deref();
        let idle_flags = solver_flags.idle_for(fit.solver);
        warnings::of_fit(&fit, limits, &idle_flags, names).iter().for_each(|text| say::warning(text));
        if fit.outcome != Outcome::Converged {
            kept.and_then(|kept| kept.way_on()).iter().for_each(|text| say::line(text));
        }
    }
    Ok(fit.outcome.into())
}

/// What a person reads.
fn report(fit: &Fit, loaded: &Loaded) -> String {
    let (model, certificate, chosen_because) = (&fit.model, &fit.certificate, &fit.chosen_because);
    let mut table = Table::new(&[
        ("component", Side::Right),
        ("eigenvalue", Side::Right),
        ("± at most", Side::Right),
        ("share", Side::Right),
        ("cumulative", Side::Right),
        ("angle at most", Side::Right),
    ]);
    let ratios = model.explained_variance_ratio();
    let mut cumulative = 0.0;
    for (i, ratio) in ratios.iter().enumerate() {
        cumulative += ratio;
        table.row([
            (i + 1).to_string(),
            number::value(model.eigenvalues()[i]),
            number::small(certificate.residuals[i]),
            number::percent(*ratio),
            number::percent(cumulative),
            certificate.angle_bounds[i].map_or_else(|| "unknown".into(), number::small),
        ]);
    }
    let matrix = &loaded.data.matrix;
    format!(
        "{}: {} rows × {} columns, {}\n{} ({chosen_because}), {}\n\n{}\n{}: {}.\n{} and {} for column statistics in {}, after {} of reading\n",
        loaded.name,
        number::count(matrix.n_rows()),
        number::count(matrix.n_cols()),
        storage(loaded),
        fit.solver,
        preparation(model.summary().preprocessing),
        table.render(),
        fit.outcome,
        certificate,
        number::plural(fit.passes, "pass", "passes"),
        number::short(fit.statistics_passes),
        number::seconds(fit.seconds),
        number::seconds(loaded.seconds),
    )
}

fn storage(loaded: &Loaded) -> String {
    let matrix = &loaded.data.matrix;
    let kind = plan::kind(matrix);
    if matrix.is_sparse() { format!("{kind}, {} entries", number::count(matrix.nnz())) } else { kind.into() }
}

/// The preparation in words.
pub fn preparation(preprocessing: Preprocessing) -> String {
    let centred = match preprocessing.centering {
        Centering::Mean => "centred",
        Centering::None => "not centred",
    };
    match preprocessing.scaling {
        Scaling::None => centred.into(),
        Scaling::Std => format!("{centred}, scaled to standard deviation 1"),
        Scaling::MinMax => format!("{centred}, scaled to range 1"),
    }
}
