//! Lanes of f64: AVX2 with FMA, and AVX-512.

use std::arch::asm;
use std::arch::x86_64::{
    __m128i, __m256d, __m512d, _CMP_NEQ_UQ, _MM_HINT_T1, _mm_add_pd, _mm_add_sd, _mm_castsi128_ps,
    _mm_cvtsd_f64, _mm_loadu_ps, _mm_maskload_ps, _mm_movemask_ps, _mm_prefetch, _mm_setr_epi32,
    _mm_store_sd, _mm_storeu_pd, _mm_unpackhi_pd, _mm256_add_pd, _mm256_castpd256_pd128, _mm256_cmp_pd,
    _mm256_cvtepi32_epi64, _mm256_cvtps_pd, _mm256_extractf128_pd, _mm256_fmadd_pd, _mm256_hadd_pd,
    _mm256_loadu_pd, _mm256_loadu_ps, _mm256_maskload_pd, _mm256_max_pd, _mm256_min_pd, _mm256_movemask_pd,
    _mm256_permute2f128_pd, _mm256_set1_pd, _mm256_storeu_pd, _mm256_sub_pd, _mm512_add_pd,
    _mm512_castps512_ps256, _mm512_cmp_pd_mask, _mm512_cvtps_pd, _mm512_fmadd_pd, _mm512_loadu_pd,
    _mm512_mask_storeu_pd, _mm512_maskz_loadu_pd, _mm512_maskz_loadu_ps, _mm512_max_pd, _mm512_min_pd,
    _mm512_reduce_add_pd, _mm512_set1_pd, _mm512_storeu_pd, _mm512_sub_pd,
};

use super::super::lanes::{Kernel, Lanes};

/// Four lanes with FMA.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

// SAFETY of every block below: the processor has the instructions and the pointers are good by the promise the
// caller of a method of `Lanes` makes.
impl Lanes for Avx2 {
    type Number = f64;
    type V = __m256d;
    type Mask = __m128i;
    const N: usize = 4;
    const REGISTERS: usize = 16;

    #[inline(always)]
    unsafe fn enter<K: Kernel<f64>>(kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma")]
        #[inline(never)]
        unsafe fn compiled<K: Kernel<f64>>(kernel: K) -> K::Output {
            // SAFETY: see above.
            unsafe { kernel.run::<Avx2>() }
        }
        // SAFETY: see above.
        unsafe { compiled(kernel) }
    }
    #[inline(always)]
    unsafe fn splat(x: f64) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_set1_pd(x) }
    }
    #[inline(always)]
    unsafe fn in_turn(v: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { in_turn(v) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_loadu_pd(from) }
    }
    #[inline(always)]
    unsafe fn load_f32(from: *const f32) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_cvtps_pd(_mm_loadu_ps(from)) }
    }
    #[inline(always)]
    unsafe fn load_f64(from: *const f64) -> Self::V {
        // SAFETY: see above.
        unsafe { Self::load(from) }
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> Self::Mask {
        let lane = |i: usize| if i < n { -1 } else { 0 };
        // SAFETY: see above.
        unsafe { _mm_setr_epi32(lane(0), lane(1), lane(2), lane(3)) }
    }
    #[inline(always)]
    unsafe fn load_masked(from: *const f64, mask: Self::Mask) -> Self::V {
        // SAFETY: see above; a masked load does not touch memory outside its mask.
        unsafe { _mm256_maskload_pd(from, _mm256_cvtepi32_epi64(mask)) }
    }
    #[inline(always)]
    unsafe fn load_f64_masked(from: *const f64, mask: Self::Mask) -> Self::V {
        // SAFETY: see above.
        unsafe { Self::load_masked(from, mask) }
    }
    #[inline(always)]
    unsafe fn load_f32_masked(from: *const f32, mask: Self::Mask) -> Self::V {
        // SAFETY: see above; a masked load does not touch memory outside its mask.
        unsafe { _mm256_cvtps_pd(_mm_maskload_ps(from, mask)) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f64, v: Self::V) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_pd(to, v) }
    }
    #[inline(always)]
    unsafe fn add_to_f64(to: *mut f64, v: Self::V) {
        // SAFETY: see above.
        unsafe { Self::store(to, Self::add(Self::load(to), v)) }
    }
    #[inline(always)]
    unsafe fn store_masked(to: *mut f64, v: Self::V, mask: Self::Mask) {
        // SAFETY: see above.
        unsafe { store_first(to, v, _mm_movemask_ps(_mm_castsi128_ps(mask))) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_add_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_sub_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_fmadd_pd(a, b, c) }
    }
    #[inline(always)]
    unsafe fn fma_one(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_min_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_max_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn nonzero(v: Self::V) -> u32 {
        // SAFETY: see above.
        unsafe { _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_NEQ_UQ>(v, _mm256_set1_pd(0.0))).cast_unsigned() }
    }
    #[inline(always)]
    unsafe fn sum(v: Self::V) -> f64 {
        // SAFETY: see above.
        unsafe {
            let halves = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd::<1>(v));
            _mm_cvtsd_f64(_mm_add_sd(halves, _mm_unpackhi_pd(halves, halves)))
        }
    }
    #[inline(always)]
    unsafe fn sums(from: *const f64) -> Self::V {
        // SAFETY: see above.
        unsafe {
            let low = _mm256_hadd_pd(_mm256_loadu_pd(from), _mm256_loadu_pd(from.add(4)));
            let high = _mm256_hadd_pd(_mm256_loadu_pd(from.add(8)), _mm256_loadu_pd(from.add(12)));
            _mm256_add_pd(
                _mm256_permute2f128_pd::<0x20>(low, high),
                _mm256_permute2f128_pd::<0x31>(low, high),
            )
        }
    }
    #[inline(always)]
    unsafe fn prefetch<T>(address: *const T) {
        // SAFETY: a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }
}

/// Stores the lanes of `v` that have a bit, the first ones, by halves and quarters: a store under a mask takes some processors a dozen
/// of these.
///
/// # Safety
///
/// As for [`Lanes`]; only lanes with a bit are written.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_first(to: *mut f64, v: __m256d, bits: i32) {
    let (mut to, mut low, mut left) = (to, _mm256_castpd256_pd128(v), bits.count_ones());
    // SAFETY: the caller's promise.
    unsafe {
        if left >= 4 {
            return _mm256_storeu_pd(to, v);
        }
        if left >= 2 {
            _mm_storeu_pd(to, low);
            low = _mm256_extractf128_pd::<1>(v);
            (to, left) = (to.add(2), left - 2);
        }
        if left >= 1 {
            _mm_store_sd(to, low);
        }
    }
}

/// No instruction, but, not being `pure`, none that changes places with another of its kind.
#[inline]
#[target_feature(enable = "avx2")]
fn in_turn(mut v: __m256d) -> __m256d {
    // SAFETY: nothing happens.
    unsafe { asm!("/* {} */", inout(ymm_reg) v, options(nomem, nostack, preserves_flags)) };
    v
}

/// Eight lanes with FMA and masks.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

// SAFETY of every block below: as above.
impl Lanes for Avx512 {
    type Number = f64;
    type V = __m512d;
    type Mask = u8;
    const N: usize = 8;
    const REGISTERS: usize = 32;

    #[inline(always)]
    unsafe fn enter<K: Kernel<f64>>(kernel: K) -> K::Output {
        #[target_feature(enable = "avx512f,avx2,fma")]
        #[inline(never)]
        unsafe fn compiled<K: Kernel<f64>>(kernel: K) -> K::Output {
            // SAFETY: see above.
            unsafe { kernel.run::<Avx512>() }
        }
        // SAFETY: see above.
        unsafe { compiled(kernel) }
    }
    #[inline(always)]
    unsafe fn splat(x: f64) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_set1_pd(x) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_loadu_pd(from) }
    }
    #[inline(always)]
    unsafe fn load_f32(from: *const f32) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_cvtps_pd(_mm256_loadu_ps(from)) }
    }
    #[inline(always)]
    unsafe fn load_f64(from: *const f64) -> Self::V {
        // SAFETY: see above.
        unsafe { Self::load(from) }
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> Self::Mask {
        (1 << n) - 1
    }
    #[inline(always)]
    unsafe fn load_masked(from: *const f64, mask: Self::Mask) -> Self::V {
        // SAFETY: see above; a masked load does not touch memory outside its mask.
        unsafe { _mm512_maskz_loadu_pd(mask, from) }
    }
    #[inline(always)]
    unsafe fn load_f64_masked(from: *const f64, mask: Self::Mask) -> Self::V {
        // SAFETY: see above.
        unsafe { Self::load_masked(from, mask) }
    }
    #[inline(always)]
    unsafe fn load_f32_masked(from: *const f32, mask: Self::Mask) -> Self::V {
        // SAFETY: see above; the upper eight lanes are outside the mask and not touched either.
        unsafe { _mm512_cvtps_pd(_mm512_castps512_ps256(_mm512_maskz_loadu_ps(u16::from(mask), from))) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f64, v: Self::V) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_pd(to, v) }
    }
    #[inline(always)]
    unsafe fn add_to_f64(to: *mut f64, v: Self::V) {
        // SAFETY: see above.
        unsafe { Self::store(to, Self::add(Self::load(to), v)) }
    }
    #[inline(always)]
    unsafe fn store_masked(to: *mut f64, v: Self::V, mask: Self::Mask) {
        // SAFETY: see above; a masked store does not touch memory outside its mask.
        unsafe { _mm512_mask_storeu_pd(to, mask, v) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_add_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_sub_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_fmadd_pd(a, b, c) }
    }
    #[inline(always)]
    unsafe fn fma_one(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_min_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_max_pd(a, b) }
    }
    #[inline(always)]
    unsafe fn nonzero(v: Self::V) -> u32 {
        // SAFETY: see above.
        unsafe { u32::from(_mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(v, _mm512_set1_pd(0.0))) }
    }
    #[inline(always)]
    unsafe fn sum(v: Self::V) -> f64 {
        // SAFETY: see above.
        unsafe { _mm512_reduce_add_pd(v) }
    }
    #[inline(always)]
    unsafe fn sums(from: *const f64) -> Self::V {
        let mut sums = [0.0; 8];
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: see above.
            *sum = unsafe { Self::sum(Self::load(from.add(i * 8))) };
        }
        // SAFETY: see above.
        unsafe { Self::load(sums.as_ptr()) }
    }
    #[inline(always)]
    unsafe fn prefetch<T>(address: *const T) {
        // SAFETY: a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }
}
