#include "core/rows.h"
#include "core/isa.h"

/* A few vectors of rows at a time, their sums in registers: 2 or 3 flops a coordinate. */

/* The sums of `vectors` vectors of rows stay in registers over the loop along the columns. */
INLINE void inner_strip(const size_t lanes, const size_t vectors, size_t n, size_t d,
                        const double *restrict x, const double *y, double start,
                        double *restrict a) {
  double s[4][8];
  UNROLL
  for (size_t v = 0; v < vectors; v++)
    SIMD
    for (size_t e = 0; e < lanes; e++) s[v][e] = start;
  for (size_t l = 0; l < d; l++)
    UNROLL
    for (size_t v = 0; v < vectors; v++)
      SIMD
      for (size_t e = 0; e < lanes; e++) s[v][e] += x[v * lanes + e + l * n] * y[l];
  UNROLL
  for (size_t v = 0; v < vectors; v++)
    SIMD
    for (size_t e = 0; e < lanes; e++) a[v * lanes + e] = s[v][e];
}

/* a_i = start + sum_l x_il y_l for some rows of a matrix of n */
INLINE void inner_body(const size_t lanes, size_t count, size_t n, size_t d, const double *x,
                       const double *y, double start, double *a) {
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes)
    inner_strip(lanes, 4, n, d, x + i, y, start, a + i);
  for (; i + lanes <= count; i += lanes) inner_strip(lanes, 1, n, d, x + i, y, start, a + i);
  for (; i < count; i++) inner_strip(1, 1, n, d, x + i, y, start, a + i);
}

/* With b the sums of (x_il - y_l)^2 a_l and of (x_il - y_l)^2 b_l, without of (x_il - y_l)^2. */
INLINE void squares_strip(const size_t lanes, const size_t vectors, const int weighted, size_t n,
                          size_t d, const double *restrict x, const double *y, const double *a,
                          const double *b, double *restrict squares, double *restrict others) {
  double s[4][8], o[4][8];
  UNROLL
  for (size_t v = 0; v < vectors; v++)
    SIMD
    for (size_t e = 0; e < lanes; e++) s[v][e] = o[v][e] = 0;
  for (size_t l = 0; l < d; l++)
    UNROLL
    for (size_t v = 0; v < vectors; v++)
      SIMD
      for (size_t e = 0; e < lanes; e++) {
        const double u = x[v * lanes + e + l * n] - y[l];
        s[v][e] += weighted ? u * u * a[l] : u * u;
        if (weighted) o[v][e] += u * u * b[l];
      }
  UNROLL
  for (size_t v = 0; v < vectors; v++)
    SIMD
    for (size_t e = 0; e < lanes; e++) {
      squares[v * lanes + e] = s[v][e];
      if (weighted) others[v * lanes + e] = o[v][e];
    }
}

INLINE void squares_rows(const size_t lanes, const int weighted, size_t count, size_t n, size_t d,
                         const double *x, const double *y, const double *a, const double *b,
                         double *squares, double *others) {
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes)
    squares_strip(lanes, 4, weighted, n, d, x + i, y, a, b, squares + i, others + i);
  for (; i + lanes <= count; i += lanes)
    squares_strip(lanes, 1, weighted, n, d, x + i, y, a, b, squares + i, others + i);
  for (; i < count; i++)
    squares_strip(1, 1, weighted, n, d, x + i, y, a, b, squares + i, others + i);
}

/* squares_i = sum_l (x_il - y_l)^2 for some rows of a matrix of n */
INLINE void distances_body(const size_t lanes, size_t count, size_t n, size_t d, const double *x,
                           const double *y, double *squares) {
  squares_rows(lanes, 0, count, n, d, x, y, y, y, squares, squares);
}

/* squares_i = sum_l (x_il - y_l)^2 a_l, and the same with b_l for `others` */
INLINE void squares_body(const size_t lanes, size_t count, size_t n, size_t d, const double *x,
                         const double *y, const double *a, const double *b, double *squares,
                         double *others) {
  squares_rows(lanes, 1, count, n, d, x, y, a, b, squares, others);
}

VERSIONS(inner,
         (size_t count, size_t n, size_t d, const double *x, const double *y, double start,
          double *a),
         (8, count, n, d, x, y, start, a), (4, count, n, d, x, y, start, a),
         (2, count, n, d, x, y, start, a))

VERSIONS(distances,
         (size_t count, size_t n, size_t d, const double *x, const double *y, double *squares),
         (8, count, n, d, x, y, squares), (4, count, n, d, x, y, squares),
         (2, count, n, d, x, y, squares))

VERSIONS(squares,
         (size_t count, size_t n, size_t d, const double *x, const double *y, const double *a,
          const double *b, double *squares, double *others),
         (8, count, n, d, x, y, a, b, squares, others),
         (4, count, n, d, x, y, a, b, squares, others),
         (2, count, n, d, x, y, a, b, squares, others))

km_row_loops km_rows(void) {
  return (km_row_loops){inner_version(), distances_version(), squares_version()};
}
