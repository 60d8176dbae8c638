#include "core/arithmetic.h"
#include "core/isa.h"
#include "core/parts.h"

#include <float.h>
#include <string.h>

#ifdef X86
#include <immintrin.h>
#endif
#ifdef NEON
#include <arm_neon.h>
#endif

enum {
  PACK = KM_PACK,
  ROWS = 4,        /* rows of a patch */
  STRIP = 8,       /* vectors of column sums held in registers */
  FEATURE_CHUNK = 64 /* features of one pass over a tile */
};

/* Bits as masks of four lanes. */
#define M UINT64_MAX
static const uint64_t masks[16][4] = {{0, 0, 0, 0}, {M, 0, 0, 0}, {0, M, 0, 0}, {M, M, 0, 0},
                                      {0, 0, M, 0}, {M, 0, M, 0}, {0, M, M, 0}, {M, M, M, 0},
                                      {0, 0, 0, M}, {M, 0, 0, M}, {0, M, 0, M}, {M, M, 0, M},
                                      {0, 0, M, M}, {M, 0, M, M}, {0, M, M, M}, {M, M, M, M}};
#undef M

#define HELPER INLINE TARGET

#ifdef X86

typedef double vec8 __attribute__((vector_size(64)));
typedef uint64_t ints8 __attribute__((vector_size(64)));
#define TARGET AVX512
#define NAME(f) f##_avx512
#define VEC vec8
#define INTS ints8
#define LANES 8
#define VECTORS 4
#define SPREAD(a) _mm512_set1_pd(a)
#define MADD(a, b, c) _mm512_fmadd_pd(a, b, c)
#define LEAST(a, b) _mm512_min_pd(a, b)
#define TOTAL(a) _mm512_reduce_add_pd(a)
#define STREAM(to, a) _mm512_stream_pd(to, a)
#define SIGNS(a) ((unsigned) _mm512_movepi64_mask((__m512i) (a)))
#define ADD_WHERE(bits, sum, a) _mm512_mask_add_pd(sum, (__mmask8) (bits), sum, a)
#define SUBSET 4
#define DOWN 8
#define ROOTS(a) \
  _mm512_permutex2var_pd(_mm512_loadu_pd(roots), (__m512i) (a), _mm512_loadu_pd(roots + 8))
static const uint64_t roots[16] = {
    0x3ff0000000000000, 0x3fefb5586cf9890f, 0x3fef72b83c7d517b, 0x3fef387a6e756238,
    0x3fef06fe0a31b715, 0x3feedea64c123422, 0x3feebfdad5362a27, 0x3feeab07dd485429,
    0x3feea09e667f3bcd, 0x3feea11473eb0187, 0x3feeace5422aa0db, 0x3feec49182a3f090,
    0x3feee89f995ad3ad, 0x3fef199bdd85529c, 0x3fef5818dcfba487, 0x3fefa4afa2a490da};
#include "core/lanes.h"

typedef double vec4 __attribute__((vector_size(32)));
typedef uint64_t ints4 __attribute__((vector_size(32)));
#define TARGET AVX2
#define NAME(f) f##_avx2
#define VEC vec4
#define INTS ints4
#define LANES 4
#define VECTORS 2
#define SPREAD(a) _mm256_set1_pd(a)
#define MADD(a, b, c) _mm256_fmadd_pd(a, b, c)
#define LEAST(a, b) _mm256_min_pd(a, b)
#define TOTAL(a) (((a)[0] + (a)[2]) + ((a)[1] + (a)[3]))
#define STREAM(to, a) _mm256_stream_pd(to, a)
#define SIGNS(a) ((unsigned) _mm256_movemask_pd(a))
#define SUBSET 8
#define DOWN 4
#include "core/lanes.h"

#endif

typedef double vec2 __attribute__((vector_size(16)));
typedef uint64_t ints2 __attribute__((vector_size(16)));
#define TARGET
#define NAME(f) f##_baseline
#define VEC vec2
#define INTS ints2
#define LANES 2
#ifdef NEON /* 32 registers, as AVX-512 */
#define VECTORS 4
#define DOWN 8
#else
#define VECTORS 2
#define DOWN 2
#endif
#define SPREAD(a) ((vec2){(a), (a)})
#define MADD(a, b, c) madd_baseline(a, b, c)
#define LEAST(a, b) least_baseline(a, b)
#define TOTAL(a) ((a)[0] + (a)[1])
#define STREAM(to, a) memcpy(to, &(a), sizeof(a))
#define SIGNS(a) ((unsigned) (((ints2) (a))[0] >> 63 | ((ints2) (a))[1] >> 63 << 1))
#define SUBSET 8

/*
 * ab + c, rounded once wherever the compiler has a multiply-add, as under -march=native. Left to
 * itself gcc takes one in `patch` and none in the chains of `half_norms` (for some processors), and
 * x'x - (h + h), and so k(x, x), would be off.
 */
INLINE vec2 madd_baseline(vec2 a, vec2 b, vec2 c) {
#if defined(X86) && defined(__FMA__)
  return _mm_fmadd_pd(a, b, c);
#elif defined(NEON)
  return (vec2) vfmaq_f64((float64x2_t) c, (float64x2_t) a, (float64x2_t) b);
#elif defined(__FP_FAST_FMA)
  return (vec2){__builtin_fma(a[0], b[0], c[0]), __builtin_fma(a[1], b[1], c[1])};
#else
  return a * b + c;
#endif
}

static inline vec2 least_baseline(vec2 a, vec2 b) {
  const ints2 less = (ints2) (a < b);
  return (vec2) ((less & (ints2) a) | (~less & (ints2) b));
}

#include "core/lanes.h"

const km_arithmetic *km_simd(void) {
#ifdef X86
  switch (km_isa_level()) {
  case KM_AVX512: return &arithmetic_avx512;
  case KM_AVX2: return &arithmetic_avx2;
  case KM_BASELINE: break;
  }
#endif
  return &arithmetic_baseline;
}
