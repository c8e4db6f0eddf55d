//! What a kernel may do with a register of f64 lanes, so that each kernel is written once.

use super::Level;

/// A register of `N` lanes of f64 and the operations the kernels need.
///
/// # Safety
///
/// Every method may only be called on a processor that has the level's instructions, which [`run`] makes sure of,
/// and inside [`Lanes::enter`], so that the code is compiled for them. Pointers must be readable (writable) for the
/// lanes that the method touches; no alignment is asked for.
pub trait Lanes: Copy {
    /// The register.
    type V: Copy;
    /// Which lanes a masked load touches.
    type Mask: Copy;
    /// Lanes of a register.
    const N: usize;
    /// Registers of the processor: decides how much a kernel keeps in them.
    const REGISTERS: usize;

    /// Runs `kernel`, compiled for this level.
    unsafe fn enter<K: Kernel>(kernel: K) -> K::Output;

    /// All lanes `x`.
    unsafe fn splat(x: f64) -> Self::V;
    /// N values.
    unsafe fn load(from: *const f64) -> Self::V;
    /// N values, widened.
    unsafe fn load_f32(from: *const f32) -> Self::V;
    /// The mask of the first `n` < N lanes.
    unsafe fn mask(n: usize) -> Self::Mask;
    /// The values under the mask, zeros elsewhere; memory outside the mask is not touched.
    unsafe fn load_masked(from: *const f64, mask: Self::Mask) -> Self::V;
    /// The values under the mask, widened, zeros elsewhere; memory outside the mask is not touched.
    unsafe fn load_f32_masked(from: *const f32, mask: Self::Mask) -> Self::V;
    /// Writes N values.
    unsafe fn store(to: *mut f64, v: Self::V);
    /// Writes the values under the mask; memory outside the mask is not touched.
    unsafe fn store_masked(to: *mut f64, v: Self::V, mask: Self::Mask);
    /// a + b.
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    /// a − b.
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    /// a·b + c, rounded once where the level has FMA.
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The same for one number.
    unsafe fn fma_one(a: f64, b: f64, c: f64) -> f64;
    /// `a` where a < b, else `b`: a NaN in `a` is passed over.
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V;
    /// `a` where a > b, else `b`: a NaN in `a` is passed over.
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V;
    /// The sum of all lanes, in a fixed order.
    unsafe fn sum(v: Self::V) -> f64;
    /// Asks for the cache line of `address`, which may be any address.
    unsafe fn prefetch<T>(address: *const T);
}

/// A kernel waiting to be compiled for a level.
pub trait Kernel {
    /// What it computes.
    type Output;

    /// Runs it.
    ///
    /// # Safety
    ///
    /// The processor must have the instructions of `L`, and the caller be inlined into [`Lanes::enter`].
    unsafe fn run<L: Lanes>(self) -> Self::Output;
}

/// Runs `kernel` with the instructions of `level`.
pub(crate) fn run<K: Kernel>(level: Level, kernel: K) -> K::Output {
    assert!(level.is_available(), "this processor has no {level:?}");
    match level {
        // SAFETY: the assertion; every processor has the baseline.
        Level::Baseline => unsafe { Baseline::enter(kernel) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the assertion.
        Level::Avx2 => unsafe { super::x86::Avx2::enter(kernel) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the assertion.
        Level::Avx512 => unsafe { super::x86::Avx512::enter(kernel) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => unreachable!("only the baseline is available here"),
    }
}

/// A stored number that can be loaded into lanes. Only `f32` and `f64` are; this is what seals [`crate::Real`].
pub trait Stored: Copy {
    /// N values as f64.
    ///
    /// # Safety
    ///
    /// As for [`Lanes`].
    unsafe fn load<L: Lanes>(from: *const Self) -> L::V;

    /// The values under the mask as f64, zeros elsewhere.
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
        unsafe { L::load(from) }
    }
    #[inline(always)]
    unsafe fn load_masked<L: Lanes>(from: *const Self, mask: L::Mask) -> L::V {
        // SAFETY: the caller's promise.
        unsafe { L::load_masked(from, mask) }
    }
}

/// Four lanes in a plain array; the compiler makes of it what the target has.
#[derive(Clone, Copy)]
pub(crate) struct Baseline;

/// Applies an expression lane by lane.
macro_rules! lanewise {
    ($i:ident => $lane:expr) => {{
        let mut out = [0.0; 4];
        let mut $i = 0;
        while $i < 4 {
            out[$i] = $lane;
            $i += 1;
        }
        out
    }};
}

impl Lanes for Baseline {
    type V = [f64; 4];
    type Mask = usize;
    const N: usize = 4;
    const REGISTERS: usize = 16;

    #[inline(never)]
    unsafe fn enter<K: Kernel>(kernel: K) -> K::Output {
        // SAFETY: the caller's promise.
        unsafe { kernel.run::<Self>() }
    }
    #[inline(always)]
    unsafe fn splat(x: f64) -> Self::V {
        [x; 4]
    }
    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self::V {
        // SAFETY: readable for four lanes by the caller's promise.
        lanewise!(i => unsafe { from.add(i).read() })
    }
    #[inline(always)]
    unsafe fn load_f32(from: *const f32) -> Self::V {
        // SAFETY: readable for four lanes by the caller's promise.
        lanewise!(i => f64::from(unsafe { from.add(i).read() }))
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> Self::Mask {
        n
    }
    #[inline(always)]
    unsafe fn load_masked(from: *const f64, mask: Self::Mask) -> Self::V {
        // SAFETY: readable under the mask by the caller's promise.
        lanewise!(i => if i < mask { unsafe { from.add(i).read() } } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn load_f32_masked(from: *const f32, mask: Self::Mask) -> Self::V {
        // SAFETY: readable under the mask by the caller's promise.
        lanewise!(i => if i < mask { f64::from(unsafe { from.add(i).read() }) } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn store(to: *mut f64, v: Self::V) {
        for i in 0..4 {
            // SAFETY: writable for four lanes by the caller's promise.
            unsafe { to.add(i).write(v[i]) };
        }
    }
    #[inline(always)]
    unsafe fn store_masked(to: *mut f64, v: Self::V, mask: Self::Mask) {
        for i in 0..mask {
            // SAFETY: writable under the mask by the caller's promise.
            unsafe { to.add(i).write(v[i]) };
        }
    }
    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        lanewise!(i => a[i] + b[i])
    }
    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        lanewise!(i => a[i] - b[i])
    }
    #[inline(always)]
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // f64::mul_add would call a library function without FMA.
        lanewise!(i => a[i] * b[i] + c[i])
    }
    #[inline(always)]
    unsafe fn fma_one(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
    #[inline(always)]
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
        lanewise!(i => if a[i] < b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
        lanewise!(i => if a[i] > b[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    unsafe fn sum(v: Self::V) -> f64 {
        (v[0] + v[2]) + (v[1] + v[3])
    }
    #[inline(always)]
    unsafe fn prefetch<T>(_address: *const T) {}
}
