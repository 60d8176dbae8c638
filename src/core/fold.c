#include "core/fold.h"
#include "core/parts.h"
#include "core/scratch.h"
#include "core/walk.h"

#include <string.h>

/*
 * Each fold takes one walk: n m values and 2 p flops on each. Memory: that of the walk, its
 * accumulators (core/walk.c) and, from 8 columns on, V packed.
 */

enum {
  PANEL = KM_TILE_COLS,
  FEW_COLUMNS = 8,    /* fewer are multiplied one by one */
  MOST_TOGETHER = 16, /* columns of the widest block */
  LONG = 65536        /* coordinates of the points that make a single column worth threads */
};

static const size_t cache = 524288; /* doubles: 4 MB; larger results bypass it */

/*
 * Accumulators of a fold: in each slot a padded x columns matrix, `block` columns together by rows.
 * Few columns are treated one by one (block 1), more in blocks of two vectors, v packed likewise.
 */
typedef struct {
  const km_arithmetic *simd;
  const km_source *source;
  const double *u, *v;
  size_t p, block, padded, slots, size;
  double *walk, *sums, *packed; /* packed: v, if block > 1 */
  unsigned char fresh[KM_WORKERS]; /* not yet cleared, by slot */
} sums_sink;

/* Columns with those that fill the last block, whatever the instruction set. */
static size_t column_room(size_t p) { return p < FEW_COLUMNS ? p : round_up(p, MOST_TOGETHER); }

static size_t lay_out(sums_sink *sink, const km_source *source, size_t p, double *work) {
  km_scratch scratch = {work, 0};
  sink->padded = round_up(source->n, PANEL);
  sink->size = sink->padded * column_room(p);
  sink->slots = km_walk_slots(source, (double) sink->size);
  sink->walk = take(&scratch, km_walk_work(source));
  sink->sums = take_aligned(&scratch, sink->slots * sink->size);
  sink->packed = take(&scratch, p < FEW_COLUMNS ? 0 : source->m * column_room(p));
  return scratch.used;
}

static sums_sink sums_start(const km_source *source, size_t p, double *work) {
  sums_sink sink = {.simd = km_simd(), .source = source, .p = p, .block = 1};
  if (p >= FEW_COLUMNS) sink.block = 2 * sink.simd->lanes;
  lay_out(&sink, source, p, work);
  /* A slot has one worker in a symmetric walk, which clears it. */
  if (source->y)
    memset(sink.sums, 0, sink.slots * sink.size * sizeof *sink.sums);
  else
    memset(sink.fresh, 1, sizeof sink.fresh);
  return sink;
}

static double *slot_of(sums_sink *sink, size_t worker) {
  const size_t slot = worker % sink->slots;
  double *sums = sink->sums + slot * sink->size;
  if (sink->fresh[slot]) {
    memset(sums, 0, sink->size * sizeof *sums);
    sink->fresh[slot] = 0;
  }
  return sums;
}

/* out (n x p): rows i0 .. i1-1 of the accumulators, added in their order. */
static void add_slots(const sums_sink *sink, size_t i0, size_t i1, double *out) {
  const size_t n = sink->source->n, block = sink->block;
  for (size_t c = 0; c < sink->p; c++) {
    const double *sums = sink->sums + c / block * block * sink->padded + c % block;
    for (size_t i = i0; i < i1; i++) out[i + c * n] = 0;
    for (size_t slot = 0; slot < sink->slots; slot++) {
      if (sink->fresh[slot]) continue;
      for (size_t i = i0; i < i1; i++) out[i + c * n] += sums[slot * sink->size + i * block];
    }
  }
}

static void sums_end(const sums_sink *sink, double *out) {
  const size_t n = sink->source->n;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(sink, out) firstprivate(n) schedule(dynamic) \
    num_threads(km_threads((double) (sink->slots * sink->size)))
#endif
  for (size_t i = 0; i < n; i += PANEL) add_slots(sink, i, smaller(n, i + PANEL), out);
}

static void add_sums(const km_tile *tile, void *to, size_t worker) {
  sums_sink *sink = to;
  double *sums = slot_of(sink, worker);
  sink->simd->sums(tile->k, tile->ni, sums + tile->i0, tile->mirrored ? sums + tile->j0 : NULL);
}

size_t km_fold_rows_work(const km_source *source) { return km_fold_apply_work(source, 1); }

void km_fold_rows(const km_source *source, double *sums, double *work, km_poll poll) {
  sums_sink sink = sums_start(source, 1, work);
  km_walk(source, sink.slots, 2, add_sums, &sink, sink.walk, poll);
  sums_end(&sink, sums);
}

/* Rows j0 .. j0+nj-1 of a column of v; at the border copied to `whole` with zeros below. */
static const double *tile_entries(const double *v, const km_tile *tile, double *whole) {
  if (tile->nj == KM_TILE_COLS) return v + tile->j0;
  memset(whole, 0, KM_TILE_COLS * sizeof *whole);
  memcpy(whole, v + tile->j0, tile->nj * sizeof *whole);
  return whole;
}

static void add_columns(const km_tile *tile, void *to, size_t worker) {
  sums_sink *sink = to;
  double whole[KM_TILE_COLS], *slot = slot_of(sink, worker);
  for (size_t c = 0; c < sink->p; c++) {
    const double *v = sink->v + c * sink->source->m;
    double *sums = slot + c * sink->padded;
    sink->simd->products(tile->k, tile->ni, v + (tile->mirrored ? tile->i0 : 0),
                         tile_entries(v, tile, whole), sums + tile->i0,
                         tile->mirrored ? sums + tile->j0 : NULL);
  }
}

static void add_blocks(const km_tile *tile, void *to, size_t worker) {
  sums_sink *sink = to;
  double *sums = slot_of(sink, worker);
  for (size_t c = 0; c < sink->p; c += sink->block)
    sink->simd->block_products(tile, sink->v + c * sink->source->m,
                               sums + c * sink->padded);
}

/* packed: v (m x p) with `block` columns together by rows, zeros after the last column. */
static void pack_columns(const double *v, size_t m, size_t p, size_t block, double *packed) {
  for (size_t c = 0; c < round_up(p, block); c++) {
    double *to = packed + c / block * block * m + c % block;
    for (size_t j = 0; j < m; j++) to[j * block] = c < p ? v[j + c * m] : 0;
  }
}

size_t km_fold_apply_work(const km_source *source, size_t p) {
  sums_sink sink;
  return lay_out(&sink, source, p, NULL);
}

void km_fold_apply(const km_source *source, const double *v, size_t p, double *out, double *work,
                   km_poll poll) {
  sums_sink sink = sums_start(source, p, work);
  sink.v = v;
  if (sink.block > 1) {
    pack_columns(v, source->m, p, sink.block, sink.packed);
    sink.v = sink.packed;
  }
  km_walk(source, sink.slots, 2 * (double) p, sink.block > 1 ? add_blocks : add_columns, &sink,
          sink.walk, poll);
  sums_end(&sink, out);
}

static void add_forms(const km_tile *tile, void *to, size_t worker) {
  const sums_sink *sink = to;
  const size_t n = sink->source->n, m = sink->source->m;
  const double times = tile->mirrored ? 2 : 1;
  double whole[KM_TILE_COLS];
  for (size_t c = 0; c < sink->p; c++)
    sink->sums[worker * sink->p + c] +=
        times * sink->simd->form(tile->k, tile->ni, sink->u + tile->i0 + c * n,
                                 tile_entries(sink->v + c * m, tile, whole));
}

/* Accumulators of a worker: p. */
static size_t lay_out_forms(sums_sink *sink, const km_source *source, size_t p, double *work) {
  km_scratch scratch = {work, 0};
  sink->walk = take(&scratch, km_walk_work(source));
  sink->sums = take(&scratch, KM_WORKERS * p);
  return scratch.used;
}

size_t km_fold_quad_work(const km_source *source, size_t p) {
  sums_sink sink;
  return lay_out_forms(&sink, source, p, NULL);
}

static void add_workers(const sums_sink *sink, double *out) {
  for (size_t c = 0; c < sink->p; c++) {
    out[c] = 0;
    for (size_t worker = 0; worker < KM_WORKERS; worker++)
      out[c] += sink->sums[worker * sink->p + c];
  }
}

void km_fold_quad(const km_source *source, const double *u, const double *v, size_t p, double *out,
                  double *work, km_poll poll) {
  sums_sink sink = {.simd = km_simd(), .source = source, .u = u, .v = v, .p = p};
  lay_out_forms(&sink, source, p, work);
  memset(sink.sums, 0, KM_WORKERS * p * sizeof *sink.sums);
  km_walk(source, km_walk_slots(source, 1), (double) p, add_forms, &sink, sink.walk, poll);
  add_workers(&sink, out);
}

typedef struct {
  sums_sink rows, forms;
} moments_sink;

static void add_moments(const km_tile *tile, void *to, size_t worker) {
  moments_sink *sink = to;
  add_sums(tile, &sink->rows, worker);
  add_forms(tile, &sink->forms, worker);
}

size_t km_fold_moments_work(const km_source *source, size_t p) {
  return km_fold_rows_work(source) + KM_WORKERS * p;
}

void km_fold_moments(const km_source *source, const double *u, size_t p, double *rows,
                     double *forms, double *work, km_poll poll) {
  moments_sink sink = {.rows = sums_start(source, 1, work),
                       .forms = {.simd = km_simd(), .source = source, .u = u, .v = u, .p = p,
                                 .sums = work + km_fold_rows_work(source)}};
  memset(sink.forms.sums, 0, KM_WORKERS * p * sizeof *sink.forms.sums);
  km_walk(source, sink.rows.slots, 2 + (double) p, add_moments, &sink, sink.rows.walk, poll);
  sums_end(&sink.rows, rows);
  add_workers(&sink.forms, forms);
}

typedef struct {
  const km_arithmetic *simd;
  size_t n;
  int symmetric, large;
  double *k;
} store_sink;

static void store_tile(const km_tile *tile, void *to, size_t worker) {
  const store_sink *sink = to;
  const size_t i0 = tile->i0, j0 = tile->j0, n = sink->n;
  const int columns = !sink->symmetric || tile->mirrored;
  (void) worker;
  sink->simd->store(tile, n, sink->large, columns ? sink->k + i0 + j0 * n : NULL,
                    sink->symmetric ? sink->k + j0 + i0 * n : NULL);
}

static void store(const km_source *source, int alone, double *k, double *work, km_poll poll) {
  const size_t length = source->n * source->m, slots = km_walk_slots(source, 1);
  const double cost = 16;
  store_sink sink = {km_simd(), source->n, !source->y, length > cache, k};
  if (alone)
    km_walk_alone(source, slots, cost, store_tile, &sink, work);
  else
    km_walk(source, slots, cost, store_tile, &sink, work, poll);
}

size_t km_fold_store_work(const km_source *source) { return km_walk_work(source); }

void km_fold_store(const km_source *source, double *k, double *work, km_poll poll) {
  store(source, 0, k, work, poll);
}

/* The kernel values of all points with the point y (d numbers). */
static km_source one_column(const km_source *source, const double *y) {
  km_source column = *source;
  column.y = y;
  column.m = 1;
  return column;
}

typedef struct {
  double *point; /* d */
  double *walk;
} column_parts;

static size_t lay_out_column(column_parts *s, const km_source *source, double *work) {
  km_scratch scratch = {work, 0};
  const km_source column = one_column(source, source->x);
  s->point = take(&scratch, source->d);
  s->walk = take(&scratch, km_walk_work(&column));
  return scratch.used;
}

size_t km_fold_column_work(const km_source *source) {
  column_parts s;
  return source->k ? 0 : lay_out_column(&s, source, NULL);
}

void km_fold_column(const km_source *source, size_t p, double *column, double *work) {
  const size_t n = source->n, d = source->d;
  if (source->k) {
    memcpy(column, source->k + p * n, n * sizeof *column);
    return;
  }
  column_parts s;
  lay_out_column(&s, source, work);
  for (size_t l = 0; l < d; l++) s.point[l] = source->x[p + l * n];
  const km_source pair = one_column(source, s.point);
  store(&pair, n * (d + 1) < LONG, column, s.walk, NULL);
}
