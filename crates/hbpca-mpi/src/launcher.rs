//! What the environment says about who started this process.

/// A program that starts ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// Whose it is.
    pub kind: LauncherKind,
    /// How many processes it started, where it says so.
    pub size: Option<usize>,
    /// The number it gave to this one, where it says so.
    pub rank: Option<usize>,
}

/// Whose launcher it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LauncherKind {
    /// Open MPI's `mpirun`.
    OpenMpi,
    /// `mpiexec` of MPICH and of its relatives, or `srun` with PMI.
    Pmi,
    /// `srun` with PMIx.
    Pmix,
}

impl Launcher {
    /// The launcher of this process, if one is known to have started it.
    pub fn of_environment() -> Option<Self> {
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name).and_then(|text| text.trim().parse().ok());
        let known = [
            (LauncherKind::OpenMpi, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
            (LauncherKind::Pmi, "PMI_SIZE", "PMI_RANK"),
        ];
        let of_size = known.into_iter().find_map(|(kind, size, rank)| {
            number(size).map(|size| Self { kind, size: Some(size), rank: number(rank) })
        });
        of_size.or_else(|| {
            let (size, rank) = (number("SLURM_STEP_NUM_TASKS"), number("PMIX_RANK"));
            rank.map(|rank| Self { kind: LauncherKind::Pmix, size, rank: Some(rank) })
        })
    }

    /// Whether there are other ranks, as far as the environment tells.
    pub fn started_several(self) -> bool {
        self.size.is_none_or(|size| size > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_what_they_set() {
        let of = |set: &[(&str, &str)]| {
            Launcher::of(|name| {
                set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")]), None); // a batch script, no step
        let open = of(&[("OMPI_COMM_WORLD_SIZE", "3"), ("OMPI_COMM_WORLD_RANK", "2")]).unwrap();
        assert_eq!(open, Launcher { kind: LauncherKind::OpenMpi, size: Some(3), rank: Some(2) });
        assert!(open.started_several());
        let alone = of(&[("PMI_SIZE", "1"), ("PMI_RANK", "0")]).unwrap();
        assert!(alone.kind == LauncherKind::Pmi && !alone.started_several());
        let step = of(&[("PMIX_RANK", "1"), ("SLURM_STEP_NUM_TASKS", "4")]).unwrap();
        assert_eq!((step.kind, step.size, step.rank), (LauncherKind::Pmix, Some(4), Some(1)));
    }
}
