/*
 * The bare loop: evaluates as many RBF kernel values as the symmetric Gram matrix of n points in d
 * columns has, n (n + 1) / 2, and does nothing with them. One tile of points a thread, in the first
 * level of cache, is evaluated again and again by the package's own arithmetic.
 *
 *   limit n d threads   prints seconds, the smallest of three runs
 */

#include "core/arithmetic.c"
#include "core/isa.c"
#include "core/threads.c"

#include <math.h>
#include <stdio.h>
#include <time.h>

enum { WORKERS = 32, MOST_COLUMNS = 64 };

static double seconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static double evaluate(const km_kernel *kernel, size_t d, size_t tiles) {
  _Alignas(64) double points[(MOST_COLUMNS + 1) * KM_TILE_COLS], k[KM_TILE_ROWS * KM_TILE_COLS];
  for (size_t i = 0; i < KM_TILE_COLS * d; i++) points[i] = sin((double) i);
  double *half_norms = points + KM_TILE_COLS * d;
  for (size_t i = 0; i < KM_TILE_COLS; i++) half_norms[i] = 1;
  const km_point_set rows = {points, half_norms, KM_TILE_ROWS};
  const km_point_set columns = {points, half_norms, KM_TILE_COLS};
  const km_tile_job job = {rows, columns, d, k};
  for (size_t t = 0; t < tiles; t++) km_simd()->tile(kernel, &job);
  return k[0];
}

int main(int count, char **arguments) {
  if (count != 4) return 1;
  const double n = atof(arguments[1]);
  const size_t d = (size_t) atoi(arguments[2]);
  if (d < 1 || d > MOST_COLUMNS) return 1;
  const size_t tiles = (size_t) (n * (n + 1) / 2 / (KM_TILE_ROWS * KM_TILE_COLS) / WORKERS);
  const km_kernel kernel = {.family = KM_RBF};
  double best = 1e300, sums[WORKERS];
  km_threads_init();
  km_set_isa(KM_AVX512);
  km_set_thread_limit(atoi(arguments[3]));
  for (int run = 0; run < 3; run++) {
    const double start = seconds();
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(sums, kernel, d, tiles) schedule(static) \
    num_threads(km_threads(1e12))
#endif
    for (size_t worker = 0; worker < WORKERS; worker++) sums[worker] = evaluate(&kernel, d, tiles);
    const double passed = seconds() - start;
    if (passed < best) best = passed;
  }
  printf("%.6f\n", best);
  return sums[0] < 0;
}
