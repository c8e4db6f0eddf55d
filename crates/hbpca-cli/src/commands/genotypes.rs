//! Genotypes: packed in memory from the file to the scores, and results as plink2 writes them.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Instant;

use hbpca::checkpoint::Checkpoints;
use hbpca::genotypes::Genotypes;
use hbpca::missing::{HolesInRows, Missing};
use hbpca::{CancelToken, Dense, Error, Fit, Model};
use hbpca_io::{
    BedFile, ByteSize, Format, Matched, ReadOptions, StoredModel, VariantNames, score_names,
    write_eigenvalues, write_eigenvectors, write_variant_weights,
};

use super::fit::{About, With};
use crate::args::TransformArgs;
use crate::exit::{Exit, Failure};
use crate::interrupt::Running;
use crate::output::json::TableObject;
use crate::output::number;
use crate::output::progress::Spinner;
use crate::output::say::{self, Verbosity};
use crate::plan::{self, Asked, Source, TableOutput, Weights, create};

/// Reads a `.bed`, or leaves it on disk where it does not fit, and fits it with the weights of its samples.
pub fn fit(
    source: Source,
    (weights, memory): (&Weights, Option<ByteSize>),
    asked: &Asked<'_>,
    with: With<'_, '_>,
    verbosity: Verbosity,
) -> Result<(Fit, About), Failure> {
    let With { observers, checkpoints, refused, .. } = with;
    let name = source.name.clone();
    let clock = Instant::now();
    let beside = |n, d| asked.components.of(asked.config.clone(), n, d).memory_beside_genotypes(n, d);
    let file = read(source, memory, beside, verbosity)?;
    let read_seconds = clock.elapsed().as_secs_f64();
    let (names, genotypes) = (file.column_names(), &file.genotypes);
    let (n, d) = (genotypes.n_rows(), genotypes.n_cols());
    let weights = weights.of_genotypes(n)?;
    let config = asked.of(Some(&names), &name, (n, d))?;
    plan::refuse_huge_covariance(&config, d)?;
    let wanted = checkpoints.save.is_some() || checkpoints.resume.is_some();
    let failed = |error: Error| refused(&error, &name);
    let data =
        if wanted { genotypes.fingerprint(weights.as_deref()).map_err(failed)? } else { String::new() };
    let cancel = CancelToken::default();
    let running = Running::with(&cancel);
    let fit = config
        .run()
        .weights(weights.as_deref())
        .observers(observers)
        .cancelled_by(&cancel)
        .checkpoints(Checkpoints { data, ..checkpoints })
        .fit_genotypes(genotypes)
        .map_err(failed)?;
    drop(running);
    let place = if genotypes.is_on_disk() { ", on disk" } else { "" };
    Ok((
        fit,
        About {
            storage: format!("genotypes in two bits each{place}"),
            nnz: n * d,
            name,
            column_names: Some(names),
            categories: Vec::new(),
            occurring: None,
            missing: config.missing,
            read_seconds,
            data: None,
            stream: None,
        },
    ))
}

/// Half of what there is where no limit was given, as for rows; the rest is for the page cache, which keeps genotypes that stay on disk.
fn read(
    source: Source,
    memory: Option<ByteSize>,
    beside: impl Fn(usize, usize) -> u64,
    verbosity: Verbosity,
) -> Result<BedFile, Failure> {
    const DEFAULT_SHARE: u64 = 2;
    let name = source.name.clone();
    let spinner = Spinner::new(verbosity, &format!("reading {name}"));
    let (path, options) = source.into_genotypes()?;
    let memory = memory.or_else(|| hbpca_io::machine_memory().map(|all| ByteSize(all / DEFAULT_SHARE)));
    let ByteSize(memory) = memory.unwrap_or(ByteSize(u64::MAX));
    let options = ReadOptions { match_names: None, ..options };
    let file = BedFile::place(&path, &options, memory, beside)?;
    drop(spinner);
    if verbosity > Verbosity::Quiet && file.genotypes.is_on_disk() {
        let bytes = ByteSize(file.genotypes.bytes() as u64);
        let memory = ByteSize(memory);
        say::line(&format!(
            "{name}: {bytes} do not fit into {memory} of memory and are read from disk, twice for every product"
        ));
    }
    if verbosity == Verbosity::Verbose {
        let (n, d) = (number::count(file.genotypes.n_rows()), number::count(file.genotypes.n_cols()));
        say::line(&format!("read {n} samples × {d} variants"));
    }
    Ok(file)
}

/// Scores of the samples of a `.bed`, whose variants are matched with those of the model.
pub fn transform(args: &TransformArgs, stored: &StoredModel, source: Source) -> Result<TableObject, Failure> {
    let model = &stored.model;
    let holes = rule(args.missing, stored)?;
    let verbosity = Verbosity::from(&args.verbosity);
    let output = if ends_in(&args.output, "eigenvec") {
        if args.whiten.whiten {
            return Err(Failure::Usage(
                "--whiten has no place in an .eigenvec, whose columns have unit length: write .csv".into(),
            ));
        }
        Scores::Eigenvectors(create(&args.output)?)
    } else {
        Scores::Table(TableOutput::begin(&args.output, args.output_format.output_format)?)
    };
    let name = source.name.clone();
    let k = model.n_components() as u64;
    let file = read(source, None, |n, _| 8 * k * n as u64, verbosity)?;
    let genotypes = matched(&file, model, &name, verbosity)?;
    let refused = |error: Error| Failure::refused(&error, &name);
    let k = model.n_components();
    let format = match &output {
        Scores::Eigenvectors(_) => "eigenvec".to_owned(),
        Scores::Table(output) => output.format().to_string(),
    };
    match output {
        Scores::Eigenvectors(output) => {
            let vectors = model.sample_eigenvectors(&genotypes, holes).map_err(refused)?;
            write_eigenvectors(output, &file.samples, &vectors, k)?;
        }
        Scores::Table(output) => {
            let whitening = (&args.whiten).into();
            let scores =
                model.transform_genotypes_with_holes(&genotypes, whitening, holes).map_err(refused)?;
            // Scores of samples that were dropped are missing.
            let scores = Dense::deferring_finite_check(scores.into(), genotypes.n_rows(), k);
            let scores = scores.map_err(refused)?;
            output.write(&scores.into(), score_names(k), None, Vec::new())?;
        }
    }
    let (n, from) = (genotypes.n_rows(), Format::Bed.to_string());
    Ok(TableObject { n, d: k, from, format, output: args.output.clone() })
}

/// What becomes of what is missing: what was said, what the model says, or the mean, of which every model of genotypes knows how it is found.
fn rule(asked: Option<Missing>, stored: &StoredModel) -> Result<HolesInRows, Failure> {
    let (reading, summary) = (&stored.origin.reading, stored.model.summary());
    match asked.unwrap_or(reading.missing) {
        Missing::Mean => Ok(HolesInRows::Mean),
        Missing::Error if asked.is_none() => Ok(HolesInRows::Mean),
        other => other
            .in_new_rows(summary.preprocessing.centering, reading.ridge())
            .map_err(|error| Failure::Usage(error.to_string())),
    }
}

/// Where scores go.
enum Scores {
    Eigenvectors(hbpca_io::OutputFile),
    Table(TableOutput),
}

/// The genotypes of the model's variants, and a word about how they were found.
fn matched(file: &BedFile, model: &Model, name: &str, verbosity: Verbosity) -> Result<Genotypes, Failure> {
    let Matched { genotypes, by_name, flipped } = file.for_model(model, name)?;
    if verbosity > Verbosity::Quiet && !by_name {
        say::warning(&format!(
            "the model has no names of variants: those of {name} are taken in their order"
        ));
    }
    if verbosity > Verbosity::Quiet && flipped > 0 {
        let (flipped, of) = (number::count(flipped), number::count(genotypes.n_cols()));
        say::line(&format!(
            "{name}: {flipped} of {of} variants count the other allele there, and are turned round"
        ));
    }
    Ok(genotypes)
}

/// Writes what plink2 would call the eigenvalues or the weights of a model, where the name of the output asks for that.
pub fn convert(stored: &StoredModel, output: &Path) -> Result<Exit, Failure> {
    let (model, name) = (&stored.model, output.display());
    if ends_in(output, "eigenval") {
        write_eigenvalues(create(output)?, &model.relationship_eigenvalues())?;
        return Ok(Exit::Success);
    }
    let Some(variants) = model.feature_names().and_then(VariantNames::parse) else {
        return Err(Failure::Input(format!(
            "{name}: the model was not fitted on genotypes: write its loadings as .csv"
        )));
    };
    write_variant_weights(create(output)?, &variants, model)?;
    Ok(Exit::Success)
}

/// Whether a name asks for a file of plink2 that is made from a model alone.
pub fn is_of_plink(output: &Path) -> bool {
    ends_in(output, "eigenval") || output.to_string_lossy().to_lowercase().ends_with(".eigenvec.var")
}

fn ends_in(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found: &OsStr| found.eq_ignore_ascii_case(extension))
}
