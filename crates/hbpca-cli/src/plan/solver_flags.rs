//! Flags that only some solvers look at.

use hbpca::SolverKind;

use crate::args::FitArgs;

/// What a solver may look at.
#[derive(Clone, Copy)]
enum Choice {
    StepSize,
    Momentum,
    Batches,
    Start,
}

impl Choice {
    fn matters_to(self, solver: SolverKind) -> bool {
        match self {
            Self::StepSize => solver.needs_step_size(),
            Self::Momentum => solver.has_momentum(),
            Self::Batches => solver.has_batches(),
            Self::Start => solver != SolverKind::Covariance,
        }
    }
}

/// The flags of this kind that were given.
pub struct SolverFlags(Vec<(&'static str, Choice)>);

impl SolverFlags {
    /// Finds them among all arguments.
    pub fn given(args: &FitArgs) -> Self {
        let flags = [
            ("--eta", args.eta.is_some(), Choice::StepSize),
            ("--momentum", args.momentum.is_some(), Choice::Momentum),
            ("--lambda2", args.lambda2.is_some(), Choice::Momentum),
            ("--batch", args.batch.is_some(), Choice::Batches),
            ("--epoch", args.epoch.is_some(), Choice::Batches),
            ("--start", args.start.is_some(), Choice::Start),
        ];
        Self(flags.into_iter().filter(|flag| flag.1).map(|(name, _, choice)| (name, choice)).collect())
    }

    /// Those that `solver`, the one that ran, does not look at.
    pub fn idle_for(&self, solver: SolverKind) -> Vec<&'static str> {
        self.0.iter().filter(|(_, choice)| !choice.matters_to(solver)).map(|(name, _)| *name).collect()
    }
}
