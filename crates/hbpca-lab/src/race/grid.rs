//! The search for a step size: a coarse grid, halved around its best point.

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
}

/// The best step size and all that were tried, by increasing step.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The winner: most digits per pass.
    pub best: GridPoint,
    /// All points.
    pub points: Vec<GridPoint>,
}

/// Searches `grid`. `digits` gives the digits won per pass for a step size and a seed. Where the best point is an end of
/// the grid, the grid is continued beyond it, at most three times; then the spacing is halved around the best.
/// Tries that do not need each other's outcome run side by side.
pub fn search<E: Send>(
    grid: &GridSpec,
    scale: StepScale,
    lambda1: f64,
    digits: impl Fn(f64, u64) -> Result<f64, E> + Sync,
) -> Result<Search, E> {
    let mut points: Vec<GridPoint> = Vec::new();
    let try_all = |candidates: &[f64], points: &mut Vec<GridPoint>| {
        let seeds = || FIRST_SEED..FIRST_SEED + grid.seeds;
        let tries: Vec<(f64, u64)> =
            candidates.iter().flat_map(|&x| seeds().map(move |seed| (scale.eta(x, lambda1), seed))).collect();
        let scores = side_by_side(&tries, |(eta, seed)| digits(*eta, *seed))?;
        for (&x, scores) in candidates.iter().zip(scores.chunks(seeds().count())) {
            points.push(GridPoint { x, eta: scale.eta(x, lambda1), score: mean(scores) });
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let nothing = GridPoint { x: 1.0, eta: scale.eta(1.0, lambda1), score: 0.0 };
        Ok(points.iter().copied().reduce(better).unwrap_or(nothing))
    };
    let mut candidates = log_spaced(grid.smallest, grid.largest, grid.points);
    if scale == StepScale::HeavyBall {
        candidates.push(f64::INFINITY);
    }
    let mut best = try_all(&candidates, &mut points)?;
    if grid.points < 2 {
        return Ok(Search { best, points });
    }
    let mut ratio = (grid.largest / grid.smallest).powf(1.0 / (grid.points - 1) as f64);
    for _ in 0..MOST_EXTENSIONS {
        let (first, last) = (points[0].x, points[points.len() - 1].x);
        let beyond = match best.x {
            x if x <= first => x / ratio,
            x if x >= last && x.is_finite() => x * ratio,
            _ => break,
        };
        best = try_all(&[beyond], &mut points)?;
    }
    for _ in 0..grid.refinements {
        if best.x.is_infinite() {
            break;
        }
        ratio = ratio.sqrt();
        best = try_all(&[best.x / ratio, best.x * ratio], &mut points)?;
    }
    Ok(Search { best, points })
}

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

    const GRID: GridSpec =
        GridSpec { smallest: 0.01, largest: 100.0, points: 9, refinements: 2, seeds: 2, budget: 1.0 };

    #[test]
    fn the_maximum_of_a_parabola_is_found_to_the_last_spacing() {
        // −(log₁₀x − 0.3)²: the grid has spacing ½, then ¼, then ⅛.
        let score = |eta: f64, _| Ok::<_, Infallible>(-(eta.log10() - 0.3).powi(2));
        let found = search(&GRID, StepScale::Plain, 1.0, score).unwrap();
        assert!((found.best.x.log10() - 0.25).abs() < 1e-12, "{:?}", found.best);
        assert_eq!(found.points.len(), 9 + 2 + 2);
        assert!(found.points.is_sorted_by(|a, b| a.x < b.x));
    }

    #[test]
    fn heavy_balls_also_try_the_full_step_and_stop_there_when_it_wins() {
        let found = search(&GRID, StepScale::HeavyBall, 2.0, |eta, _| Ok::<_, Infallible>(eta)).unwrap();
        assert_eq!(found.best.eta.to_bits(), 1.0_f64.to_bits());
        assert_eq!(found.points.len(), 10);
    }

    #[test]
    fn a_best_point_at_an_end_is_followed_outwards() {
        // The grid ends at 100; the maximum is at 10^2.9, two spacings of ½ beyond.
        let score = |eta: f64, _| Ok::<_, Infallible>(-(eta.log10() - 2.9).powi(2));
        let found = search(&GridSpec { refinements: 0, ..GRID }, StepScale::Plain, 1.0, score).unwrap();
        assert!((found.best.x.log10() - 3.0).abs() < 1e-12, "{:?}", found.best);
        // A rise without end is followed three times, and no further.
        let falling = search(&GRID, StepScale::Plain, 1.0, |eta: f64, _| Ok::<_, Infallible>(-eta)).unwrap();
        assert_eq!(falling.points.len(), 9 + MOST_EXTENSIONS + 2 + 2);
    }

    #[test]
    fn scores_are_means_over_seeds_of_the_search_and_ties_go_to_the_smaller_step() {
        let seeds = Mutex::new(Vec::new());
        let flat = |_, seed| {
            seeds.lock().unwrap().push(seed);
            Ok::<_, Infallible>((seed - FIRST_SEED) as f64)
        };
        let found =
            search(&GridSpec { refinements: 0, points: 1, ..GRID }, StepScale::Plain, 1.0, flat).unwrap();
        assert!((found.best.score - 0.5).abs() < f64::EPSILON);
        assert_eq!(found.best, found.points[0]);
        let mut seeds = seeds.into_inner().unwrap();
        seeds.sort_unstable();
        assert_eq!(seeds, [FIRST_SEED, FIRST_SEED + 1]);
    }
}
