#include "core/products.h"
#include "core/isa.h"

/*
 * Products with narrow matrices (KM_BAND columns or so), the work horse of the reduction to a band:
 * 2 rows cols depth flops, patches of the result in registers.
 */

/* out (count x 3 lanes) += A'V, in registers. V: depth rows, stride ldv; out: rows, stride ldo. */
INLINE void multiply_patch(const size_t lanes, const size_t count, size_t depth, factor a,
                           const double *restrict v, size_t ldv, double *restrict out, size_t ldo) {
  double s0[8][8], s1[8][8], s2[8][8];
  UNROLL
  for (size_t l = 0; l < count; l++)
    SIMD
    for (size_t c = 0; c < lanes; c++) s0[l][c] = s1[l][c] = s2[l][c] = 0;
  for (size_t k = 0; k < depth; k++) {
    const double *row = v + k * ldv;
    UNROLL
    for (size_t l = 0; l < count; l++) {
      const double f = a.at[k * a.down + l * a.across];
      SIMD
      for (size_t c = 0; c < lanes; c++) {
        s0[l][c] += f * row[c];
        s1[l][c] += f * row[c + lanes];
        s2[l][c] += f * row[c + 2 * lanes];
      }
    }
  }
  UNROLL
  for (size_t l = 0; l < count; l++) {
    double *row = out + l * ldo;
    SIMD
    for (size_t c = 0; c < lanes; c++) {
      row[c] += s0[l][c];
      row[c + lanes] += s1[l][c];
      row[c + 2 * lanes] += s2[l][c];
    }
  }
}

INLINE void multiply_body(const size_t lanes, const size_t count, size_t rows, size_t cols,
                          size_t depth, factor a, const double *v, size_t ldv, double *out,
                          size_t ldo) {
  for (size_t l = 0; l < rows; l += count) {
    const factor some = {a.at + l * a.across, a.down, a.across};
    for (size_t c = 0; c < cols; c += 3 * lanes)
      multiply_patch(lanes, count, depth, some, v + c, ldv, out + l * ldo + c, ldo);
  }
}

VERSIONS(multiply,
         (size_t rows, size_t cols, size_t depth, factor a, const double *v, size_t ldv,
          double *out, size_t ldo),
         (8, 8, rows, cols, depth, a, v, ldv, out, ldo),
         (4, 4, rows, cols, depth, a, v, ldv, out, ldo),
         (2, 4, rows, cols, depth, a, v, ldv, out, ldo))

void km_multiply(size_t rows, size_t cols, size_t depth, factor a, const double *v, size_t ldv,
                 double *out, size_t ldo) {
  multiply_version()(rows, cols, depth, a, v, ldv, out, ldo);
}

double km_total(size_t n, const double *x) {
  if (n > 128) return km_total(n / 2, x) + km_total(n - n / 2, x + n / 2);
  double sum = 0;
#ifdef _OPENMP
#pragma omp simd reduction(+ : sum)
#endif
  for (size_t i = 0; i < n; i++) sum += x[i];
  return sum;
}
