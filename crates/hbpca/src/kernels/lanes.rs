//! What a kernel may do with a register of lanes, so that each kernel is written once.

use super::Level;
use crate::matrix::Real;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// A register of `N` lanes and the operations the kernels need.
///
/// # Safety
///
/// Every method may only be called on a processor that has the level's instructions, which [`Arithmetic::run`] makes sure of,
/// and inside [`Lanes::enter`], so that the code is compiled for them. Pointers must be readable (writable) for the
/// lanes that the method touches; no alignment is asked for.
pub trait Lanes: Copy {
    /// What a lane holds: the precision of the arithmetic.
    type Number: Stored;
    /// The register.
    type V: Copy;
    /// Which lanes a masked load touches.
    type Mask: Copy;
    /// Lanes of a register.
    const N: usize;
    /// Registers of the processor: decides how much a kernel keeps in them.
    const REGISTERS: usize;
    /// Whether it is a plain array: shapes that are there for speed need not be compiled for it.
    const IS_PLAIN: bool = false;

    /// Runs `kernel`, compiled for this level.
    unsafe fn enter<K: Kernel<Self::Number>>(kernel: K) -> K::Output;

    /// All lanes `x`.
    unsafe fn splat(x: Self::Number) -> Self::V;
    /// `v`, which has to be in a register by itself here. Where a loop needs every register there is, a compiler that reads ahead
    /// runs out of them, and sums go through memory.
    #[inline(always)]
    unsafe fn in_turn(v: Self::V) -> Self::V {
        v
    }
    /// N values.
    unsafe fn load(from: *const Self::Number) -> Self::V;
    /// N values of f32.
    unsafe fn load_f32(from: *const f32) -> Self::V;
    /// N values of f64, rounded where the lanes are narrower.
    unsafe fn load_f64(from: *const f64) -> Self::V;
    /// The mask of the first `n` < N lanes.
    unsafe fn mask(n: usize) -> Self::Mask;
    /// The values under the mask, zeros elsewhere; memory outside the mask is not touched.
    unsafe fn load_masked(from: *const Self::Number, mask: Self::Mask) -> Self::V;
    /// The same for values of f64, rounded where the lanes are narrower.
    unsafe fn load_f64_masked(from: *const f64, mask: Self::Mask) -> Self::V;
    /// The same for values of f32.
    unsafe fn load_f32_masked(from: *const f32, mask: Self::Mask) -> Self::V;
    /// Writes N values.
    unsafe fn store(to: *mut Self::Number, v: Self::V);
    /// Writes the values under the mask; memory outside the mask is not touched.
    unsafe fn store_masked(to: *mut Self::Number, v: Self::V, mask: Self::Mask);
    /// Adds the lanes to N values of f64.
    unsafe fn add_to_f64(to: *mut f64, v: Self::V);
    /// a + b.
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    /// a − b.
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    /// a·b + c, rounded once where the level has FMA.
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The same for one number.
    unsafe fn fma_one(a: Self::Number, b: Self::Number, c: Self::Number) -> Self::Number;
    /// `a` where a < b, else `b`: a NaN in `a` is passed over.
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V;
    /// `a` where a > b, else `b`: a NaN in `a` is passed over.
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    /// A bit for every lane that is not zero; a NaN is not.
    unsafe fn nonzero(v: Self::V) -> u32;
    /// The sum of all lanes, in a fixed order.
    unsafe fn sum(v: Self::V) -> Self::Number;
    /// The sums of all lanes of each of N registers that lie side by side, in a fixed order.
    unsafe fn sums(from: *const Self::Number) -> Self::V;
    /// Asks for the cache line of `address`, which may be any address, into the second-level cache: whatever is fetched ahead of
    /// time is more than the first one holds.
    unsafe fn prefetch<T>(address: *const T);
}

/// A kernel waiting to be compiled for a level, with arithmetic on numbers of type `A`.
pub trait Kernel<A: Stored> {
    /// What it computes.
    type Output;

    /// Runs it.
    ///
    /// # Safety
    ///
    /// The processor must have the instructions of `L`, and the caller be inlined into [`Lanes::enter`].
    unsafe fn run<L: Lanes<Number = A>>(self) -> Self::Output;
}

/// Numbers that kernels compute with.
pub(crate) trait Arithmetic: Stored {
    /// Rows whose sum is gathered in this arithmetic before it is added up in f64.
    const ROWS_IN_SUM: usize;

    /// Runs `kernel` with the instructions of `level`.
    fn run<K: Kernel<Self>>(level: Level, kernel: K) -> K::Output;
}

/// Runs the kernel with the lanes of the level.
macro_rules! run_at {
    ($level:ident, $kernel:ident, $baseline:ident, $wide:ident, $avx2:ident, $avx512:ident) => {{
        assert!($level.is_available(), "this processor has no {:?}", $level);
        match $level {
            // SAFETY: the assertion; every processor has the baseline.
            Level::Baseline => unsafe { $baseline::enter($kernel) },
            #[cfg(test)]
            // SAFETY: the same.
            Level::Wide => unsafe { $wide::enter($kernel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the assertion.
            Level::Avx2 => unsafe { super::x86::$avx2::enter($kernel) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the assertion.
            Level::Avx512 => unsafe { super::x86::$avx512::enter($kernel) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!("only the baseline is available here"),
        }
    }};
}

impl Arithmetic for f64 {
    const ROWS_IN_SUM: usize = super::ROWS_IN_SUM;

    fn run<K: Kernel<Self>>(level: Level, kernel: K) -> K::Output {
        run_at!(level, kernel, Baseline, Wide, Avx2, Avx512)
    }
}

impl Arithmetic for f32 {
    const ROWS_IN_SUM: usize = super::ROWS_IN_SINGLE_SUM;

    fn run<K: Kernel<Self>>(level: Level, kernel: K) -> K::Output {
        run_at!(level, kernel, BaselineSingle, WideSingle, Avx2Single, Avx512Single)
    }
}

/// A stored number that can be loaded into lanes. Only `f32` and `f64` are.
pub(crate) trait Stored: Real {
    /// N values as numbers of the lanes.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`].
    unsafe fn load<L: Lanes>(from: *const Self) -> L::V;

    /// The values under the mask as numbers of the lanes, zeros elsewhere.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`].
    unsafe fn load_masked<L: Lanes>(from: *const Self, mask: L::Mask) -> L::V;
}

impl Stored for f32 {
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const Self) -> L::V {
        // SAFETY: the caller's promise.
        unsafe { L::load_f32(from) }
    }
    #[inline(always)]
    unsafe fn load_masked<L: Lanes>(from: *const Self, mask: L::Mask) -> L::V {
        // SAFETY: the caller's promise.
        unsafe { L::load_f32_masked(from, mask) }
    }
}

impl Stored for f64 {
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const Self) -> L::V {
        // SAFETY: the caller's promise.
        unsafe { L::load_f64(from) }
    }
    #[inline(always)]
    unsafe fn load_masked<L: Lanes>(from: *const Self, mask: L::Mask) -> L::V {
        // SAFETY: the caller's promise.
        unsafe { L::load_f64_masked(from, mask) }
    }
}

/// Four lanes of f64 in a plain array; the compiler makes of it what the target has.
#[derive(Clone, Copy)]
pub(crate) struct Baseline;

/// Eight lanes of f32 in a plain array.
#[derive(Clone, Copy)]
pub(crate) struct BaselineSingle;

/// Eight lanes of f64 and 32 registers, as AVX-512 has them.
#[cfg(test)]
#[derive(Clone, Copy)]
pub(crate) struct Wide;

/// Sixteen lanes of f32.
#[cfg(test)]
#[derive(Clone, Copy)]
pub(crate) struct WideSingle;

/// Applies an expression lane by lane.
macro_rules! lanewise {
    ($lanes:literal, $i:ident => $lane:expr) => {{
        let mut out = [0.0; $lanes];
        let mut $i = 0;
        while $i < $lanes {
            out[$i] = $lane;
            $i += 1;
        }
        out
    }};
}

/// Lanes in plain arrays.
macro_rules! baseline {
    ($($name:ident: $number:ident $lanes:literal of $registers:literal),*) => {
        $(
        impl Lanes for $name {
            type Number = $number;
                    type V = [$number; $lanes];
            type Mask = usize;
            const N: usize = $lanes;
            const REGISTERS: usize = $registers;
            const IS_PLAIN: bool = true;

            #[inline(never)]
            unsafe fn enter<K: Kernel<$number>>(kernel: K) -> K::Output {
                // SAFETY: the caller's promise.
                unsafe { kernel.run::<Self>() }
            }
            #[inline(always)]
            unsafe fn splat(x: $number) -> Self::V {
                [x; $lanes]
            }
            #[inline(always)]
            unsafe fn load(from: *const $number) -> Self::V {
                // SAFETY: readable for all lanes by the caller's promise.
                lanewise!($lanes, i => unsafe { from.add(i).read() })
            }
            #[inline(always)]
            unsafe fn load_f32(from: *const f32) -> Self::V {
                // SAFETY: readable for all lanes by the caller's promise.
                lanewise!($lanes, i => <$number>::from_f64(unsafe { from.add(i).read() }.to_f64()))
            }
            #[inline(always)]
            unsafe fn load_f64(from: *const f64) -> Self::V {
                // SAFETY: readable for all lanes by the caller's promise.
                lanewise!($lanes, i => <$number>::from_f64(unsafe { from.add(i).read() }.to_f64()))
            }
            #[inline(always)]
            unsafe fn mask(n: usize) -> Self::Mask {
                n
            }
            #[inline(always)]
            unsafe fn load_masked(from: *const $number, mask: Self::Mask) -> Self::V {
                // SAFETY: readable under the mask by the caller's promise.
                lanewise!($lanes, i => if i < mask { unsafe { from.add(i).read() } } else { 0.0 })
            }
            #[inline(always)]
            unsafe fn load_f32_masked(from: *const f32, mask: Self::Mask) -> Self::V {
                // SAFETY: readable under the mask by the caller's promise.
                lanewise!($lanes, i => if i < mask { <$number>::from_f64(unsafe { from.add(i).read() }.to_f64()) } else { 0.0 })
            }
            #[inline(always)]
            unsafe fn load_f64_masked(from: *const f64, mask: Self::Mask) -> Self::V {
                // SAFETY: readable under the mask by the caller's promise.
                lanewise!($lanes, i => if i < mask { <$number>::from_f64(unsafe { from.add(i).read() }.to_f64()) } else { 0.0 })
            }
            #[inline(always)]
            unsafe fn store(to: *mut $number, v: Self::V) {
                for i in 0..$lanes {
                    // SAFETY: writable for all lanes by the caller's promise.
                    unsafe { to.add(i).write(v[i]) };
                }
            }
            #[inline(always)]
            unsafe fn add_to_f64(to: *mut f64, v: Self::V) {
                for i in 0..$lanes {
                    // SAFETY: writable for all lanes by the caller's promise.
                    unsafe { to.add(i).write(to.add(i).read() + v[i].to_f64()) };
                }
            }
            #[inline(always)]
            unsafe fn store_masked(to: *mut $number, v: Self::V, mask: Self::Mask) {
                for i in 0..mask {
                    // SAFETY: writable under the mask by the caller's promise.
                    unsafe { to.add(i).write(v[i]) };
                }
            }
            #[inline(always)]
            unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
                lanewise!($lanes, i => a[i] + b[i])
            }
            #[inline(always)]
            unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
                lanewise!($lanes, i => a[i] - b[i])
            }
            #[inline(always)]
            unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
                // f64::mul_add would call a library function without FMA.
                lanewise!($lanes, i => a[i] * b[i] + c[i])
            }
            #[inline(always)]
            unsafe fn fma_one(a: $number, b: $number, c: $number) -> $number {
                a * b + c
            }
            #[inline(always)]
            unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
                lanewise!($lanes, i => if a[i] < b[i] { a[i] } else { b[i] })
            }
            #[inline(always)]
            unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
                lanewise!($lanes, i => if a[i] > b[i] { a[i] } else { b[i] })
            }
            #[inline(always)]
            unsafe fn nonzero(v: Self::V) -> u32 {
                let mut bits = 0;
                for i in 0..$lanes {
                    bits |= u32::from(v[i] != 0.0) << i;
                }
                bits
            }
            #[inline(always)]
            unsafe fn sum(v: Self::V) -> $number {
                // Halves onto each other, as the wide registers do.
                let mut v = v;
                let mut half = $lanes / 2;
                while half > 0 {
                    for i in 0..half {
                        v[i] += v[i + half];
                    }
                    half /= 2;
                }
                v[0]
            }
            #[inline(always)]
            unsafe fn sums(from: *const $number) -> Self::V {
                // SAFETY: readable for N registers by the caller's promise.
                lanewise!($lanes, i => unsafe { Self::sum(Self::load(from.add(i * $lanes))) })
            }
            #[inline(always)]
            unsafe fn prefetch<T>(_address: *const T) {}
        }
        )*
    };
}

baseline!(Baseline: f64 4 of 16, BaselineSingle: f32 8 of 16);
#[cfg(test)]
baseline!(Wide: f64 8 of 32, WideSingle: f32 16 of 32);
