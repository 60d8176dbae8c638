#ifndef KM_SIMD_H
#define KM_SIMD_H

/*
 * Loops compiled for several instruction sets: an INLINE body, called from one function a target
 * (AVX512, AVX2, none) and chosen by km_isa_level(). Without X86 there is the plain version alone.
 */

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")
#else
#define INLINE static inline
#define UNROLL
#endif
#ifdef _OPENMP
#define SIMD _Pragma("omp simd")
#else
#define SIMD
#endif
#if defined(__x86_64__) && defined(__GNUC__)
#define X86
#define AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,fma")))
#define AVX2 __attribute__((target("avx2,fma")))
#endif

#endif
