//! A certificate in words.

use std::fmt;

use super::{Certainty, Certificate, Cluster, Status};

impl fmt::Display for Certificate {
    /// One sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let k = self.eigenvalues.len().max(self.residuals.len());
        let worst = self.residuals.iter().copied().fold(0.0, f64::max);
        let (plural, own) = if k == 1 { ("value lies", "it") } else { ("values each lie", "each") };
        write!(
            f,
            "{k} eigen{plural} within {worst:.1e} ({:.1e} of {own}) of an eigenvalue of C",
            self.worst()
        )?;
        self.write_angles(f)?;
        let null: Vec<usize> = (0..k).filter(|i| self.status.get(*i) == Some(&Status::NoVariance)).collect();
        if let (Some(first), Some(last)) = (null.first(), null.last()) {
            let most = null.iter().map(|i| self.eigenvalues[*i] + self.residuals[*i]).fold(0.0, f64::max);
            let have = if first == last { "has" } else { "have" };
            write!(f, "; {} {have} no variance to rounding (at most {most:.1e})", components(*first, *last))?;
        }
        Ok(())
    }
}

impl Certificate {
    /// How certain the angles are, in words.
    pub fn certainty_in_words(&self) -> String {
        match (self.certainty, self.failure_probability) {
            (Certainty::Proved, _) => "proved".to_owned(),
            (Certainty::Probability, Some(delta)) => format!("with probability at least 1 − {delta:.0e}"),
            _ => "estimated".to_owned(),
        }
    }

    /// The bound on the angle of component i, or the components that it is determined with.
    pub fn angle_in_words(&self, i: usize) -> String {
        let bound = |angle: f64| if angle == 0.0 { "0".to_owned() } else { format!("{angle:.1e}") };
        match (self.status.get(i), self.angle_bounds[i], self.cluster_of(i)) {
            (Some(Status::NoVariance), ..) => "none".into(),
            (_, Some(angle), _) => bound(angle),
            (_, None, Some(Cluster(first, last, angle))) => {
                let bound = angle.map_or_else(|| "unknown".into(), bound);
                format!("{bound} with {}–{}", first + 1, last + 1)
            }
            (_, None, None) => "unknown".into(),
        }
    }

    /// What became of component i, where it did not converge.
    pub fn status_in_words(&self, i: usize) -> &'static str {
        match self.status.get(i) {
            Some(Status::NoVariance) => "no variance to rounding",
            Some(Status::Stagnated) => "stagnated",
            Some(Status::Open) => "not converged",
            _ => "",
        }
    }

    fn write_angles(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with_variance = |i: &usize| self.status.get(*i) != Some(&Status::NoVariance);
        let angles = || (0..self.angle_bounds.len()).filter(with_variance).map(|i| self.angle_bounds[i]);
        if angles().next().is_none() {
            return Ok(());
        }
        let words = self.certainty_in_words();
        if angles().all(|angle| angle.is_some()) {
            let widest = angles().flatten().fold(0.0, f64::max);
            return write!(f, "; every vector is within an angle of {widest:.1e} ({words})");
        }
        match self.subspace_angle_bound {
            Some(angle) => write!(f, "; all together span a space within {angle:.1e} ({words})")?,
            None => {
                write!(f, "; the gap to the next eigenvalue is unknown or too small for a bound on angles")?;
            }
        }
        for Cluster(first, last, angle) in &self.clusters {
            match angle {
                Some(angle) => {
                    write!(
                        f,
                        "; {} are determined only together, within {angle:.1e}",
                        components(*first, *last)
                    )?;
                }
                None => {
                    write!(f, "; {} have eigenvalues too close to tell apart", components(*first, *last))?;
                }
            }
        }
        Ok(())
    }
}

/// Components as people count them.
pub(super) fn components(first: usize, last: usize) -> String {
    if first == last {
        format!("component {}", first + 1)
    } else {
        format!("components {}–{}", first + 1, last + 1)
    }
}
