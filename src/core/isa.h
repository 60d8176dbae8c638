#ifndef KM_ISA_H
#define KM_ISA_H

/* Instruction sets: which there are, which is in use, and loops compiled for each of them. */

/* Missing values are NaN, which must be seen, and sums are made in the order they stand in. */
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "compile kernmean without -ffast-math, -Ofast and their parts (CFLAGS in ~/.R/Makevars)"
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif
#define PRAGMA(text) _Pragma(#text)

/* Before a loop of at most 8 steps whose arrays are to be registers. */
#if defined(__clang__)
#define UNROLL PRAGMA(clang loop unroll(full))
#elif defined(__GNUC__)
#define UNROLL PRAGMA(GCC unroll 8)
#else
#define UNROLL
#endif

/* Before a loop whose steps may go side by side; before one that adds up the variables named, in
   any order. clang needs to be told of the second alone. */
#if defined(_OPENMP)
#define SIMD PRAGMA(omp simd)
#define SIMD_SUMS(...) PRAGMA(omp simd reduction(+ : __VA_ARGS__))
#elif defined(__clang__)
#define SIMD
#define SIMD_SUMS(...) PRAGMA(clang loop vectorize(enable))
#else
#define SIMD
#define SIMD_SUMS(...)
#endif

typedef enum { KM_BASELINE, KM_AVX2, KM_AVX512 } km_isa;

/*
 * gcc on 64-bit Windows may move vectors to a stack that is not aligned for it (its bug 54412).
 * Makevars.win says ANY_ALIGNMENT where the assembler makes unaligned moves of them.
 */
#if defined(__x86_64__) && defined(__GNUC__) && \
    (!defined(_WIN32) || defined(__clang__) || defined(ANY_ALIGNMENT))
#define X86
#define AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,fma")))
#define AVX2 __attribute__((target("avx2,fma")))
#endif

/* Every processor of this kind has vectors of two and multiply-adds: the baseline there. */
#if defined(__aarch64__) && defined(__GNUC__)
#define NEON
#endif

/*
 * VERSIONS(name, parameters, avx512, avx2, baseline) makes of an INLINE function name_body one
 * function for each set, which passes it the arguments that stand in parentheses, and
 * name_version(), which returns the one in use.
 */
#ifdef X86
#define VERSIONS(name, parameters, avx512, avx2, baseline)                               \
  typedef void name##_loop parameters;                                                   \
  AVX512 static void name##_avx512 parameters { name##_body avx512; }                    \
  AVX2 static void name##_avx2 parameters { name##_body avx2; }                          \
  static void name##_baseline parameters { name##_body baseline; }                       \
  static name##_loop *name##_version(void) {                                             \
    switch (km_isa_level()) {                                                            \
    case KM_AVX512: return name##_avx512;                                                \
    case KM_AVX2: return name##_avx2;                                                    \
    case KM_BASELINE: break;                                                             \
    }                                                                                    \
    return name##_baseline;                                                              \
  }
#else
#define VERSIONS(name, parameters, avx512, avx2, baseline)         \
  typedef void name##_loop parameters;                             \
  static void name##_baseline parameters { name##_body baseline; } \
  static name##_loop *name##_version(void) { return name##_baseline; }
#endif

/* The set in use, and a setter that goes no higher than what the processor has. */
km_isa km_isa_level(void);
void km_set_isa(km_isa highest);

#endif
