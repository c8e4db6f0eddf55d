//! Problems drawn at random, each from its number: what makes a problem hard is drawn separately, and may come together.

use hbpca::{Block, SolverKind};

use crate::common::{Xorshift, with_leading_spectrum};
use crate::problem::{PREPARATIONS, Problem, Storage};

/// What a problem is solved with.
pub struct Draw {
    pub problem: Problem,
    pub solver: SolverKind,
    /// Whether the rows are read chunk by chunk.
    pub streamed: bool,
}

/// Draws, with few words.
struct Dice(Xorshift);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        ((self.0.uniform() * n as f64) as usize).min(n - 1)
    }

    fn chance(&mut self, share: f64) -> bool {
        self.0.uniform() < share
    }

    /// 10 to a power between two.
    fn magnitude(&mut self, from: f64, to: f64) -> f64 {
        10.0_f64.powf(from + (to - from) * self.0.uniform())
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Problem number i of a seed.
pub fn draw(seed: u64, i: u64, solvers: &[SolverKind]) -> Draw {
    let mut dice = Dice(Xorshift((seed.rotate_left(17) ^ i.wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1));
    (0..20).for_each(|_| {
        dice.0.uniform(); // the first numbers of near seeds are near
    });
    let d = 2 + dice.below(30);
    let n = if dice.chance(0.15) { 2 + dice.below(d) } else { d + 2 + dice.below(90) };
    let k = 1 + dice.below(d.min(n).min(8));
    let (what, lambda) = spectrum(&mut dice, n, d, k);
    let (mut rows, _) = with_leading_spectrum(n, d, &lambda, seed ^ i);
    let mut what = format!("{seed}/{i}: {what}");
    disturb(&mut dice, &mut rows, d, &mut what);
    let (storage, preprocessing) = (dice.one_of(&Storage::ALL), dice.one_of(&PREPARATIONS));
    let mut problem = Problem::new(&what, &rows, d, k, storage, preprocessing);
    problem.tol = dice.one_of(&[1e-2, 1e-4, 1e-6, 1e-6, 1e-8, 1e-10]);
    problem.seed = i;
    if dice.chance(0.2) && n > k + 2 {
        let weights: Vec<f64> = (0..n).map(|_| dice.below(4) as f64 * 0.5).collect();
        if weights.iter().filter(|w| **w > 0.0).count() > k + 1 {
            problem.weights = Some(weights);
            problem.label += ", weighted";
        }
    }
    let solver = dice.one_of(solvers);
    let alone = [
        SolverKind::Power,
        SolverKind::PowerM,
        SolverKind::VrPca,
        SolverKind::VrPowerM,
        SolverKind::VrHbPower,
        SolverKind::Oja,
    ];
    let solver = if k == 1 && dice.chance(0.3) { dice.one_of(&alone) } else { solver };
    if dice.chance(0.2) && solver.finds_many() {
        problem.start = Some(wrong_start(&mut dice, d, k));
        problem.label += ", started from other vectors";
    }
    problem.label = format!("{}, tol = {:e}", problem.label, problem.tol);
    let streamed = problem.weights.is_none() && problem.start.is_none() && dice.chance(0.2);
    Draw { problem, solver, streamed }
}

/// Eigenvalues, descending, and what they are like.
fn spectrum(dice: &mut Dice, n: usize, d: usize, k: usize) -> (String, Vec<f64>) {
    let r = d.min(n);
    let graded = |top: f64, i: usize| top.powf(-(i as f64) / (r.max(2) - 1) as f64);
    match dice.below(6) {
        0 => {
            let ratio = dice.magnitude(0.0, 16.0);
            (format!("graded over {ratio:.0e}"), (0..r).map(|i| graded(ratio, i)).collect())
        }
        1 => {
            let big = dice.magnitude(0.0, 14.0);
            let above = 1 + dice.below(2);
            let value = |i: usize| if i < above { big } else { graded(10.0, i) };
            (format!("{above} of {big:.0e}"), (0..r).map(value).collect())
        }
        2 => {
            // Near-copies, cut by k or not.
            let (copies, first) = (2 + dice.below(9), dice.below(k));
            let spread = dice.magnitude(-15.0, -2.0);
            let value = |i: usize| {
                if i < first {
                    3.0 - 0.2 * i as f64
                } else if i < first + copies {
                    1.0 - spread * (i - first) as f64
                } else {
                    0.5 * graded(100.0, i)
                }
            };
            (format!("{copies} within {spread:.0e} below {first}"), (0..r).map(value).collect())
        }
        3 => {
            let gap = dice.magnitude(-12.0, 0.0);
            let value = |i: usize| if i < k { 1.0 } else { (1.0 - gap) * 0.9_f64.powi((i - k) as i32) };
            (format!("a gap of {gap:.0e} after k"), (0..r).map(value).collect())
        }
        4 => {
            let rank = dice.below(r + 1);
            let value = |i: usize| if i < rank { graded(1e3, i) } else { 0.0 };
            (format!("rank {rank}"), (0..r).map(value).collect())
        }
        _ => ("slow".to_string(), (0..r).map(|i| 1.0 / (1.0 + i as f64 * 0.05)).collect()),
    }
}

/// A row that dominates, columns in other units, means far from zero, holes.
fn disturb(dice: &mut Dice, rows: &mut [f64], d: usize, what: &mut String) {
    let n = rows.len() / d;
    if dice.chance(0.15) {
        let (row, by) = (dice.below(n), dice.magnitude(0.0, 7.0));
        rows[row * d..(row + 1) * d].iter_mut().for_each(|x| *x = (*x + 0.1) * by);
        *what += &format!(", a row times {by:.0e}");
    }
    if dice.chance(0.2) {
        let most = dice.magnitude(0.0, 6.0).log10();
        let units: Vec<f64> = (0..d).map(|_| dice.magnitude(-most, most)).collect();
        rows.chunks_exact_mut(d).for_each(|row| row.iter_mut().zip(&units).for_each(|(x, unit)| *x *= unit));
        *what += &format!(", units from 1e-{most:.0} to 1e{most:.0}");
    }
    if dice.chance(0.2) {
        let far = dice.magnitude(0.0, 9.0);
        let means: Vec<f64> = (0..d).map(|_| far * dice.0.normal()).collect();
        rows.chunks_exact_mut(d).for_each(|row| row.iter_mut().zip(&means).for_each(|(x, mean)| *x += mean));
        *what += &format!(", means of {far:.0e}");
    }
    if dice.chance(0.2) {
        let kept = 0.1 + 0.8 * dice.0.uniform();
        rows.iter_mut().for_each(|x| *x = if dice.chance(kept) { *x } else { 0.0 });
        *what += &format!(", {:.0} % kept", 100.0 * kept);
    }
}

/// Vectors along single axes: for many problems nowhere near the answer.
fn wrong_start(dice: &mut Dice, d: usize, k: usize) -> Block {
    let first = dice.below(d);
    let mut values = vec![0.0; d * k];
    (0..k).for_each(|i| values[(first + i) % d * k + i] = 1.0);
    Block::from_values(d, k, values).unwrap()
}
