//! Recognising the floor of the precision.

use crate::{Archive, Error};

/// Watches how far residuals are above the rounding of their images, and tells when that is all that is left of them.
#[derive(Default)]
pub(super) struct StagnationTest {
    best: Option<f64>,
    looks_without_progress: usize,
}

impl StagnationTest {
    /// Looks without progress, close to the floor, after which more are pointless.
    const LOOKS: usize = 10;

    /// Sees the residual, as a multiple of its rounding, of one more look.
    pub(super) fn see(&mut self, excess: f64) {
        if self.best.is_none_or(|best| excess < 0.9 * best) {
            self.best = Some(excess);
            self.looks_without_progress = 0;
        } else {
            self.looks_without_progress += 1;
        }
    }

    /// Whether the residual seen last is rounding. Bounds are larger than what rounding really does: below its bound a residual has to stop falling,
    /// or to be far below; within a thousand of it, not to fall for ten looks.
    pub(super) fn is_reached(&self, excess: f64) -> bool {
        let looks = self.looks_without_progress;
        excess <= 1e-3 || (excess <= 0.1 && looks >= 1) || (excess <= 1e3 && looks >= Self::LOOKS)
    }

    pub(super) fn archive(&mut self, archive: &mut Archive<'_>) -> Result<(), Error> {
        archive.optional("best", &mut self.best)?;
        archive.size("looks_without_progress", &mut self.looks_without_progress)
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_wrap, reason = "tests count small")]
mod tests {
    use super::*;

    fn reached(test: &mut StagnationTest, measured: f64, floor: f64) -> bool {
        test.see(measured / floor);
        test.is_reached(measured / floor)
    }

    #[test]
    fn stagnation_ends_at_once_where_all_is_rounding() {
        assert!(reached(&mut StagnationTest::default(), 0.0005e-16, 1e-16));
        let mut test = StagnationTest::default();
        assert!(!reached(&mut test, 0.05e-16, 1e-16));
        assert!(!reached(&mut test, 0.02e-16, 1e-16), "still falling");
        assert!(reached(&mut test, 0.02e-16, 1e-16));
        assert!(!reached(&mut StagnationTest::default(), 0.2e-16, 1e-16));
    }

    #[test]
    fn stagnation_ends_after_ten_looks_without_progress_near_the_floor() {
        let mut test = StagnationTest::default();
        for look in 0..=StagnationTest::LOOKS {
            // Falling by less than a tenth is no progress; the first look always is one.
            let residual = 5e-14 * 0.95_f64.powi(look.min(1) as i32);
            assert_eq!(reached(&mut test, residual, 1e-16), look == StagnationTest::LOOKS, "look {look}");
        }
    }

    #[test]
    fn stagnation_has_no_end_far_above_the_floor_and_starts_anew_with_progress() {
        let mut test = StagnationTest::default();
        assert!((0..100).all(|_| !reached(&mut test, 1e-3, 1e-16)));
        // Down to the floor's neighbourhood by halves: never ten looks without progress.
        let mut test = StagnationTest::default();
        assert!((0..40).all(|look| !reached(&mut test, 1e-3 * 0.5_f64.powi(look), 1e-16)));
    }
}
