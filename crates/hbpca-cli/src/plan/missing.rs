//! Missing values, as they were asked for.

use hbpca::missing::{EmLimits, Missing};

use crate::args::MissingArgs;
use crate::exit::Failure;

impl MissingArgs {
    /// What becomes of them: an error, but of genotypes the mean, where nothing else was said.
    pub fn policy(&self, of_genotypes: bool) -> Missing {
        self.missing.unwrap_or(if of_genotypes { Missing::Mean } else { Missing::Error })
    }

    /// When `em` stops; its flags go with it only.
    pub fn em_limits(&self, policy: Missing) -> Result<EmLimits, Failure> {
        let given = [
            ("--em-tol", self.em_tol.is_some()),
            ("--em-max-rounds", self.em_max_rounds.is_some()),
            ("--em-ridge", self.em_ridge.is_some()),
        ];
        if let (false, Some((flag, _))) = (policy == Missing::Em, given.iter().find(|(_, given)| *given)) {
            return Err(Failure::Usage(format!("{flag} goes with --missing em only")));
        }
        let default = EmLimits::default();
        let limits = EmLimits {
            tol: self.em_tol.unwrap_or(default.tol),
            max_rounds: self.em_max_rounds.unwrap_or(default.max_rounds),
            ridge: self.em_ridge.unwrap_or(default.ridge),
        };
        limits.check().map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(limits)
    }
}
