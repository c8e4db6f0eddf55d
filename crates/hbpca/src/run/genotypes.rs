//! Packed genotypes.
//!
//! What is missing stays missing in the codes. Where it is not the mean, a number for each hole stands beside them, and X̂ is never anything else than
//! packed: line 4 of [em](super::missing) takes one walk over the codes for U_oᵀa_o, and the holes for U_oᵀU_o.

use std::borrow::Cow;

use rayon::prelude::*;

use super::missing::{Filled, em, naming};
use super::source::Source;
use super::{Fit, Run, run_on};
use crate::checkpoint::{Checkpoints, Session};
use crate::choose::Plan;
use crate::columns::{ColumnStatistics, RowMap, check_weights};
use crate::config::FitConfig;
use crate::matrix::{FilledHoles, Genotypes, Matrix, MissingGenotypes, MissingScan};
use crate::missing::{Filling, Missing, MissingReport, no_row_left};
use crate::observe::Observer;
use crate::operator::{CovarianceOperator, GenotypeCovariance, Shape};
use crate::solver::SolverKind;
use crate::{Block, CancelToken, Error, Model};

impl Run<'_> {
    /// Fits packed genotypes: samples are rows, variants columns. What is missing becomes what [`FitConfig::missing`] says.
    pub fn fit_genotypes(self, genotypes: &Genotypes) -> Result<Fit, Error> {
        let Self { config, weights, mut observers, cancel, checkpoints, .. } = self;
        let (n, d) = (genotypes.n_rows(), genotypes.n_cols());
        config.check(n, d)?;
        weights.map_or(Ok(()), |weights| check_weights(n, weights))?;
        if config.missing == Missing::Em {
            config.em.check()?;
        }
        let checkpoints = naming(checkpoints, config);
        config.on_threads(usize::MAX, || {
            config.check_memory_of_genotypes(genotypes, 0)?;
            let observers = &mut observers[..];
            let fitting = Fitting { genotypes, weights, config, cancel: &cancel };
            match config.missing {
                Missing::Mean => fitting.with_means(observers, checkpoints),
                Missing::Error => fitting.complete(observers, checkpoints),
                Missing::DropRows => fitting.without_holes(observers, checkpoints),
                Missing::Em => fitting.by_em(observers, checkpoints),
            }
        })
    }
}

/// A fit of genotypes about to be made.
#[derive(Clone, Copy)]
struct Fitting<'a> {
    genotypes: &'a Genotypes,
    weights: Option<&'a [f64]>,
    config: &'a FitConfig,
    cancel: &'a CancelToken,
}

type Observers<'r, 'o> = &'r mut [&'o mut (dyn Observer + Send)];

impl Fitting<'_> {
    /// `error`: the first hole is named.
    fn complete(self, observers: Observers<'_, '_>, checkpoints: Checkpoints<'_>) -> Result<Fit, Error> {
        if let Some(&row) = self.genotypes.missing()?.samples.first() {
            let column = self.genotypes.first_missing_of(row)?.unwrap_or_default();
            return Err(Error::NotFinite { row, column, value: f64::NAN });
        }
        Ok(self.fit(None, observers, checkpoints)?.0)
    }

    /// `mean`.
    fn with_means(self, observers: Observers<'_, '_>, checkpoints: Checkpoints<'_>) -> Result<Fit, Error> {
        let (mut fit, missing) = self.fit(None, observers, checkpoints)?;
        fit.missing = self.report(&missing, 0);
        Ok(fit)
    }

    /// `drop-rows`: samples with holes weigh nothing.
    fn without_holes(self, observers: Observers<'_, '_>, checkpoints: Checkpoints<'_>) -> Result<Fit, Error> {
        let missing = self.genotypes.missing()?;
        let (n, dropped) = (self.genotypes.n_rows(), missing.samples.len());
        if dropped == n {
            return Err(no_row_left());
        }
        self.config.check(n - dropped, self.genotypes.n_cols())?;
        let mut left = self.weights.map_or_else(|| vec![1.0; n], <[f64]>::to_vec);
        missing.samples.iter().for_each(|&l| left[l] = 0.0);
        let weights = if dropped > 0 { Some(&left[..]) } else { self.weights };
        let (mut fit, _) = Fitting { weights, ..self }.fit(None, observers, checkpoints)?;
        fit.model.count_rows(n - dropped);
        fit.missing = self.report(&missing, dropped);
        Ok(fit)
    }

    /// `em`.
    fn by_em(self, observers: Observers<'_, '_>, checkpoints: Checkpoints<'_>) -> Result<Fit, Error> {
        /// Of a hole: its sample and its number.
        const BYTES: u64 = 12;
        let (genotypes, config) = (self.genotypes, self.config);
        let missing = genotypes.missing()?;
        if missing.entries == 0 {
            return Ok(self.fit(None, observers, checkpoints)?.0);
        }
        let scores = 8 * (genotypes.n_rows() * config.k) as u64;
        config.check_memory_of_genotypes(genotypes, BYTES * missing.entries as u64 + scores)?;
        let statistics = ColumnStatistics::of_completed_genotypes(genotypes, self.weights, None, None)?;
        let holes = FilledHoles::of(genotypes, statistics.mean())?;
        let constant = Filling::constant_columns(&statistics);
        let mut rows = FilledGenotypes { fitting: self, holes, constant, next: None, changes: 0, bytes: 0 };
        let (mut fit, point) = em(&mut rows, config, observers, self.cancel, checkpoints)?;
        let report = self.report(&missing, 0);
        fit.missing = report.map(|report| MissingReport { stationary_point: Some(point), ..report });
        Ok(fit)
    }

    fn report(&self, missing: &MissingGenotypes, dropped: usize) -> Option<MissingReport> {
        let (entries, rows) = (missing.entries, missing.samples.len());
        let policy = self.config.missing;
        (entries > 0).then_some(MissingReport { policy, entries, rows, dropped, stationary_point: None })
    }

    /// With the mean in holes, or with these numbers. Tells what is missing, too.
    fn fit(
        self,
        holes: Option<&FilledHoles>,
        observers: Observers<'_, '_>,
        checkpoints: Checkpoints<'_>,
    ) -> Result<(Fit, MissingGenotypes), Error> {
        let Self { config, cancel, .. } = self;
        let session = Session::new(config, checkpoints)?;
        let clock = session.clock();
        let (source, missing) = OfGenotypes::new(self, holes, &session)?;
        observers.iter_mut().for_each(|observer| source.announce(&mut **observer));
        Ok((run_on(source, config, session, &clock, cancel, observers)?, missing))
    }
}

/// Packed genotypes.
struct OfGenotypes<'g> {
    operator: GenotypeCovariance<'g>,
    statistics: ColumnStatistics,
    saves: bool,
    /// Bytes that were read before this fit began.
    bytes_before: u64,
}

impl<'g> OfGenotypes<'g> {
    /// Adds up the genotypes of every variant.
    fn new(
        fitting: Fitting<'g>,
        holes: Option<&'g FilledHoles>,
        session: &Session<'_>,
    ) -> Result<(Self, MissingGenotypes), Error> {
        let Fitting { genotypes, weights, config, cancel } = fitting;
        let bytes_before = genotypes.bytes_read();
        let mut scan = MissingScan::of(genotypes);
        let statistics =
            ColumnStatistics::of_completed_genotypes(genotypes, weights, holes, Some(&mut scan))?;
        let missing = scan.finish();
        let map = config.preprocessing.row_map(&statistics);
        let moved = if holes.is_none() && missing.entries > 0 {
            Filling::of_genotypes(&statistics, weights.is_some()).moves(&map)
        } else {
            0.0
        };
        let operator = GenotypeCovariance::with_map(genotypes, map, statistics.mean());
        let operator = operator.moved_by(moved).abandoned_by(cancel);
        let operator = match weights {
            None => operator,
            Some(weights) => operator.with_weights(weights)?,
        };
        let operator = match holes {
            None => operator,
            Some(holes) => operator.filled_with(holes),
        };
        Ok((Self { operator, statistics, saves: session.saves(), bytes_before }, missing))
    }

    /// Tells how rows are prepared.
    fn announce(&self, observer: &mut dyn Observer) {
        observer.prepared(self.operator.map(), self.statistics.weight());
    }
}

impl Source for OfGenotypes<'_> {
    fn shape(&self) -> Shape {
        self.operator.shape()
    }

    fn plan(&self, config: &FitConfig, _iterates_wanted: bool) -> Result<Plan, Error> {
        let mut plan = Plan::for_shape(self.shape(), config);
        if config.solver == SolverKind::Auto {
            "genotypes are multiplied as they are packed".clone_into(&mut plan.chosen_because);
        }
        Ok(plan)
    }

    fn sample(&self, _count: usize, _seed: u64) -> Result<Option<Cow<'_, Matrix<'static>>>, Error> {
        Ok(None)
    }

    fn operator(&mut self) -> &mut dyn CovarianceOperator {
        &mut self.operator
    }

    fn columns(&self) -> Result<(Cow<'_, RowMap>, f64), Error> {
        Ok((Cow::Borrowed(self.operator.map()), self.statistics.weight()))
    }

    fn statistics(&self) -> Option<ColumnStatistics> {
        self.saves.then(|| self.statistics.clone())
    }

    fn statistics_passes(&self) -> f64 {
        1.0
    }

    fn bytes_read(&self) -> u64 {
        self.operator.bytes_read() - self.bytes_before
    }
}

/// X̂ of packed genotypes.
struct FilledGenotypes<'a> {
    fitting: Fitting<'a>,
    /// X̂ in H.
    holes: FilledHoles,
    /// Variants that have one value, which their holes keep.
    constant: Vec<bool>,
    /// The model of the last change, and z of every sample, n×k: what Y is made of.
    next: Option<(Model, Vec<f64>)>,
    changes: usize,
    bytes: u64,
}

impl Filled for FilledGenotypes<'_> {
    fn shape(&self) -> (usize, usize, usize) {
        let genotypes = self.fitting.genotypes;
        (genotypes.n_rows(), genotypes.n_cols(), self.holes.len())
    }

    fn fit(
        &mut self,
        config: &FitConfig,
        observers: Observers<'_, '_>,
        checkpoints: Checkpoints<'_>,
    ) -> Result<Fit, Error> {
        let fitting = Fitting { config, ..self.fitting };
        Ok(fitting.fit(Some(&self.holes), observers, checkpoints)?.0)
    }

    fn change(&mut self, model: &Model) -> Result<f64, Error> {
        let Fitting { genotypes, config, cancel, .. } = self.fitting;
        cancel.go_on()?;
        let before = genotypes.bytes_read();
        let z = model.least_squares_scores(genotypes, &self.holes, config.em.ridge)?;
        let said = Said::by(model, &z);
        let of_variant = |j: usize| {
            if self.constant[j] {
                return 0.0;
            }
            let (samples, values) = self.holes.of_variant(j);
            let changes = samples.iter().zip(values).map(|(l, x)| (said.of(*l, j) - x) / said.scale(j));
            changes.map(|change| change * change).sum::<f64>()
        };
        let squares: Vec<f64> = (0..genotypes.n_cols()).into_par_iter().map(of_variant).collect();
        self.next = Some((model.clone(), z));
        self.changes += 1;
        self.bytes += genotypes.bytes_read() - before;
        Ok(squares.iter().sum())
    }

    fn accept(&mut self) {
        let Some((model, z)) = self.next.take() else { return };
        let said = Said::by(&model, &z);
        let (variants, constant) = (self.holes.variants_mut(), &self.constant);
        let varying = variants.into_par_iter().enumerate().filter(|(j, _)| !constant[*j]);
        varying.for_each(|(j, (samples, values))| {
            samples.iter().zip(values).for_each(|(l, y)| *y = said.of(*l, j));
        });
    }

    fn read(&self) -> (f64, u64) {
        // One walk over the codes, where a product takes two.
        (self.changes as f64 / 2.0, self.bytes)
    }
}

/// What components say of a place: μ + DUz.
struct Said<'m> {
    model: &'m Model,
    /// U, d×k, row-major.
    u: Block,
    z: &'m [f64],
}

impl<'m> Said<'m> {
    fn by(model: &'m Model, z: &'m [f64]) -> Self {
        Self { model, u: model.vectors(), z }
    }

    fn scale(&self, j: usize) -> f64 {
        self.model.scale().map_or(1.0, |scale| scale[j])
    }

    fn of(&self, l: u32, j: usize) -> f64 {
        let (k, l) = (self.u.p(), l as usize);
        let along = self.u.values()[j * k..(j + 1) * k].iter().zip(&self.z[l * k..(l + 1) * k]);
        let a: f64 = along.map(|(u, z)| u * z).sum();
        a * self.scale(j) + self.model.shift().map_or(0.0, |shift| shift[j])
    }
}
