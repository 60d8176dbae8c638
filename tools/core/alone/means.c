/* Shrinkage weights and a two-sample test without R, as means.py has them. */

#include <kernmean.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 40, N = 100, D = 2, B = 199, COUNT = B + 1 };

static double next(void) { /* Park and Miller */
  static int64_t state = 1;
  state = state * 16807 % 2147483647;
  return (double) state / 2147483647.0;
}

static double *room(size_t count) {
  double *doubles = malloc(count * sizeof *doubles);
  if (!doubles) exit(1);
  return doubles;
}

int main(void) {
  static double x[N * D], rows[N], sums[COUNT], xx[COUNT], moments[2];
  static uint64_t subsets[(N + 63) / 64 * COUNT];
  const double center[D] = {0, 0}, scale[D] = {2, 2}; /* bandwidth 1/2 */
  const km_source source = {.kernel = {.family = KM_RBF}, .center = center, .scale = scale,
                            .x = x, .n = N, .m = N, .d = D};
  km_start();
  if (km_abi() != KERNMEAN_ABI) return 1;
  for (size_t i = 0; i < N * D; i++) x[i] = next() + (i % N < M ? 0 : 0.05);

  double *work = room(km_fold_rows_work(&source)), all = 0;
  km_fold_rows(&source, rows, work, NULL);
  free(work);
  for (size_t i = 0; i < N; i++) all += rows[i];
  const double rho = all / N / N, excess = 1 - rho; /* k(x, x) = 1 */
  const double alpha = fmin(1, N * excess / ((N - 1.0) * (N - 1) * rho + excess));
  printf("weight %.17g\n", (1 - alpha) / N);

  for (size_t c = 0; c < COUNT; c++) {
    size_t pool[N];
    for (size_t i = 0; i < N; i++) pool[i] = i;
    for (size_t i = 0; i < M; i++) {
      const size_t j = c ? i + (size_t) (next() * (double) (N - i)) : i, point = pool[j];
      pool[j] = pool[i];
      km_subset_add(subsets, COUNT, c, point);
    }
  }
  work = room(km_subset_forms_work(&source, COUNT, 0));
  km_subset_sums(subsets, N, COUNT, rows, 1, sums);
  km_subset_forms(&source, subsets, COUNT, NULL, 0, xx, moments, work, NULL);
  free(work);
  double most = 0;
  int larger = 0;
  for (size_t c = 0; c < COUNT; c++) {
    const double m = M, n = N - M, xy = sums[c] - xx[c], yy = all - xx[c] - 2 * xy;
    xx[c] = xx[c] / (m * m) + yy / (n * n) - 2 * xy / (m * n);
    most = fmax(most, fabs(xx[c]));
  }
  for (size_t c = 0; c < COUNT; c++) larger += xx[c] >= xx[0] - 1e-10 * most; /* but for rounding */
  printf("statistic %.17g\np.value %.17g\n", xx[0], (double) larger / COUNT);
  return 0;
}
