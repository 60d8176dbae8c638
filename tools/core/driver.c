#include "driver.h"
#include "core/fold.h"
#include "core/isa.h"
#include "core/threads.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The numerical core without R: every public routine once, from fixed inputs. check.R makes the
 * same inputs and computes each number by plain formulas.
 *
 *   driver [LEVEL [THREADS]]
 *
 * LEVEL: 0 baseline (on ARM: NEON), 1 AVX2, 2 AVX-512; 3 is returned if the processor does not
 * have it. Results depend on the level by rounding alone, on the threads not at all.
 */

enum { MOST_BLOCKS = 1024, CANARY = 256, SONG = 0xa5 };

static unsigned char *blocks[MOST_BLOCKS];
static size_t ends[MOST_BLOCKS]; /* where a block's canary begins */
static size_t n_blocks = 0;
static long polls = 0;

void must(int holds, const char *what) {
  if (holds) return;
  fflush(stdout);
  fprintf(stderr, "driver: %s\n", what);
  exit(1);
}

void *block(size_t bytes) {
  must(n_blocks < MOST_BLOCKS, "more blocks than MOST_BLOCKS");
  unsigned char *memory = malloc(bytes + CANARY);
  must(memory != NULL, "no memory");
  memset(memory, 0xff, bytes); /* doubles: NaN; integers: -1 */
  memset(memory + bytes, SONG, CANARY);
  ends[n_blocks] = bytes;
  return blocks[n_blocks++] = memory;
}

static void release(void) {
  while (n_blocks-- > 0) {
    for (size_t i = 0; i < CANARY; i++)
      must(blocks[n_blocks][ends[n_blocks] + i] == SONG, "a routine wrote behind its room");
    free(blocks[n_blocks]);
  }
  n_blocks = 0;
}

double *room(size_t count) { return block(count * sizeof(double)); }

int *int_room(size_t count) { return block(count * sizeof(int)); }

/* Park and Miller's generator: every product is exact in a double, as R needs it. */
static double next(int64_t *state) {
  *state = *state * 16807 % 2147483647;
  return (double) *state / 2147483647.0;
}

static int64_t start(int seed) {
  int64_t state = seed;
  for (int i = 0; i < 10; i++) next(&state);
  return state;
}

double *inputs(int seed, size_t count) {
  int64_t state = start(seed);
  double *x = room(count);
  for (size_t i = 0; i < count; i++) x[i] = 2 * next(&state) - 1;
  return x;
}

static int64_t draws = 1;

void set_draws(int seed) { draws = start(seed); }

double uniform(void) { return next(&draws); }

size_t draw(size_t count) { return (size_t) (uniform() * (double) count); }

void poll(void) { polls++; }

/* As %a, which libraries of C write in different ways. */
static void put_line(const char *name, size_t index, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  const char *sign = bits >> 63 ? "-" : "";
  const int exponent = (int) (bits >> 52 & 2047);
  const uint64_t fraction = bits & 0xfffffffffffffu;
  printf("%s %lu ", name, (unsigned long) index + 1);
  if (exponent == 2047)
    printf("%s\n", fraction ? "NaN" : *sign ? "-Inf" : "Inf");
  else
    printf("%s0x%d.%05lx%08lxp%+d\n", sign, exponent > 0, (unsigned long) (fraction >> 32),
           (unsigned long) (fraction & 0xffffffffu),
           exponent > 0 ? exponent - 1023 : fraction ? -1022 : 0);
}

void put(const char *name, const double *values, size_t count) {
  for (size_t i = 0; i < count; i++) put_line(name, i, values[i]);
}

void put_number(const char *name, double value) { put(name, &value, 1); }

void put_ints(const char *name, const int *values, size_t count) {
  for (size_t i = 0; i < count; i++) put_line(name, i, values[i]);
}

/* 2 rbf l1 + poly, of 3 features, of the last two and of the first two. */
static const km_part parts[] = {
  {.kernel = {.family = KM_RBF}, .first = 0, .d = 3, .times = 2},
  {.kernel = {.family = KM_LAPLACE_L1}, .first = 1, .d = 2},
  {.kernel = {.family = KM_POLY, .degree = 3, .offset = 0.5}, .first = 0, .d = 2, .times = 1}};

km_source points(km_family family, int seed, size_t n, size_t d) {
  double *center = room(d), *scale = room(d);
  const int poly = family == KM_POLY;
  for (size_t l = 0; l < d; l++) {
    center[l] = poly ? 0 : 0.125 * (double) l;
    scale[l] = poly ? 1 : 1 + 0.5 * (double) l;
  }
  return (km_source){.kernel = {.family = family,
                                .degree = 3,
                                .offset = 0.5,
                                .parts = parts,
                                .count = sizeof parts / sizeof *parts},
                     .center = center, .scale = scale, .x = inputs(seed, n * d),
                     .n = n, .m = n, .d = d};
}

double *gram(int seed, size_t n, size_t d) {
  const km_source source = points(KM_RBF, seed, n, d);
  double *k = room(n * n);
  km_fold_store(&source, k, room(km_fold_store_work(&source)), NULL);
  return k;
}

int main(int count, char **arguments) {
  const int level = count > 1 ? atoi(arguments[1]) : KM_AVX512;
  const int threads = count > 2 ? atoi(arguments[2]) : 0;
  km_threads_init();
  km_set_isa((km_isa) level);
  if (count > 1 && (int) km_isa_level() != level) return 3;
  km_set_thread_limit(threads);
  km_set_work_per_thread(65536);
  must(threads < 1 || km_thread_limit() == threads, "the limit on threads is not what was set");
  must(km_work_per_thread() == 65536, "the work of a thread is not what was set");
  must(km_threads(0) == 1, "more than one thread for no work");
  must(km_threads(1e12) <= km_thread_limit(), "more threads than the limit");
  void (*sections[])(void) = {run_basics,  run_grams,      run_factors,
                              run_spectra, run_statistics, run_streams, run_scratch};
  for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
    sections[i]();
    release();
  }
  must(polls > 0, "no routine polls");
  fprintf(stderr, "driver: level %d, up to %d threads\n", (int) km_isa_level(),
          km_thread_limit());
  return 0;
}
