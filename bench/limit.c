/*
 * What the machine can do, by loops of the package that do nothing else. Built with
 * src/core/products.c.
 *
 *   limit products threads   prints 1e9 floating-point operations a second, the most of three runs:
 *                            km_multiply with operands that never leave the first level of cache
 *   limit exp level 1        prints nanoseconds of the processor a value of exp_all on this instruction set, 0, 1 or
 *                            2, in the first level of cache; nothing where there is none
 *   limit n d threads        prints seconds, the smallest of three runs
 *   limit n m d threads      the same
 *
 * The second is the bare loop: it evaluates as many RBF kernel values as the symmetric Gram matrix
 * of n points in d columns has, n (n + 1) / 2, and does nothing with them. One tile of points a
 * thread, in the first level of cache, is evaluated again and again by the package's own
 * arithmetic. The third is the bare rectangular fold: n m values, whose rows are added up.
 */

#include "core/arithmetic.c"
#include "core/isa.c"
#include "core/threads.c"

#include "core/products.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WORKERS = 32, MOST_COLUMNS = 64 };

static double seconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static double evaluate(const km_kernel *kernel, size_t d, size_t tiles, int fold) {
  double sums[KM_TILE_COLS] = {0};
  _Alignas(64) double points[(MOST_COLUMNS + 1) * KM_TILE_COLS], k[KM_TILE_ROWS * KM_TILE_COLS];
  for (size_t i = 0; i < KM_TILE_COLS * d; i++) points[i] = sin((double) i);
  double *half_norms = points + KM_TILE_COLS * d;
  for (size_t i = 0; i < KM_TILE_COLS; i++) half_norms[i] = 1;
  const km_point_set rows = {points, half_norms, KM_TILE_ROWS, 0};
  const km_point_set columns = {points, half_norms, KM_TILE_COLS, 0};
  const km_tile_job job = {rows, columns, d, d, k};
  for (size_t t = 0; t < tiles; t++) {
    km_simd()->tile(kernel, &job);
    if (fold) km_simd()->add_rows(k, KM_TILE_ROWS, NULL, sums);
  }
  return k[0] + sums[0];
}

static double multiply(size_t times) {
  double a[8] = {0}, v[KM_BAND] = {0}, out[8 * KM_BAND] = {0};
  for (size_t t = 0; t < times; t++)
    km_multiply(8, KM_BAND, 1024, (factor){a, 0, 1}, v, 0, out, KM_BAND);
  return out[0];
}

static double seconds_of_products(size_t times) {
  double sums[WORKERS];
  const double start = seconds();
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(sums, times) schedule(static) \
  num_threads(km_threads(1e12))
#endif
  for (size_t worker = 0; worker < WORKERS; worker++) sums[worker] = multiply(times);
  return seconds() - start + sums[0];
}

static int products(void) {
  const size_t times = 10000;
  double least = 1e300;
  for (int run = 0; run < 3; run++) {
    const double passed = seconds_of_products(times);
    if (passed < least) least = passed;
  }
  printf("%.1f\n", 1e-9 * WORKERS * (double) times * 2 * 8 * KM_BAND * 1024 / least);
  return 0;
}

static int exponentials(int set) {
  enum { COUNT = 1024, TIMES = 20000 };
  static double x[COUNT], out[COUNT];
  double least = 1e300, sum = 0;
  km_set_isa((km_isa) set);
  if ((int) km_isa_level() != set) return 0;
  for (size_t i = 0; i < COUNT; i++) x[i] = -0.05 * (double) i;
  for (int run = 0; run < 5; run++) {
    const clock_t start = clock();
    for (size_t t = 0; t < TIMES; t++) {
      x[t % COUNT] -= 1e-9;
      km_simd()->exp_all(x, COUNT, out);
      sum += out[t % COUNT];
    }
    const double passed = (double) (clock() - start) / CLOCKS_PER_SEC;
    if (passed < least) least = passed;
  }
  printf("%.3f\n", 1e9 * least / ((double) COUNT * TIMES));
  return sum < 0;
}

int main(int count, char **arguments) {
  if (count < 3) return 1;
  km_threads_init();
  km_set_isa(KM_AVX512);
  km_set_thread_limit(atoi(arguments[count - 1]));
  if (count == 3) return strcmp(arguments[1], "products") ? 1 : products();
  if (strcmp(arguments[1], "exp") == 0) return exponentials(atoi(arguments[2]));
  const int fold = count > 4;
  const double n = atof(arguments[1]), m = fold ? atof(arguments[2]) : (n + 1) / 2;
  const size_t d = (size_t) atoi(arguments[count - 2]);
  if (d < 1 || d > MOST_COLUMNS) return 1;
  const size_t tiles = (size_t) (n * m / (KM_TILE_ROWS * KM_TILE_COLS) / WORKERS);
  const km_kernel kernel = {.family = KM_RBF};
  double best = 1e300, sums[WORKERS];
  for (int run = 0; run < 3; run++) {
    const double start = seconds();
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(sums, kernel, d, tiles, fold) \
    schedule(static) num_threads(km_threads(1e12))
#endif
    for (size_t worker = 0; worker < WORKERS; worker++)
      sums[worker] = evaluate(&kernel, d, tiles, fold);
    const double passed = seconds() - start;
    if (passed < best) best = passed;
  }
  printf("%.6f\n", best);
  return sums[0] < 0;
}
