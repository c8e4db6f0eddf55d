//! Which instructions the processor offers, asked once.

use std::sync::OnceLock;

/// A set of instructions the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// What every processor of the target has; plain arrays, no fused multiply–add.
    Baseline,
    /// As many lanes and registers as AVX-512 has, in plain arrays: its shapes are tested on every processor.
    #[cfg(test)]
    Wide,
    /// AVX2 with FMA: four f64 lanes, 16 registers.
    Avx2,
    /// AVX-512F: eight f64 lanes, 32 registers.
    Avx512,
}

impl Level {
    /// Every level, slowest first.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 4] = [Self::Baseline, Self::Wide, Self::Avx2, Self::Avx512];

    /// The best one this processor can run.
    pub(crate) fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| {
            let fastest_first = [Self::Avx512, Self::Avx2];
            fastest_first.into_iter().find(|level| level.is_available()).unwrap_or(Self::Baseline)
        })
    }

    /// Whether this processor can run it.
    pub(crate) fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        match self {
            Self::Baseline => true,
            #[cfg(test)]
            Self::Wide => true,
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            Self::Avx512 => Self::Avx2.is_available() && is_x86_feature_detected!("avx512f"),
        }
        #[cfg(not(target_arch = "x86_64"))]
        !matches!(self, Self::Avx2 | Self::Avx512)
    }
}
