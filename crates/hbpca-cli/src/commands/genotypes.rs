//! Genotypes: packed in memory from the file to the scores, and results as plink2 writes them.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Instant;

use hbpca::checkpoint::Checkpoints;
use hbpca::genotypes::Genotypes;
use hbpca::{CancelToken, Dense, Error, Fit, Model};
use hbpca_io::{
    BedFile, Format, Matched, ReadOptions, StoredModel, VariantNames, score_names, write_eigenvalues,
    write_eigenvectors, write_variant_weights,
};

use super::fit::{About, With};
use crate::args::TransformArgs;
use crate::exit::{Exit, Failure};
use crate::interrupt::Running;
use crate::output::json::TableObject;
use crate::output::number;
use crate::output::progress::Spinner;
use crate::output::say::{self, Verbosity};
use crate::plan::{self, Asked, Source, TableOutput, create};

/// Reads a `.bed` and fits it.
pub fn fit(
    source: Source,
    asked: &Asked<'_>,
    with: With<'_, '_>,
    verbosity: Verbosity,
) -> Result<(Fit, About), Failure> {
    let With { observers, checkpoints, refused, .. } = with;
    let name = source.name.clone();
    let clock = Instant::now();
    let file = read(source, verbosity)?;
    let read_seconds = clock.elapsed().as_secs_f64();
    let names = file.column_names();
    let config = asked.of(Some(&names), &name, (file.genotypes.n_rows(), file.genotypes.n_cols()))?;
    plan::refuse_huge_covariance(&config, file.genotypes.n_cols())?;
    let wanted = checkpoints.save.is_some() || checkpoints.resume.is_some();
    let data = if wanted { file.genotypes.fingerprint() } else { String::new() };
    let cancel = CancelToken::default();
    let running = Running::with(&cancel);
    let fit = config
        .run()
        .observers(observers)
        .cancelled_by(&cancel)
        .checkpoints(Checkpoints { data, ..checkpoints })
        .fit_genotypes(&file.genotypes)
        .map_err(|error| refused(&error, &name))?;
    drop(running);
    let nnz = file.genotypes.n_rows() * file.genotypes.n_cols();
    let storage = "genotypes in two bits each".to_owned();
    Ok((
        fit,
        About {
            name,
            storage,
            nnz,
            column_names: Some(names),
            categories: Vec::new(),
            occurring: None,
            read_seconds,
            data: None,
            stream: None,
        },
    ))
}

fn read(source: Source, verbosity: Verbosity) -> Result<BedFile, Failure> {
    let spinner = Spinner::new(verbosity, &format!("reading {}", source.name));
    let (path, options) = source.into_genotypes()?;
    let file = BedFile::read_with(&path, &ReadOptions { match_names: None, ..options })?;
    drop(spinner);
    if verbosity == Verbosity::Verbose {
        let (n, d) = (number::count(file.genotypes.n_rows()), number::count(file.genotypes.n_cols()));
        say::line(&format!("read {n} samples × {d} variants"));
    }
    Ok(file)
}

/// Scores of the samples of a `.bed`, whose variants are matched with those of the model.
pub fn transform(args: &TransformArgs, model: &Model, source: Source) -> Result<TableObject, Failure> {
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
    let file = read(source, verbosity)?;
    let genotypes = matched(&file, model, &name, verbosity)?;
    let refused = |error: Error| Failure::refused(&error, &name);
    let k = model.n_components();
    let format = match &output {
        Scores::Eigenvectors(_) => "eigenvec".to_owned(),
        Scores::Table(output) => output.format().to_string(),
    };
    match output {
        Scores::Eigenvectors(output) => {
            let vectors = model.sample_eigenvectors(&genotypes).map_err(refused)?;
            write_eigenvectors(output, &file.samples, &vectors, k)?;
        }
        Scores::Table(output) => {
            let scores = model.transform_genotypes(&genotypes, (&args.whiten).into()).map_err(refused)?;
            let scores = Dense::new(scores, genotypes.n_rows(), k).map_err(refused)?;
            output.write(&scores.into(), score_names(k), None, Vec::new())?;
        }
    }
    let (n, from) = (genotypes.n_rows(), Format::Bed.to_string());
    Ok(TableObject { n, d: k, from, format, output: args.output.clone() })
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
