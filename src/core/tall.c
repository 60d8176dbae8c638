#include "core/tall.h"
#include "core/isa.h"
#include "core/parts.h"
#include "core/threads.h"

#include <string.h>

/*
 * Q'W and W + QC for a basis Q (rows x k) and a block W (rows x 16): 32 rows k flops each, patches
 * of the result in registers, rows dealt to workers by their number alone.
 */

enum { BLOCK = KM_BLOCK, CHUNK = 256, WORKERS = 32 };

static size_t worker_count(size_t rows) { return smaller(WORKERS, pieces(rows, CHUNK)); }

/* First row of a worker's share. */
static size_t first_row(size_t rows, size_t workers, size_t worker) {
  return share_start(rows / KM_TALL_ROWS, workers, worker) * KM_TALL_ROWS;
}

/* For km_threads: at 50 flops a nanosecond a second thread is worth waking from 0.3 ms on. */
static inline double operations(size_t rows, size_t k) { return 2 * (double) rows * (double) k; }

/* c += Q'W for some rows; `across` columns of Q with `along` of W at a time. */
INLINE void inner_body(const size_t lanes, const size_t across, const size_t along, size_t rows,
                       size_t stride, size_t k, const double *restrict q, const double *restrict w,
                       double *restrict c) {
  for (size_t j = 0; j < BLOCK; j += along)
    for (size_t l = 0; l < k; l += across) {
      double s[4][4][8];
      UNROLL
      for (size_t a = 0; a < across; a++)
        UNROLL
        for (size_t b = 0; b < along; b++)
          SIMD
          for (size_t e = 0; e < lanes; e++) s[a][b][e] = 0;
      for (size_t i = 0; i < rows; i += lanes)
        UNROLL
        for (size_t a = 0; a < across; a++)
          UNROLL
          for (size_t b = 0; b < along; b++)
            SIMD
            for (size_t e = 0; e < lanes; e++)
              s[a][b][e] += q[(l + a) * stride + i + e] * w[(j + b) * stride + i + e];
      UNROLL
      for (size_t a = 0; a < across; a++)
        UNROLL
        for (size_t b = 0; b < along; b++)
          for (size_t e = 0; e < lanes; e++) c[(l + a) * BLOCK + j + b] += s[a][b][e];
    }
}

VERSIONS(inner,
         (size_t rows, size_t stride, size_t k, const double *q, const double *w, double *c),
         (8, 4, 4, rows, stride, k, q, w, c),
         (4, 2, 4, rows, stride, k, q, w, c),
         (2, 2, 4, rows, stride, k, q, w, c))

/* W += times QC for some rows; `across` columns of Q are added to `along` of W at a time. */
INLINE void add_body(const size_t lanes, const size_t across, const size_t along, size_t rows,
                     size_t stride, size_t k, const double *restrict q, const double *restrict c,
                     double times, double *restrict w) {
  for (size_t l = 0; l < k; l += across)
    for (size_t j = 0; j < BLOCK; j += along) {
      double f[8][2];
      UNROLL
      for (size_t a = 0; a < across; a++)
        UNROLL
        for (size_t b = 0; b < along; b++) f[a][b] = times * c[(l + a) * BLOCK + j + b];
      for (size_t i = 0; i < rows; i += lanes)
        UNROLL
        for (size_t b = 0; b < along; b++)
          SIMD
          for (size_t e = 0; e < lanes; e++) {
            double sum = w[(j + b) * stride + i + e];
            UNROLL
            for (size_t a = 0; a < across; a++) sum += q[(l + a) * stride + i + e] * f[a][b];
            w[(j + b) * stride + i + e] = sum;
          }
    }
}

VERSIONS(add,
         (size_t rows, size_t stride, size_t k, const double *q, const double *c, double times,
          double *w),
         (8, 8, 2, rows, stride, k, q, c, times, w),
         (4, 4, 2, rows, stride, k, q, c, times, w),
         (2, 4, 2, rows, stride, k, q, c, times, w))

size_t km_tall_work(size_t rows, size_t k) { return worker_count(rows) * k * BLOCK; }

void km_tall_inner(size_t rows, size_t k, const double *q, const double *w, double *c,
                   double *work) {
  const size_t workers = worker_count(rows), size = k * BLOCK;
  inner_loop *version = inner_version();
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(rows, k, q, w, work, version) \
    firstprivate(workers, size) schedule(dynamic) num_threads(km_threads(operations(rows, k)))
#endif
  for (size_t worker = 0; worker < workers; worker++) {
    const size_t end = first_row(rows, workers, worker + 1);
    double *sums = work + worker * size;
    memset(sums, 0, size * sizeof *sums);
    for (size_t i = first_row(rows, workers, worker); i < end; i += CHUNK)
      version(smaller(CHUNK, end - i), rows, k, q + i, w + i, sums);
  }
  memcpy(c, work, size * sizeof *c);
  for (size_t worker = 1; worker < workers; worker++)
    for (size_t i = 0; i < size; i++) c[i] += work[worker * size + i];
}

void km_tall_add(size_t rows, size_t k, const double *q, const double *c, double times, double *w) {
  const size_t workers = worker_count(rows);
  add_loop *version = add_version();
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(rows, k, q, c, times, w, version) \
    firstprivate(workers) schedule(dynamic) num_threads(km_threads(operations(rows, k)))
#endif
  for (size_t worker = 0; worker < workers; worker++) {
    const size_t end = first_row(rows, workers, worker + 1);
    for (size_t i = first_row(rows, workers, worker); i < end; i += CHUNK)
      version(smaller(CHUNK, end - i), rows, k, q + i, c, times, w + i);
  }
}
