//! The search for a step size: a coarse grid, continued beyond its ends, halved around its best point, and a final among the best.

use crate::experiment::GridSpec;
use crate::statistics::{log_spaced, mean};

use super::StepScale;
use super::side_by_side::side_by_side;

/// A step size tried, and what it won.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridPoint {
    /// Position on the solver's scale; ∞ for a heavy ball's full step.
    pub x: f64,
    /// η.
    pub eta: f64,
    /// Mean of the digits won per pass.
    pub score: f64,
    /// Seeds it is a mean over.
    pub seeds: u64,
}

/// The best step size and all that were tried, by increasing step.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The winner: most digits per pass, of those tried with all seeds.
    pub best: GridPoint,
    /// All points.
    pub points: Vec<GridPoint>,
}

/// Searches `grid` below `most`. `digits` gives the digits won per pass for a step size and a seed. Where the best point is an end of
/// the grid, the grid is continued beyond it, at most three times, and so below a full step that wins; then the spacing is halved around the best. All that is
/// done with a few seeds; the best points are then tried with all of them. Tries that do not need each other's outcome run side by side.
pub fn search<E: Send>(
    grid: &GridSpec,
    scale: StepScale,
    lambda1: f64,
    most: f64,
    digits: impl Fn(f64, u64) -> Result<f64, E> + Sync,
) -> Result<Search, E> {
    let seeds = |count: u64| FIRST_SEED..FIRST_SEED + count;
    let screening = grid.screening.unwrap_or(grid.seeds).min(grid.seeds);
    let try_points = |xs: &[f64], count: u64| {
        let tries: Vec<(f64, u64)> =
            xs.iter().flat_map(|&x| seeds(count).map(move |seed| (scale.eta(x, lambda1), seed))).collect();
        let scores = side_by_side(&tries, |(eta, seed)| digits(*eta, *seed))?;
        let each = xs.iter().zip(scores.chunks(seeds(count).count()));
        Ok(each
            .map(|(&x, scores)| GridPoint {
                x,
                eta: scale.eta(x, lambda1),
                score: mean(scores),
                seeds: count,
            })
            .collect::<Vec<_>>())
    };
    let mut points: Vec<GridPoint> = Vec::new();
    let screen = |xs: &[f64], points: &mut Vec<GridPoint>| {
        let new: Vec<f64> = xs
            .iter()
            .copied()
            .filter(|x| *x <= most && !points.iter().any(|point| point.x.to_bits() == x.to_bits()))
            .collect();
        points.extend(try_points(&new, screening)?);
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let nothing = GridPoint { x: 1.0, eta: scale.eta(1.0, lambda1), score: 0.0, seeds: screening };
        Ok(points.iter().copied().reduce(better).unwrap_or(nothing))
    };
    // A bounded grid ends at its bound, with the same spacing.
    let down = (most / grid.largest).min(1.0);
    let mut candidates = log_spaced(grid.smallest * down, grid.largest * down, grid.points);
    if let Some(last) = candidates.last_mut() {
        *last = last.min(most);
    }
    if scale == StepScale::HeavyBall {
        candidates.push(f64::INFINITY);
    }
    let mut best = screen(&candidates, &mut points)?;
    if grid.points >= 2 {
        let mut ratio = (grid.largest / grid.smallest).powf(1.0 / (grid.points - 1) as f64);
        for _ in 0..MOST_EXTENSIONS {
            let finite = || points.iter().map(|point| point.x).filter(|x| x.is_finite());
            let (first, last) = (points[0].x, finite().fold(0.0, f64::max));
            let beyond = match best.x {
                x if x <= first => x / ratio,
                x if x >= last && last < most => last * ratio,
                _ => break,
            };
            best = screen(&[beyond], &mut points)?;
        }
        for _ in 0..grid.refinements {
            ratio = ratio.sqrt();
            if best.x.is_finite() {
                best = screen(&[best.x / ratio, best.x * ratio], &mut points)?;
            }
        }
    }
    if screening < grid.seeds {
        let mut finalists = points.clone();
        finalists.sort_by(|a, b| b.score.total_cmp(&a.score));
        finalists.truncate(FINALISTS);
        finalists.sort_by(|a, b| a.x.total_cmp(&b.x));
        let tried = try_points(&finalists.iter().map(|point| point.x).collect::<Vec<_>>(), grid.seeds)?;
        best = tried.iter().copied().reduce(better).unwrap_or(best);
        for point in tried {
            if let Some(old) = points.iter_mut().find(|old| old.x.to_bits() == point.x.to_bits()) {
                *old = point;
            }
        }
    }
    Ok(Search { best, points })
}

/// Points that are tried with all seeds.
const FINALISTS: usize = 4;

/// Points added beyond an end of the grid.
const MOST_EXTENSIONS: usize = 3;

/// Seeds of the search, apart from those of the race: the step must not be fitted to the runs that are shown.
const FIRST_SEED: u64 = 1_000_000;

/// The point with more digits per pass; of equals the smaller step.
fn better(a: GridPoint, b: GridPoint) -> GridPoint {
    if b.score > a.score { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::Mutex;

    const GRID: GridSpec = GridSpec {
        smallest: 0.01,
        largest: 100.0,
        points: 9,
        refinements: 2,
        seeds: 2,
        screening: None,
        budget: 1.0,
    };

    #[test]
    fn the_maximum_of_a_parabola_is_found_to_the_last_spacing() {
        // −(log₁₀x − 0.3)²: the grid has spacing ½, then ¼, then ⅛.
        let score = |eta: f64, _| Ok::<_, Infallible>(-(eta.log10() - 0.3).powi(2));
        let found = search(&GRID, StepScale::Plain, 1.0, f64::INFINITY, score).unwrap();
        assert!((found.best.x.log10() - 0.25).abs() < 1e-12, "{:?}", found.best);
        assert_eq!(found.points.len(), 9 + 2 + 2);
        assert!(found.points.is_sorted_by(|a, b| a.x < b.x));
    }

    #[test]
    fn heavy_balls_also_try_the_full_step_and_steps_below_it_when_it_wins() {
        let found =
            search(&GRID, StepScale::HeavyBall, 2.0, f64::INFINITY, |eta, _| Ok::<_, Infallible>(eta))
                .unwrap();
        assert_eq!(found.best.eta.to_bits(), 1.0_f64.to_bits());
        assert_eq!(found.points.len(), 10 + MOST_EXTENSIONS, "beyond 100, on the way to the full step");
    }

    #[test]
    fn a_bound_is_kept_and_tried() {
        let rising = |eta: f64, _| Ok::<_, Infallible>(eta);
        let found = search(&GRID, StepScale::Plain, 1.0, 0.5, rising).unwrap();
        assert_eq!(found.best.x.to_bits(), 0.5_f64.to_bits());
        assert!(found.points.iter().all(|point| point.x <= 0.5));
    }

    #[test]
    fn the_best_points_meet_again_with_all_seeds() {
        // The first seed flatters 100; the others prefer 1.
        let score = |eta: f64, seed: u64| {
            let centre = if seed == FIRST_SEED { 2.0 } else { 0.0 };
            Ok::<_, Infallible>(-(eta.log10() - centre).abs())
        };
        let grid = GridSpec { refinements: 0, points: 3, seeds: 9, screening: Some(1), ..GRID };
        let found = search(&grid, StepScale::Plain, 1.0, f64::INFINITY, score).unwrap();
        assert!((found.best.x - 1.0).abs() < 1e-12, "{found:?}");
        assert_eq!(found.best.seeds, 9);
    }

    #[test]
    fn a_best_point_at_an_end_is_followed_outwards() {
        // The grid ends at 100; the maximum is at 10^2.9, two spacings of ½ beyond.
        let score = |eta: f64, _| Ok::<_, Infallible>(-(eta.log10() - 2.9).powi(2));
        let found = search(&GridSpec { refinements: 0, ..GRID }, StepScale::Plain, 1.0, f64::INFINITY, score)
            .unwrap();
        assert!((found.best.x.log10() - 3.0).abs() < 1e-12, "{:?}", found.best);
        // A rise without end is followed three times, and no further.
        let falling =
            search(&GRID, StepScale::Plain, 1.0, f64::INFINITY, |eta: f64, _| Ok::<_, Infallible>(-eta))
                .unwrap();
        assert_eq!(falling.points.len(), 9 + MOST_EXTENSIONS + 2 + 2);
    }

    #[test]
    fn scores_are_means_over_seeds_of_the_search_and_ties_go_to_the_smaller_step() {
        let seeds = Mutex::new(Vec::new());
        let flat = |_, seed| {
            seeds.lock().unwrap().push(seed);
            Ok::<_, Infallible>((seed - FIRST_SEED) as f64)
        };
        let found = search(
            &GridSpec { refinements: 0, points: 1, ..GRID },
            StepScale::Plain,
            1.0,
            f64::INFINITY,
            flat,
        )
        .unwrap();
        assert!((found.best.score - 0.5).abs() < f64::EPSILON);
        assert_eq!(found.best, found.points[0]);
        let mut seeds = seeds.into_inner().unwrap();
        seeds.sort_unstable();
        assert_eq!(seeds, [FIRST_SEED, FIRST_SEED + 1]);
    }
}
