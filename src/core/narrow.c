#include "core/narrow.h"
#include "core/isa.h"
#include "core/parts.h"

/*
 * C = AB without packing. Where columns of A are contiguous, patches of C, some vectors of rows by
 * some columns, are summed over k in registers; where rows of A and columns of B are, patches of
 * inner products. Of columns, sums run in the order of k, so that a row of C does not depend on
 * the others; inner products are summed by lanes. 2 m n depth flops.
 */

enum {
  MOST = 32,     /* columns of a narrow side */
  BLOCK = 960,   /* rows of C that are treated together, half of that at least */
  CHUNK = 128,   /* columns of A: three vectors of rows of these stay in the first-level cache */
  STREAMS = 12,  /* columns of a larger A: processors read so many from memory ahead */
  LARGE = 1 << 20,
  PAIRS = 16,    /* rows of C of inner products */
  LONG = 1024    /* rows of so many columns stay in a cache */
};

/* Macros as in products.c, and for the same reason: `height` vectors of rows by `count` columns of
   C from row i and column j on. */
#define columns_patch(vector, lane_vector, step, height, count)                                    \
  do {                                                                                             \
    vector s[count][height];                                                                       \
    UNROLL                                                                                         \
    for (size_t q = 0; q < count; q++)                                                             \
      UNROLL                                                                                       \
      for (size_t u = 0; u < height; u++) {                                                        \
        s[q][u] = (vector){0};                                                                     \
        if (k0) s[q][u] = ((const lane_vector *) (of->c + i + (j + q) * of->ldc))[u];              \
      }                                                                                            \
    for (size_t k = k0; k < k1; k++) {                                                             \
      const lane_vector *row = (const lane_vector *) (of->a.at + i + k * of->a.across);            \
      const double *at = of->b.at + k * of->b.down + j * of->b.across;                             \
      UNROLL                                                                                       \
      for (size_t q = 0; q < count; q++)                                                           \
        UNROLL                                                                                     \
        for (size_t u = 0; u < height; u++) s[q][u] += at[q * of->b.across] * row[u];              \
    }                                                                                              \
    UNROLL                                                                                         \
    for (size_t q = 0; q < count; q++)                                                             \
      UNROLL                                                                                       \
      for (size_t u = 0; u < height; u++)                                                          \
        ((lane_vector *) (of->c + i + (j + q) * of->ldc))[u] = s[q][u];                            \
  } while (0)

/* Rows i0 .. i1 - 1 by strips of so many vectors; the last strip takes some rows again. */
#define columns_sweep(vector, lane_vector, step, height, count)                                    \
  for (size_t last = 0; last <= ((i1 - i0) % (step * height) > 0); last++)                         \
    for (size_t k0 = 0, k1 = 0; k0 < of->depth; k0 = k1) {                                         \
      k1 = smaller(of->depth, k0 + (of->m * of->depth > LARGE ? STREAMS : CHUNK));                 \
      for (size_t i = last ? i1 - step * height : i0; i + step * height <= i1;                     \
           i += step * height) {                                                                   \
        const size_t n = of->lower ? smaller(of->n, i + step * height) : of->n;                    \
        size_t j = 0;                                                                              \
        for (; j + count <= n; j += count)                                                         \
          columns_patch(vector, lane_vector, step, height, count);                                 \
        for (; j + 2 <= n; j += 2) columns_patch(vector, lane_vector, step, height, 2);            \
        for (; j < n; j++) columns_patch(vector, lane_vector, step, height, 1);                    \
      }                                                                                            \
    }

#define VECTORS(lanes)                                                                             \
  typedef double vector __attribute__((vector_size(8 * lanes)));                                   \
  typedef double lane_vector __attribute__((vector_size(8 * lanes), aligned(8), may_alias));

#define columns_body(lanes, count, of, i0, i1)                                                     \
  do {                                                                                             \
    (void) down, (void) across;                                                                    \
    VECTORS(lanes)                                                                                 \
    if (i1 - i0 >= 3 * lanes)                                                                      \
      columns_sweep(vector, lane_vector, lanes, 3, count)                                          \
    else if (i1 - i0 >= lanes)                                                                     \
      columns_sweep(vector, lane_vector, lanes, 1, count)                                          \
    else                                                                                           \
      columns_sweep(double, double, 1, 1, count)                                                   \
  } while (0)

VERSIONS(columns, (const km_product *of, size_t down, size_t across, size_t i0, size_t i1),
         (8, 8, of, i0, i1), (4, 4, of, i0, i1), (2, 4, of, i0, i1))

/* `high` rows of A with `wide` columns of B, `deep` vectors at once. */
#define dots_patch(lanes, high, wide, deep)                                                        \
  do {                                                                                             \
    vector s[deep][high][wide] = {{{{0}}}};                                                        \
    const double *x = of->a.at + i * of->a.down, *y = of->b.at + j * of->b.across;                 \
    size_t k = k0;                                                                                 \
    for (; k + deep * lanes <= k1; k += deep * lanes)                                              \
      UNROLL                                                                                       \
      for (size_t u = 0; u < deep; u++)                                                            \
        UNROLL                                                                                     \
        for (size_t p = 0; p < high; p++)                                                          \
          UNROLL                                                                                   \
          for (size_t q = 0; q < wide; q++)                                                        \
            s[u][p][q] += *(const lane_vector *) (x + k + u * lanes + p * of->a.down) *            \
                          *(const lane_vector *) (y + k + u * lanes + q * of->b.across);           \
    UNROLL                                                                                         \
    for (size_t p = 0; p < high; p++)                                                              \
      UNROLL                                                                                       \
      for (size_t q = 0; q < wide; q++) {                                                          \
        double *to = of->c + (i + p) * down + (j + q) * across, sum = k0 ? *to : 0;                \
        UNROLL                                                                                     \
        for (size_t u = 1; u < deep; u++) s[0][p][q] += s[u][p][q];                                \
        UNROLL                                                                                     \
        for (size_t e = 0; e < lanes; e++) sum += s[0][p][q][e];                                   \
        for (size_t r = k; r < k1; r++)                                                            \
          sum += x[r + p * of->a.down] * y[r + q * of->b.across];                                  \
        *to = sum;                                                                                 \
      }                                                                                            \
  } while (0)

#define dots_body(lanes, of, down, across, i0, i1)                                                 \
  do {                                                                                             \
    VECTORS(lanes)                                                                                 \
    for (size_t k0 = 0, k1 = 0; k0 < of->depth; k0 = k1) {                                         \
      k1 = smaller(of->depth, k0 + LONG);                                                          \
      size_t i = i0;                                                                               \
      for (; i + 4 <= i1; i += 4) {                                                                \
        const size_t n = of->lower ? smaller(of->n, i + 4) : of->n;                                \
        size_t j = 0;                                                                              \
        for (; j + 2 <= n; j += 2) dots_patch(lanes, 4, 2, 1);                                     \
        for (; j < n; j++) dots_patch(lanes, 4, 1, 2);                                             \
      }                                                                                            \
      for (; i < i1; i++)                                                                          \
        for (size_t j = 0; j < (of->lower ? i + 1 : of->n); j++) dots_patch(lanes, 1, 1, 4);       \
    }                                                                                              \
  } while (0)

VERSIONS(dots, (const km_product *of, size_t down, size_t across, size_t i0, size_t i1),
         (8, of, down, across, i0, i1), (4, of, down, across, i0, i1),
         (2, of, down, across, i0, i1))

static int is_small(const km_product *of) { return km_product_flops(of) <= 1e5; }

/* Columns where both fit, as of a matrix of one row. */
static int are_dots(const km_product *of) {
  return of->a.down != 1 && of->a.across == 1 && of->b.down == 1;
}

/* Few rows of columns would be a single block. */
int km_is_narrow(const km_product *of) {
  const int plain = of->fresh && of->times == 1 && of->depth > 0, dots = are_dots(of);
  return plain && (dots || of->a.down == 1) &&
         ((dots && of->m <= MOST) || of->n <= MOST || is_small(of));
}

/* B'A', a product of as many inner products. */
static km_product turned(const km_product *of) {
  km_product product = *of;
  product.m = of->n;
  product.n = of->m;
  product.a = (factor){of->b.at, of->b.across, of->b.down};
  product.b = (factor){of->a.at, of->a.across, of->a.down};
  return product;
}

/* A double that is read counts as 16 flops, for what is narrow waits for memory. */
void km_multiply_narrow(const km_product *product, km_poll poll) {
  const int dots = are_dots(product);
  const int turn = dots && product->m < product->n;
  const km_product of = turn ? turned(product) : *product;
  const size_t down = turn ? of.ldc : 1, across = turn ? 1 : of.ldc;
  const size_t blocks = pieces(of.m, dots ? PAIRS : BLOCK);
  columns_loop *loop = dots ? dots_version() : columns_version();
  if (is_small(&of)) {
    loop(&of, down, across, 0, of.m);
    return;
  }
  const double all = (double) of.m * (double) of.depth * (2 * (double) of.n + 16);
  const size_t most = 1 + (size_t) (km_dense_poll / all * (double) blocks);
  for (size_t first = 0; first < blocks; first += most) {
    const size_t last = smaller(blocks, first + most);
    if (poll) poll();
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(loop) schedule(static) \
    firstprivate(of, first, last, blocks, down, across) \
    num_threads(km_threads(all / KM_DENSE_WORTH))
#endif
    for (size_t t = first; t < last; t++)
      loop(&of, down, across, share_start(of.m, blocks, t), share_start(of.m, blocks, t + 1));
  }
}
