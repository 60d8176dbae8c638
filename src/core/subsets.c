#include "core/subsets.h"
#include "core/isa.h"
#include "core/parts.h"
#include "core/scratch.h"
#include "core/walk.h"

#include <string.h>

/*
 * z'Kz for the indicators z of many subsets at once is a fold over tiles: a tile is evaluated once
 * and each subset costs it 72 vector additions (subset_forms). Time O(n^2 (d + count)/2), memory n
 * count / 8 bytes, 32 (count + 2) doubles a rate and 32 tables. (Every statistic of the maximum
 * mean discrepancy is a function of such sums over the relabeled samples.)
 */

enum {
  WORD = 64,
  TILE = KM_TILE_ROWS * KM_TILE_COLS,
  SLICE = KM_SUBSET_TABLE + TILE, /* scratch of a worker: a table, and a tile of values */
  MOMENTS = 2
};

static const double set_cost = 0.3; /* operations of subset_forms on a value, for each set */

static size_t words(size_t n) { return pieces(n, WORD); }

size_t km_subset_words(size_t n, size_t count) { return words(n) * count; }

/* --- Subsets of relabeled samples --------------------------------------------- */

size_t km_label_points(const km_labels *labels) {
  size_t n = 0;
  for (size_t g = 0; g < labels->samples; g++) n += (size_t) labels->sizes[g];
  return n;
}

size_t km_relabel_count(const km_labels *labels, const km_relabelings *from) {
  return (from->count + (from->observed ? 1 : 0)) * labels->n_sets;
}

/* Adds subsets c, c + 1, ... of one relabeling; permutation: n, from `base`. */
static void mark(const km_labels *labels, const int *permutation, int base, size_t count, size_t c,
                 uint64_t *subsets) {
  size_t k = 0;
  for (size_t g = 0; g < labels->samples; g++)
    for (const size_t end = k + (size_t) labels->sizes[g]; k < end; k++)
      for (size_t s = 0; s < labels->n_sets; s++)
        if (labels->sets[s + g * labels->n_sets])
          km_subset_add(subsets, count, c + s, (size_t) (permutation[k] - base));
}

size_t km_relabel_iwork(size_t n) { return n; }

void km_relabel(const km_labels *labels, const km_relabelings *from, uint64_t *subsets, int *work,
                km_poll poll) {
  const size_t n = km_label_points(labels), count = km_relabel_count(labels, from);
  size_t c = 0;
  memset(subsets, 0, km_subset_words(n, count) * sizeof *subsets);
  if (from->observed) {
    for (size_t i = 0; i < n; i++) work[i] = (int) i;
    mark(labels, work, 0, count, c, subsets);
    c += labels->n_sets;
  }
  for (size_t p = 0; p < from->count; p++, c += labels->n_sets) {
    if (!from->given) km_draw_permutation(from->blocks, from->draw, work);
    mark(labels, from->given ? from->given + p * n : work, from->given ? 1 : 0, count, c, subsets);
    if (poll) poll();
  }
}

/* --- Sums over subsets --------------------------------------------------------- */

static double subset_sum(const uint64_t *subsets, size_t n, size_t count, const double *v) {
  double sum = 0;
  for (size_t word = 0; word < words(n); word++)
    for (uint64_t left = subsets[word * count]; left; left &= left - 1)
      sum += v[word * WORD + (size_t) __builtin_ctzll(left)];
  return sum;
}

void km_subset_sums(const uint64_t *subsets, size_t n, size_t count, const double *v,
                    size_t columns, double *sums) {
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(subsets, n, count, v, columns, sums) \
    schedule(dynamic, 16) num_threads(km_threads((double) n * (double) count * (double) columns))
#endif
  for (size_t c = 0; c < count; c++)
    for (size_t k = 0; k < columns; k++)
      sums[c + k * count] = subset_sum(subsets + c, n, count, v + k * n);
}

typedef struct {
  const uint64_t *subsets;
  size_t count;
  const double *rates; /* or NULL */
  size_t n_rates;      /* at least 1 */
  size_t workers;      /* slots of the walk */
  double *walk;
  double *slices;      /* workers x SLICE */
  double *sums;        /* workers x n_rates x (count + MOMENTS) */
} forms_sink;

static size_t lay_out_forms(forms_sink *sink, const km_source *source, double *work) {
  km_scratch scratch = {work, 0};
  sink->workers = km_walk_workers(source);
  sink->walk = take(&scratch, km_walk_work(source));
  sink->slices = take_aligned(&scratch, sink->workers * SLICE);
  sink->sums = take(&scratch, sink->workers * sink->n_rates * (sink->count + MOMENTS));
  return scratch.used;
}

static void add_moments(const double *k, size_t ni, double times, double *moments) {
  double own[MOMENTS] = {0, 0};
  km_simd()->moments(k, ni, own);
  for (size_t l = 0; l < MOMENTS; l++) moments[l] += times * own[l];
}

/* exp(-rate s) of a tile of squared distances, zeros beyond its last column. */
static void take_exp(const km_tile *tile, double rate, double *values) {
  const size_t length = tile->ni * KM_TILE_COLS;
  const double *k = tile->k;
  SIMD
  for (size_t i = 0; i < length; i++) values[i] = -rate * k[i];
  km_simd()->exp_all(values, length, values);
  for (size_t i = 0; i < tile->ni; i++)
    for (size_t j = tile->nj; j < KM_TILE_COLS; j++) values[i * KM_TILE_COLS + j] = 0;
}

static void add_forms(const km_tile *tile, void *to, size_t worker) {
  const forms_sink *sink = to;
  const size_t count = sink->count, width = count + MOMENTS;
  double *table = sink->slices + worker * SLICE, *values = table + KM_SUBSET_TABLE;
  const double times = tile->mirrored ? 2 : 1;
  for (size_t r = 0; r < sink->n_rates; r++) {
    double *sums = sink->sums + (worker * sink->n_rates + r) * width;
    const double *k = tile->k;
    if (sink->rates) {
      take_exp(tile, sink->rates[r], values);
      k = values;
    }
    km_simd()->subset_forms(k, count, sink->subsets + tile->i0 / WORD * count,
                            (unsigned) (tile->i0 % WORD), sink->subsets + tile->j0 / WORD * count,
                            times, table, sums);
    add_moments(k, tile->ni, times, sums + count);
  }
}

size_t km_subset_forms_work(const km_source *source, size_t count, size_t n_rates) {
  forms_sink sink = {.count = count, .n_rates = larger(1, n_rates)};
  return lay_out_forms(&sink, source, NULL);
}

void km_subset_forms(const km_source *source, const uint64_t *subsets, size_t count,
                     const double *rates, size_t n_rates, double *forms, double *moments,
                     double *work, km_poll poll) {
  forms_sink sink = {
    .subsets = subsets, .count = count, .rates = rates, .n_rates = larger(1, n_rates)};
  const size_t width = count + MOMENTS, columns = sink.n_rates;
  lay_out_forms(&sink, source, work);
  memset(sink.slices, 0, sink.workers * SLICE * sizeof *work);
  memset(sink.sums, 0, sink.workers * columns * width * sizeof *work);
  const double cost = (double) columns * (KM_EXP_COST + set_cost * (double) count);
  km_walk(source, sink.workers, cost, add_forms, &sink, sink.walk, poll);
  memset(forms, 0, columns * count * sizeof *forms);
  memset(moments, 0, columns * MOMENTS * sizeof *moments);
  for (size_t worker = 0; worker < sink.workers; worker++)
    for (size_t r = 0; r < columns; r++) {
      const double *sums = sink.sums + (worker * columns + r) * width;
      for (size_t c = 0; c < count; c++) forms[c + r * count] += sums[c];
      for (size_t l = 0; l < MOMENTS; l++) moments[l + r * MOMENTS] += sums[count + l];
    }
}
