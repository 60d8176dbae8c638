#include "core/columns.h"
#include "core/isa.h"

#include <float.h>
#include <math.h>

void km_column_ranges(const double *x, size_t n, size_t d, double *ends) {
  for (size_t l = 0; l < d; l++) {
    const double *column = x + l * n;
    double low = column[0], high = column[0];
    for (size_t i = 1; i < n; i++) {
      low = column[i] < low ? column[i] : low;
      high = column[i] > high ? column[i] : high;
    }
    ends[2 * l] = low;
    ends[2 * l + 1] = high;
  }
}

/* In units of the largest value. */
void km_column_spreads(const double *x, size_t n, size_t d, double *logs) {
  for (size_t l = 0; l < d; l++) {
    const double *column = x + l * n;
    double ends[2], mean = 0, squares = 0;
    km_column_ranges(column, n, 1, ends);
    const double unit = fmax(fmax(-ends[0], ends[1]), DBL_MIN);
    for (size_t i = 0; i < n; i++) mean += column[i] / unit;
    mean /= (double) n;
    for (size_t i = 0; i < n; i++) {
      const double apart = column[i] / unit - mean;
      squares += apart * apart;
    }
    logs[l] = ends[0] < ends[1] ? log(unit) + log(squares / (double) (n - 1)) / 2 : -INFINITY;
  }
}

/* A number times 0 is 0, or NaN if it is not finite. */
int km_all_finite(const double *x, size_t n) {
  enum { LANES = 16 };
  double sums[LANES] = {0};
  size_t i = 0;
  for (; i + LANES <= n; i += LANES)
    SIMD
    for (size_t e = 0; e < LANES; e++) sums[e] += x[i + e] * 0.0;
  double all = 0;
  for (size_t e = 0; e < LANES; e++) all += sums[e];
  for (; i < n; i++) all += x[i] * 0.0;
  return all == 0;
}
