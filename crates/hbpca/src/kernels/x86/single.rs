//! Lanes of f32: AVX2 with FMA, and AVX-512.

use std::arch::asm;
use std::arch::x86_64::{
    __m256, __m256i, __m512, __m512d, __mmask16, _CMP_NEQ_UQ, _MM_HINT_T1, _mm_add_ps, _mm_add_ss,
    _mm_castps_pd, _mm_cvtss_f32, _mm_movehl_ps, _mm_prefetch, _mm_shuffle_ps, _mm_store_sd, _mm_store_ss,
    _mm_storeu_ps, _mm256_add_pd, _mm256_add_ps, _mm256_castpd_ps, _mm256_castps_pd, _mm256_castps256_ps128,
    _mm256_castsi256_ps, _mm256_castsi256_si128, _mm256_cmp_ps, _mm256_cvtepi32_epi64, _mm256_cvtpd_ps,
    _mm256_cvtps_pd, _mm256_extractf128_ps, _mm256_extracti128_si256, _mm256_fmadd_ps, _mm256_hadd_ps,
    _mm256_loadu_pd, _mm256_loadu_ps, _mm256_maskload_pd, _mm256_maskload_ps, _mm256_max_ps, _mm256_min_ps,
    _mm256_movemask_ps, _mm256_permute2f128_ps, _mm256_set_m128, _mm256_set1_ps, _mm256_setr_epi32,
    _mm256_storeu_pd, _mm256_storeu_ps, _mm256_sub_ps, _mm512_add_pd, _mm512_add_ps, _mm512_castpd_ps,
    _mm512_castps_pd, _mm512_castps256_ps512, _mm512_castps512_ps256, _mm512_cmp_ps_mask, _mm512_cvtpd_ps,
    _mm512_cvtps_pd, _mm512_extractf64x4_pd, _mm512_fmadd_ps, _mm512_insertf64x4, _mm512_loadu_pd,
    _mm512_loadu_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_pd, _mm512_maskz_loadu_ps, _mm512_max_ps,
    _mm512_min_ps, _mm512_reduce_add_ps, _mm512_set1_ps, _mm512_storeu_pd, _mm512_storeu_ps, _mm512_sub_ps,
};

use super::super::lanes::{Kernel, Lanes};

/// Eight lanes with FMA.
#[derive(Clone, Copy)]
pub(crate) struct Avx2Single;

// SAFETY of every block below: the processor has the instructions and the pointers are good by the promise the
// caller of a method of `Lanes` makes.
impl Lanes for Avx2Single {
    type Number = f32;
    type V = __m256;
    type Mask = __m256i;
    const N: usize = 8;
    const REGISTERS: usize = 16;

    #[inline(always)]
    unsafe fn enter<K: Kernel<f32>>(kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma")]
        #[inline(never)]
        unsafe fn compiled<K: Kernel<f32>>(kernel: K) -> K::Output {
            // SAFETY: see above.
            unsafe { kernel.run::<Avx2Single>() }
        }
        // SAFETY: see above.
        unsafe { compiled(kernel) }
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn in_turn(v: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { in_turn(v) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn load_f32(from: *const f32) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn load_f64(from: *const f64) -> Self::V {
        // SAFETY: see above.
        unsafe {
            _mm256_set_m128(
                _mm256_cvtpd_ps(_mm256_loadu_pd(from.add(4))),
                _mm256_cvtpd_ps(_mm256_loadu_pd(from)),
            )
        }
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> Self::Mask {
        let lane = |i: usize| if i < n { -1 } else { 0 };
        let (low, high) = ([0, 1, 2, 3].map(lane), [4, 5, 6, 7].map(lane));
        // SAFETY: see above.
        unsafe { _mm256_setr_epi32(low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]) }
    }
    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: Self::Mask) -> Self::V {
        // SAFETY: see above; a masked load does not touch memory outside its mask.
        unsafe { _mm256_maskload_ps(from, mask) }
    }
    #[inline(always)]
    unsafe fn load_f32_masked(from: *const f32, mask: Self::Mask) -> Self::V {
        // SAFETY: see above; a masked load does not touch memory outside its mask.
        unsafe { _mm256_maskload_ps(from, mask) }
    }
    #[inline(always)]
    unsafe fn load_f64_masked(from: *const f64, mask: Self::Mask) -> Self::V {
        // SAFETY: see above; a masked load does not touch memory outside its mask.
        unsafe {
            let low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(mask));
            let high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256::<1>(mask));
            _mm256_set_m128(
                _mm256_cvtpd_ps(_mm256_maskload_pd(from.wrapping_add(4), high)),
                _mm256_cvtpd_ps(_mm256_maskload_pd(from, low)),
            )
        }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: Self::V) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_ps(to, v) }
    }
    #[inline(always)]
    unsafe fn add_to_f64(to: *mut f64, v: Self::V) {
        // SAFETY: see above.
        unsafe {
            let (low, high) = (_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), _mm256_cvtps_pd(low)));
            let to = to.add(4);
            _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), _mm256_cvtps_pd(high)));
        }
    }
    #[inline(always)]
    unsafe fn store_masked(to: *mut f32, v: Self::V, mask: Self::Mask) {
        // SAFETY: see above.
        unsafe { store_first(to, v, _mm256_movemask_ps(_mm256_castsi256_ps(mask))) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_sub_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_min_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm256_max_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn nonzero(v: Self::V) -> u32 {
        // SAFETY: see above.
        unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NEQ_UQ>(v, _mm256_set1_ps(0.0))).cast_unsigned() }
    }
    #[inline(always)]
    unsafe fn sum(v: Self::V) -> f32 {
        // SAFETY: see above.
        unsafe {
            let halves = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let pairs = _mm_add_ps(halves, _mm_movehl_ps(halves, halves));
            _mm_cvtss_f32(_mm_add_ss(pairs, _mm_shuffle_ps::<1>(pairs, pairs)))
        }
    }
    #[inline(always)]
    unsafe fn sums(from: *const f32) -> Self::V {
        // SAFETY: see above.
        unsafe { sums_of_eight(from) }
    }
    #[inline(always)]
    unsafe fn prefetch<T>(address: *const T) {
        // SAFETY: a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }
    #[inline(always)]
    unsafe fn fma_one(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

/// Stores the lanes of `v` that have a bit, the first ones, by halves, quarters and eighths: a store under a mask takes some processors
/// a dozen of these.
///
/// # Safety
///
/// As for [`Lanes`]; only lanes with a bit are written.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_first(to: *mut f32, v: __m256, bits: i32) {
    let (mut to, mut left) = (to, bits.count_ones());
    // SAFETY: the caller's promise.
    unsafe {
        if left >= 8 {
            return _mm256_storeu_ps(to, v);
        }
        let mut low = _mm256_castps256_ps128(v);
        if left >= 4 {
            _mm_storeu_ps(to, low);
            low = _mm256_extractf128_ps::<1>(v);
            (to, left) = (to.add(4), left - 4);
        }
        if left >= 2 {
            _mm_store_sd(to.cast(), _mm_castps_pd(low));
            low = _mm_movehl_ps(low, low);
            (to, left) = (to.add(2), left - 2);
        }
        if left >= 1 {
            _mm_store_ss(to, low);
        }
    }
}

/// No instruction, but, not being `pure`, none that changes places with another of its kind.
#[inline]
#[target_feature(enable = "avx2")]
fn in_turn(mut v: __m256) -> __m256 {
    // SAFETY: nothing happens.
    unsafe { asm!("/* {} */", inout(ymm_reg) v, options(nomem, nostack, preserves_flags)) };
    v
}

/// Neighbours, then pairs of them, then halves onto each other, of eight registers at once.
///
/// # Safety
///
/// As for [`Lanes`].
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn sums_of_eight(from: *const f32) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe {
        let pairs = |i: usize| {
            _mm256_hadd_ps(_mm256_loadu_ps(from.add(16 * i)), _mm256_loadu_ps(from.add(16 * i + 8)))
        };
        let (low, high) = (_mm256_hadd_ps(pairs(0), pairs(1)), _mm256_hadd_ps(pairs(2), pairs(3)));
        _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high))
    }
}

/// Sixteen lanes with FMA and masks.
#[derive(Clone, Copy)]
pub(crate) struct Avx512Single;

// SAFETY of every block below: the processor has the instructions and the pointers are good by the promise the
// caller of a method of `Lanes` makes.
impl Lanes for Avx512Single {
    type Number = f32;
    type V = __m512;
    type Mask = __mmask16;
    const N: usize = 16;
    const REGISTERS: usize = 32;

    #[inline(always)]
    unsafe fn enter<K: Kernel<f32>>(kernel: K) -> K::Output {
        #[target_feature(enable = "avx512f,avx2,fma")]
        #[inline(never)]
        unsafe fn compiled<K: Kernel<f32>>(kernel: K) -> K::Output {
            // SAFETY: see above.
            unsafe { kernel.run::<Avx512Single>() }
        }
        // SAFETY: see above.
        unsafe { compiled(kernel) }
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn load_f32(from: *const f32) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn load_f64(from: *const f64) -> Self::V {
        // SAFETY: see above.
        unsafe { joined(_mm512_loadu_pd(from), _mm512_loadu_pd(from.add(8))) }
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> Self::Mask {
        (1 << n) - 1
    }
    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: Self::Mask) -> Self::V {
        // SAFETY: see above; a masked load does not touch memory outside its mask.
        unsafe { _mm512_maskz_loadu_ps(mask, from) }
    }
    #[inline(always)]
    unsafe fn load_f32_masked(from: *const f32, mask: Self::Mask) -> Self::V {
        // SAFETY: see above; a masked load does not touch memory outside its mask.
        unsafe { _mm512_maskz_loadu_ps(mask, from) }
    }
    #[inline(always)]
    unsafe fn load_f64_masked(from: *const f64, mask: Self::Mask) -> Self::V {
        // SAFETY: see above; a masked load does not touch memory outside its mask.
        unsafe {
            let (low, high) = ((mask & 0xff) as u8, (mask >> 8) as u8);
            joined(_mm512_maskz_loadu_pd(low, from), _mm512_maskz_loadu_pd(high, from.wrapping_add(8)))
        }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: Self::V) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(to, v) }
    }
    #[inline(always)]
    unsafe fn add_to_f64(to: *mut f64, v: Self::V) {
        // SAFETY: see above.
        unsafe {
            let low = _mm512_castps512_ps256(v);
            let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(v)));
            _mm512_storeu_pd(to, _mm512_add_pd(_mm512_loadu_pd(to), _mm512_cvtps_pd(low)));
            let to = to.add(8);
            _mm512_storeu_pd(to, _mm512_add_pd(_mm512_loadu_pd(to), _mm512_cvtps_pd(high)));
        }
    }
    #[inline(always)]
    unsafe fn store_masked(to: *mut f32, v: Self::V, mask: Self::Mask) {
        // SAFETY: see above.
        unsafe { _mm512_mask_storeu_ps(to, mask, v) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_min_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn max(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { _mm512_max_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn nonzero(v: Self::V) -> u32 {
        // SAFETY: see above.
        unsafe { u32::from(_mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(v, _mm512_set1_ps(0.0))) }
    }
    #[inline(always)]
    unsafe fn sum(v: Self::V) -> f32 {
        // SAFETY: see above.
        unsafe { _mm512_reduce_add_ps(v) }
    }
    #[inline(always)]
    unsafe fn sums(from: *const f32) -> Self::V {
        let mut sums = [0.0; 16];
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: see above.
            *sum = unsafe { Self::sum(Self::load(from.add(i * 16))) };
        }
        // SAFETY: see above.
        unsafe { Self::load(sums.as_ptr()) }
    }
    #[inline(always)]
    unsafe fn prefetch<T>(address: *const T) {
        // SAFETY: a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast()) }
    }
    #[inline(always)]
    unsafe fn fma_one(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

/// Sixteen f32 from sixteen f64.
#[target_feature(enable = "avx512f")]
#[inline]
fn joined(low: __m512d, high: __m512d) -> __m512 {
    let (low, high) = (_mm512_cvtpd_ps(low), _mm512_cvtpd_ps(high));
    let low = _mm512_castps_pd(_mm512_castps256_ps512(low));
    _mm512_castpd_ps(_mm512_insertf64x4::<1>(low, _mm256_castps_pd(high)))
}
