#include "core/center.h"
#include "core/products.h"
#include "core/isa.h"
#include "core/scratch.h"
#include "core/walk.h"

#include <string.h>

/*
 * K^c of a matrix: K_ij - (m_i + m_j - |mu|^2), one rounding each, so that its halves are equal
 * where those of K are. 3 n^2 flops.
 */

km_centering km_row_means(size_t n, const double *k, double *at) {
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(n, k, at) schedule(dynamic, 32) \
    num_threads(km_threads((double) (n * n)))
#endif
  for (size_t j = 0; j < n; j++) at[j] = km_total(n, k + j * n) / (double) n;
  return (km_centering){at, km_total(n, at) / (double) n};
}

void km_center(size_t n, const double *k, km_centering mean, double *out) {
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(n, k, mean, out) schedule(dynamic, 16) \
    num_threads(km_threads((double) (n * n)))
#endif
  for (size_t j = 0; j < n; j++)
    for (size_t i = 0; i < n; i++)
      out[i + j * n] = k[i + j * n] - (mean.at[i] + mean.at[j] - mean.norm2);
}

/* --- The norm of K^c, which is not formed ------------------------------------- */

typedef struct {
  km_centering mean;
  double *walk, *sums; /* sums: KM_WORKERS */
} square_sink;

static size_t lay_out(square_sink *sink, const km_source *source, double *work) {
  km_scratch scratch = {work, 0};
  sink->walk = take(&scratch, km_walk_work(source));
  sink->sums = take(&scratch, KM_WORKERS);
  return scratch.used;
}

INLINE void square_body(size_t rows, size_t columns, const double *restrict k, const double *across,
                        const double *restrict down, double shift, double *sum) {
  for (size_t i = 0; i < rows; i++) {
    const double *row = k + i * KM_TILE_COLS;
    const double own = shift - across[i];
    double total = 0;
    SIMD_SUMS(total)
    for (size_t j = 0; j < columns; j++) {
      const double value = row[j] + own - down[j];
      total += value * value;
    }
    *sum += total;
  }
}

VERSIONS(square,
         (size_t rows, size_t columns, const double *k, const double *across, const double *down,
          double shift, double *sum),
         (rows, columns, k, across, down, shift, sum), (rows, columns, k, across, down, shift, sum),
         (rows, columns, k, across, down, shift, sum))

static void add_square(const km_tile *tile, void *to, size_t worker) {
  const square_sink *sink = to;
  double sum = 0;
  square_version()(tile->ni, tile->nj, tile->k, sink->mean.at + tile->i0, sink->mean.at + tile->j0,
                   sink->mean.norm2, &sum);
  sink->sums[worker] += (tile->mirrored ? 2 : 1) * sum;
}

size_t km_centered_square_work(const km_source *source) {
  square_sink sink;
  return lay_out(&sink, source, NULL);
}

double km_centered_square(const km_source *source, km_centering mean, double *work, km_poll poll) {
  double total = 0;
  square_sink sink = {.mean = mean};
  lay_out(&sink, source, work);
  memset(sink.sums, 0, KM_WORKERS * sizeof *sink.sums);
  km_walk(source, km_walk_slots(source, 1), 4, add_square, &sink, sink.walk, poll);
  for (size_t worker = 0; worker < KM_WORKERS; worker++) total += sink.sums[worker];
  return total;
}
