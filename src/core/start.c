#include "core/isa.h"
#include "core/public.h"
#include "core/threads.h"

int km_abi(void) { return KERNMEAN_ABI; }

void km_start(void) {
  km_threads_init();
  km_set_isa(KM_AVX512);
}
