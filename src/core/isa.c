#include "core/isa.h"

static km_isa level = KM_BASELINE;

static km_isa best(void) {
#ifdef X86
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return KM_AVX512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return KM_AVX2;
#endif
  return KM_BASELINE;
}

km_isa km_isa_level(void) { return level; }

void km_set_isa(km_isa highest) { level = highest < best() ? highest : best(); }
