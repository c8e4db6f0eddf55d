//! The lanes of x86-64: AVX2 with FMA, and AVX-512, in both precisions.

mod double;
mod single;

pub(crate) use double::{Avx2, Avx512};
pub(crate) use single::{Avx2Single, Avx512Single};
