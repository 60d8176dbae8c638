#include "core/products.h"
#include "core/isa.h"

/*
 * Products with narrow matrices (KM_BAND columns or so), the work horse of the reduction to a band:
 * 2 rows cols depth flops, patches of the result in registers.
 */

/*
 * A patch of the result, count rows of three vectors, stays in registers. A macro, since a function
 * that is inlined has its vectors taken apart for the baseline before it is; vectors, since arrays
 * would go through the stack before and after the loop.
 */
#define multiply_body(lanes, count, rows, cols, depth, a, v, ldv, out, ldo)                \
  do {                                                                                     \
    typedef double vector __attribute__((vector_size(8 * lanes)));                         \
    typedef double lane_vector __attribute__((vector_size(8 * lanes), aligned(8), may_alias)); \
    for (size_t l = 0; l < rows; l += count)                                               \
      for (size_t c = 0; c < cols; c += 3 * lanes) {                                       \
        vector s0[count], s1[count], s2[count];                                            \
        UNROLL                                                                             \
        for (size_t i = 0; i < count; i++) {                                               \
          const lane_vector *row = (const lane_vector *) (out + (l + i) * ldo + c);        \
          s0[i] = row[0];                                                                  \
          s1[i] = row[1];                                                                  \
          s2[i] = row[2];                                                                  \
        }                                                                                  \
        for (size_t k = 0; k < depth; k++) {                                               \
          const lane_vector *row = (const lane_vector *) (v + k * ldv + c);                \
          const vector v0 = row[0], v1 = row[1], v2 = row[2];                              \
          const double *at = a.at + k * a.down + l * a.across;                             \
          UNROLL                                                                           \
          for (size_t i = 0; i < count; i++) {                                             \
            const double f = at[i * a.across];                                             \
            s0[i] += f * v0;                                                               \
            s1[i] += f * v1;                                                               \
            s2[i] += f * v2;                                                               \
          }                                                                                \
        }                                                                                  \
        UNROLL                                                                             \
        for (size_t i = 0; i < count; i++) {                                               \
          lane_vector *row = (lane_vector *) (out + (l + i) * ldo + c);                    \
          row[0] = s0[i];                                                                  \
          row[1] = s1[i];                                                                  \
          row[2] = s2[i];                                                                  \
        }                                                                                  \
      }                                                                                    \
  } while (0)

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

double km_product_flops(const km_product *product) {
  const double m = (double) product->m, n = (double) product->n;
  return 2 * (product->lower ? n * (m - n / 2) : m * n) * (double) product->depth;
}

double km_total(size_t n, const double *x) {
  if (n > 128) return km_total(n / 2, x) + km_total(n - n / 2, x + n / 2);
  double sum = 0;
  SIMD_SUMS(sum)
  for (size_t i = 0; i < n; i++) sum += x[i];
  return sum;
}
