#include "core/tile.h"

#include <float.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/* gcc for Windows does not align the stack for AVX registers (gcc bug 54412). */
#if defined(__x86_64__) && defined(__GNUC__) && (!defined(_WIN32) || defined(__clang__))
#define AVX
#include <immintrin.h>
#endif
#ifdef __linux__
#include <sys/mman.h>
#endif

/*
 * Points are centred, scaled and packed in groups of GROUP, feature-major, zeros after the last. A
 * tile is n_i x n_j kernel values of 2 d + 45 flops (RBF by inner products) or 3 d + 45 (by
 * differences). Inner products are used for RBF alone, and only if the second set lies near the
 * centre (half norms <= 32): there they are off by 1e-14 in the exponent at most, and as the second
 * set alone decides, a row of a rectangular walk never depends on other rows.
 *
 * Tiles are dealt to workers by the sizes alone; a worker adds up its tiles in order in
 * accumulators of its own, which are then added in the order of the workers: the same bits for any
 * number of threads. A symmetric walk gives each worker a stretch of the list of tile pairs I <= J.
 * A rectangular walk cuts the columns in chunks (by m alone), the rows in groups, and has a worker
 * for each chunk of each group; accumulators belong to chunks, so each row is summed by m alone.
 *
 * Memory: (n + m)(d + 1) doubles and 32 tiles; accumulators of 32 n p (beyond 64 MB, as many as
 * fit but at least 8) in a symmetric walk, of 8 n p at most in a rectangular one.
 */

enum {
  GROUP = 32,           /* points packed together */
  PANEL = KM_TILE_COLS, /* points on a side of the squares that are dealt to workers */
  ROWS = 4,             /* rows of a register block */
  STRIP = 8,            /* vectors of column sums held in registers */
  FEATURE_RUN = 64,     /* features of one pass over a tile */
  FEW_COLUMNS = 8,      /* fewer are multiplied one by one */
  MOST_TOGETHER = 16,   /* columns of the widest group */
  CHUNKS = 8,           /* at most, in a rectangular walk */
  FEWEST_WORKERS = 8    /* at least, in a symmetric walk */
};

static const double largest_half_norm = 32;
static const double most_accumulators = 8388608; /* doubles: 64 MB */
static const double panel_work = 134217728;      /* operations a lane between two polls */
static const size_t cache = 524288;              /* doubles: 4 MB; larger results bypass it */
static const double exp_cost = 24;               /* of a kernel value beside its features */
static const double consumer_cost = 256;         /* assumed of km_walk's callers, per value */

typedef struct {
  const double *points;     /* packed */
  const double *half_norms; /* |x_i|^2 / 2; NULL: evaluate by differences */
  size_t count;
} point_set;

typedef struct {
  point_set x, y; /* the tile's own points */
  size_t d;
  double *k;
} tile_job;

typedef struct {
  size_t lanes;
  void (*tile)(const km_kernel *kernel, const tile_job *job);
  void (*half_norms)(const double *points, size_t count, size_t d, double *half_norms);
  void (*sums)(const double *k, size_t ni, double *rows, double *columns);
  void (*products)(const double *k, size_t ni, const double *u, const double *v, double *rows,
                   double *columns);
  void (*block_products)(const km_tile *tile, const double *v, double *sums);
  double (*form)(const double *k, size_t ni, const double *u, const double *v);
  void (*store)(const km_tile *tile, size_t n, int large, double *columns, double *rows);
  size_t (*between)(const km_tile *tile, double low, double high, double *inside, size_t *below,
                    double *least);
  void (*exp_all)(const double *x, size_t n, double *out);
  void (*diagonal)(const km_kernel *kernel, const double *x, size_t n, size_t d, double *diagonal);
} arithmetic;

#define INLINE static inline __attribute__((always_inline)) TARGET

#ifdef AVX

typedef double vec8 __attribute__((vector_size(64)));
typedef uint64_t ints8 __attribute__((vector_size(64)));
#define TARGET __attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma")))
#define NAME(f) f##_avx512
#define VEC vec8
#define INTS ints8
#define LANES 8
#define VECTORS 4
#define SPREAD(a) _mm512_set1_pd(a)
#define MADD(a, b, c) _mm512_fmadd_pd(a, b, c)
#define LEAST(a, b) _mm512_min_pd(a, b)
#define TOTAL(a) _mm512_reduce_add_pd(a)
#define STREAM(to, a) _mm512_stream_pd(to, a)
#define SIGNS(a) ((unsigned) _mm512_movepi64_mask((__m512i) (a)))
#define ROOTS(a) \
  _mm512_permutex2var_pd(_mm512_loadu_pd(roots), (__m512i) (a), _mm512_loadu_pd(roots + 8))
static const uint64_t roots[16] = {
    0x3ff0000000000000, 0x3fefb5586cf9890f, 0x3fef72b83c7d517b, 0x3fef387a6e756238,
    0x3fef06fe0a31b715, 0x3feedea64c123422, 0x3feebfdad5362a27, 0x3feeab07dd485429,
    0x3feea09e667f3bcd, 0x3feea11473eb0187, 0x3feeace5422aa0db, 0x3feec49182a3f090,
    0x3feee89f995ad3ad, 0x3fef199bdd85529c, 0x3fef5818dcfba487, 0x3fefa4afa2a490da};
#include "core/lanes.h"

typedef double vec4 __attribute__((vector_size(32)));
typedef uint64_t ints4 __attribute__((vector_size(32)));
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(f) f##_avx2
#define VEC vec4
#define INTS ints4
#define LANES 4
#define VECTORS 2
#define SPREAD(a) _mm256_set1_pd(a)
#define MADD(a, b, c) _mm256_fmadd_pd(a, b, c)
#define LEAST(a, b) _mm256_min_pd(a, b)
#define TOTAL(a) (((a)[0] + (a)[2]) + ((a)[1] + (a)[3]))
#define STREAM(to, a) _mm256_stream_pd(to, a)
#define SIGNS(a) ((unsigned) _mm256_movemask_pd(a))
#include "core/lanes.h"

#endif

typedef double vec2 __attribute__((vector_size(16)));
typedef uint64_t ints2 __attribute__((vector_size(16)));
#define TARGET
#define NAME(f) f##_baseline
#define VEC vec2
#define INTS ints2
#define LANES 2
#define VECTORS 2
#define SPREAD(a) ((vec2){(a), (a)})
#define MADD(a, b, c) ((a) * (b) + (c))
#define LEAST(a, b) least_baseline(a, b)
#define TOTAL(a) ((a)[0] + (a)[1])
#define STREAM(to, a) memcpy(to, &(a), sizeof(a))
#define SIGNS(a) ((unsigned) (((ints2) (a))[0] >> 63 | ((ints2) (a))[1] >> 63 << 1))
static inline vec2 least_baseline(vec2 a, vec2 b) {
  const ints2 less = (ints2) (a < b);
  return (vec2) ((less & (ints2) a) | (~less & (ints2) b));
}
#include "core/lanes.h"

static const arithmetic *simd(void) {
#ifdef AVX
  switch (km_isa_level()) {
  case KM_AVX512: return &arithmetic_avx512;
  case KM_AVX2: return &arithmetic_avx2;
  case KM_BASELINE: break;
  }
#endif
  return &arithmetic_baseline;
}

typedef struct {
  const km_kernel *kernel;
  const arithmetic *simd;
  point_set x, y;
  size_t d;
  int symmetric;
  size_t row_panels, column_panels;
  size_t chunks, groups;
  double *tiles; /* one a worker */
  km_consumer consume;
  void *sink;
} walk;

static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

static size_t panel_count(size_t n) { return (n + PANEL - 1) / PANEL; }

/* Start of part `part` when `count` things are dealt to `parts`. */
static size_t start(size_t count, size_t parts, size_t part) { return count * part / parts; }

static size_t share(size_t count, size_t parts, size_t part) {
  return start(count, parts, part + 1) - start(count, parts, part);
}

static double *aligned(double *work) {
  const size_t off = (uintptr_t) work % 64 / sizeof *work;
  return off ? work + 8 - off : work;
}

static void pack_group(const km_kernel *kernel, const double *x, size_t n, size_t d, size_t first,
                       double *points) {
  const size_t count = n - first < GROUP ? n - first : GROUP;
  for (size_t l = 0; l < d; l++) {
    for (size_t i = 0; i < count; i++)
      points[l * GROUP + i] = (x[first + i + l * n] - kernel->centre[l]) * kernel->scale[l];
    for (size_t i = count; i < GROUP; i++) points[l * GROUP + i] = 0;
  }
}

/* Packs a set into *work and moves *work on; half norms are added for RBF. */
static point_set pack(const walk *w, const double *x, size_t n, double **work) {
  const size_t d = w->d, padded = round_up(n, GROUP);
  const int rbf = w->kernel->family == KM_RBF;
  double *points = *work, *half_norms = *work + padded * d;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(w, x, n, d, padded, points, half_norms, rbf) \
    schedule(static) num_threads(km_threads((double) n * (double) d))
#endif
  for (size_t i = 0; i < padded; i += GROUP) {
    pack_group(w->kernel, x, n, d, i, points + i * d);
    if (rbf) w->simd->half_norms(points + i * d, GROUP, d, half_norms + i);
  }
  *work = half_norms + padded;
  return (point_set){points, rbf ? half_norms : NULL, n};
}

static int near_centre(const point_set *set) {
  if (!set->half_norms) return 0;
  for (size_t i = 0; i < set->count; i++)
    if (!(set->half_norms[i] <= largest_half_norm)) return 0;
  return 1;
}

/* Accumulators of `size` doubles each: the workers of a symmetric walk, the chunks of another. */
static size_t slots_of(const km_pair *points, double size) {
  if (points->y) return panel_count(points->m) < CHUNKS ? panel_count(points->m) : CHUNKS;
  const double fit = most_accumulators / size;
  if (fit >= KM_WORKERS) return KM_WORKERS;
  return fit > FEWEST_WORKERS ? (size_t) fit : FEWEST_WORKERS;
}

static size_t pairs_of(const walk *w, size_t worker) {
  if (w->symmetric) return share(w->row_panels * (w->row_panels + 1) / 2, w->chunks, worker);
  return share(w->row_panels, w->groups, worker / w->chunks) *
         share(w->column_panels, w->chunks, worker % w->chunks);
}

/* Row and column, in panels, of the worker's pair number `index`. */
static void locate(const walk *w, size_t worker, size_t index, size_t *row, size_t *column) {
  if (w->symmetric) {
    size_t left = start(w->row_panels * (w->row_panels + 1) / 2, w->chunks, worker) + index;
    size_t i = 0;
    for (; left >= w->row_panels - i; i++) left -= w->row_panels - i;
    *row = i;
    *column = i + left;
    return;
  }
  const size_t group = worker / w->chunks, chunk = worker % w->chunks;
  const size_t first = start(w->column_panels, w->chunks, chunk);
  const size_t width = share(w->column_panels, w->chunks, chunk);
  *row = start(w->row_panels, w->groups, group) + index / width;
  *column = first + index % width;
}

/* At most `most` points from number `first`. */
static point_set part(const point_set *set, size_t d, size_t first, size_t most) {
  const size_t left = set->count - first;
  return (point_set){set->points + first * d, set->half_norms ? set->half_norms + first : NULL,
                     left < most ? left : most};
}

/* The panel pair (row, column), in tiles of KM_TILE_ROWS rows that leave room in the L1 cache. */
static void run_pair(const walk *w, size_t worker, size_t row, size_t column) {
  const size_t j0 = column * PANEL;
  tile_job job = {.y = part(&w->y, w->d, j0, PANEL), .d = w->d,
                  .k = w->tiles + worker * KM_TILE_ROWS * KM_TILE_COLS};
  for (size_t i0 = row * PANEL; i0 < (row + 1) * PANEL && i0 < w->x.count; i0 += KM_TILE_ROWS) {
    job.x = part(&w->x, w->d, i0, KM_TILE_ROWS);
    const km_tile tile = {i0, j0, job.x.count, job.y.count, w->symmetric && row != column, job.k};
    w->simd->tile(w->kernel, &job);
    w->consume(&tile, w->sink, worker);
  }
}

static void run_pairs(const walk *w, size_t worker, size_t first, size_t last) {
  const size_t count = pairs_of(w, worker);
  if (last > count) last = count;
  size_t row = 0, column = 0;
  for (size_t index = first; index < last; index++) {
    if (index == first || !w->symmetric)
      locate(w, worker, index, &row, &column);
    else if (++column == w->row_panels)
      column = ++row;
    run_pair(w, worker, row, column);
  }
  atomic_thread_fence(memory_order_seq_cst); /* what `store` streamed is seen by other threads */
}

/* cost: operations of the consumer on one value. */
static void run(walk *w, double cost, km_poll poll) {
  const size_t workers = w->chunks * w->groups;
  const double pair = (double) (PANEL * PANEL) * ((double) w->d + exp_cost + cost);
  const double at_once = panel_work * (double) w->simd->lanes / pair;
  const size_t step = 1 + (size_t) (at_once / (double) workers);
  size_t longest = 0;
  for (size_t worker = 0; worker < workers; worker++)
    if (pairs_of(w, worker) > longest) longest = pairs_of(w, worker);
  for (size_t first = 0; first < longest; first += step) {
    const size_t last = first + step < longest ? first + step : longest;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(w, workers, first, last) schedule(static) \
    num_threads(km_threads(pair * (double) (workers * (last - first))))
#endif
    for (size_t worker = 0; worker < workers; worker++) run_pairs(w, worker, first, last);
    if (poll) poll();
  }
}

/* slots: what slots_of gave. */
static void walk_tiles(const km_kernel *kernel, const km_pair *points, size_t slots, double cost,
                       km_consumer consume, void *sink, double *work, km_poll poll) {
  walk w = {.kernel = kernel, .simd = simd(), .d = points->d, .symmetric = !points->y,
            .chunks = slots, .consume = consume, .sink = sink};
  work = aligned(work);
  w.x = w.y = pack(&w, points->x, points->n, &work);
  if (points->y) w.y = pack(&w, points->y, points->m, &work);
  if (!near_centre(&w.y)) w.x.half_norms = w.y.half_norms = NULL;
  w.row_panels = panel_count(w.x.count);
  w.column_panels = panel_count(w.y.count);
  w.groups = w.symmetric ? 1 : KM_WORKERS / slots;
  w.tiles = work;
  run(&w, cost, poll);
}

size_t km_walk_work(const km_pair *points) {
  const size_t rows = round_up(points->n, GROUP), columns = round_up(points->m, GROUP);
  return (rows + (points->y ? columns : 0)) * (points->d + 1) +
         KM_WORKERS * KM_TILE_ROWS * KM_TILE_COLS + 8;
}

void km_walk(const km_kernel *kernel, const km_pair *points, km_consumer consume, void *sink,
             double *work, km_poll poll) {
  walk_tiles(kernel, points, slots_of(points, 1), consumer_cost, consume, sink, work, poll);
}

/*
 * Accumulators of a fold: in each slot a padded x columns matrix, `group` columns together by rows.
 * Few columns are treated one by one (group 1), more in groups of two vectors, v packed likewise.
 */
typedef struct {
  const arithmetic *simd;
  const km_pair *points;
  const double *u, *v;
  size_t p, group, padded, slots, size;
  double *sums;
} sums_sink;

static size_t second_count(const km_pair *points) { return points->y ? points->m : points->n; }

/* Columns with those that fill the last group, whatever the instruction set. */
static size_t column_room(size_t p) { return p < FEW_COLUMNS ? p : round_up(p, MOST_TOGETHER); }

static size_t sums_size(const km_pair *points, size_t p) {
  return round_up(points->n, PANEL) * column_room(p);
}

static size_t sums_work(const km_pair *points, size_t p) {
  const size_t size = sums_size(points, p);
  return km_walk_work(points) + slots_of(points, (double) size) * size + 8;
}

static sums_sink sums_start(const km_pair *points, size_t p, double *work) {
  sums_sink sink = {.simd = simd(), .points = points, .p = p, .group = 1};
  if (p >= FEW_COLUMNS) sink.group = 2 * sink.simd->lanes;
  sink.padded = round_up(points->n, PANEL);
  sink.size = sums_size(points, p);
  sink.slots = slots_of(points, (double) sink.size);
  sink.sums = aligned(work + km_walk_work(points));
  const size_t slots = sink.slots, size = sink.size;
  double *sums = sink.sums;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(slots, size, sums) schedule(static) \
    num_threads(km_threads((double) (slots * size)))
#endif
  for (size_t slot = 0; slot < slots; slot++) memset(sums + slot * size, 0, size * sizeof *sums);
  return sink;
}

/* out (n x p): rows i0 .. i1-1 of the accumulators, added in their order. */
static void add_slots(const sums_sink *sink, size_t i0, size_t i1, double *out) {
  const size_t n = sink->points->n, group = sink->group;
  for (size_t c = 0; c < sink->p; c++) {
    const double *sums = sink->sums + c / group * group * sink->padded + c % group;
    for (size_t i = i0; i < i1; i++) out[i + c * n] = 0;
    for (size_t slot = 0; slot < sink->slots; slot++)
      for (size_t i = i0; i < i1; i++) out[i + c * n] += sums[slot * sink->size + i * group];
  }
}

static void sums_end(const sums_sink *sink, double *out) {
  const size_t n = sink->points->n;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(sink, n, out) schedule(static) \
    num_threads(km_threads((double) (sink->slots * sink->size)))
#endif
  for (size_t i = 0; i < n; i += PANEL) add_slots(sink, i, n - i < PANEL ? n : i + PANEL, out);
}

static void add_sums(const km_tile *tile, void *to, size_t worker) {
  const sums_sink *sink = to;
  double *sums = sink->sums + worker % sink->slots * sink->size;
  sink->simd->sums(tile->k, tile->ni, sums + tile->i0, tile->mirrored ? sums + tile->j0 : NULL);
}

size_t km_fold_rows_work(const km_pair *points) { return sums_work(points, 1); }

void km_fold_rows(const km_kernel *kernel, const km_pair *points, double *sums, double *work,
                  km_poll poll) {
  sums_sink sink = sums_start(points, 1, work);
  walk_tiles(kernel, points, sink.slots, 2, add_sums, &sink, work, poll);
  sums_end(&sink, sums);
}

/* Rows j0 .. j0+nj-1 of a column of v; at the border copied to `whole` with zeros below. */
static const double *segment(const double *v, const km_tile *tile, double *whole) {
  if (tile->nj == KM_TILE_COLS) return v + tile->j0;
  memset(whole, 0, KM_TILE_COLS * sizeof *whole);
  memcpy(whole, v + tile->j0, tile->nj * sizeof *whole);
  return whole;
}

static void add_columns(const km_tile *tile, void *to, size_t worker) {
  const sums_sink *sink = to;
  double whole[KM_TILE_COLS];
  for (size_t c = 0; c < sink->p; c++) {
    const double *v = sink->v + c * second_count(sink->points);
    double *sums = sink->sums + worker % sink->slots * sink->size + c * sink->padded;
    sink->simd->products(tile->k, tile->ni, v + (tile->mirrored ? tile->i0 : 0),
                         segment(v, tile, whole), sums + tile->i0,
                         tile->mirrored ? sums + tile->j0 : NULL);
  }
}

static void add_groups(const km_tile *tile, void *to, size_t worker) {
  const sums_sink *sink = to;
  double *sums = sink->sums + worker % sink->slots * sink->size;
  for (size_t c = 0; c < sink->p; c += sink->group)
    sink->simd->block_products(tile, sink->v + c * second_count(sink->points),
                               sums + c * sink->padded);
}

/* packed: v (m x p) with `group` columns together by rows, zeros after the last column. */
static void pack_columns(const double *v, size_t m, size_t p, size_t group, double *packed) {
  for (size_t c = 0; c < round_up(p, group); c++) {
    double *to = packed + c / group * group * m + c % group;
    for (size_t j = 0; j < m; j++) to[j * group] = c < p ? v[j + c * m] : 0;
  }
}

size_t km_fold_apply_work(const km_pair *points, size_t p) {
  const size_t packed_v = p < FEW_COLUMNS ? 0 : second_count(points) * column_room(p);
  return sums_work(points, p) + packed_v;
}

void km_fold_apply(const km_kernel *kernel, const km_pair *points, const double *v, size_t p,
                   double *out, double *work, km_poll poll) {
  sums_sink sink = sums_start(points, p, work);
  sink.v = v;
  if (sink.group > 1) {
    double *packed_v = sink.sums + sink.slots * sink.size;
    pack_columns(v, second_count(points), p, sink.group, packed_v);
    sink.v = packed_v;
  }
  walk_tiles(kernel, points, sink.slots, 2 * (double) p,
             sink.group > 1 ? add_groups : add_columns, &sink, work, poll);
  sums_end(&sink, out);
}

static void add_forms(const km_tile *tile, void *to, size_t worker) {
  const sums_sink *sink = to;
  const size_t n = sink->points->n, m = second_count(sink->points);
  const double times = tile->mirrored ? 2 : 1;
  double whole[KM_TILE_COLS];
  for (size_t c = 0; c < sink->p; c++)
    sink->sums[worker * sink->p + c] +=
        times * sink->simd->form(tile->k, tile->ni, sink->u + tile->i0 + c * n,
                                 segment(sink->v + c * m, tile, whole));
}

size_t km_fold_quad_work(const km_pair *points, size_t p) {
  return km_walk_work(points) + KM_WORKERS * p;
}

void km_fold_quad(const km_kernel *kernel, const km_pair *points, const double *u, const double *v,
                  size_t p, double *out, double *work, km_poll poll) {
  double *sums = work + km_walk_work(points);
  sums_sink sink = {.simd = simd(), .points = points, .u = u, .v = v, .p = p, .sums = sums};
  memset(sums, 0, KM_WORKERS * p * sizeof *sums);
  walk_tiles(kernel, points, slots_of(points, 1), (double) p, add_forms, &sink, work, poll);
  for (size_t c = 0; c < p; c++) {
    out[c] = 0;
    for (size_t worker = 0; worker < KM_WORKERS; worker++) out[c] += sums[worker * p + c];
  }
}

/* The pages of a large new matrix cost more than its values; large pages are cheaper. */
static void ask_huge_pages(double *k, size_t length) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const uintptr_t page = 2097152;
  const uintptr_t from = ((uintptr_t) k + page - 1) / page * page;
  const uintptr_t to = (uintptr_t) (k + length) / page * page;
  if (to > from) (void) madvise((void *) from, to - from, MADV_HUGEPAGE);
#else
  (void) k;
  (void) length;
#endif
}

typedef struct {
  const arithmetic *simd;
  size_t n;
  int symmetric, large;
  double *k;
} store_sink;

static void store_tile(const km_tile *tile, void *to, size_t worker) {
  const store_sink *sink = to;
  double *columns = sink->k + tile->i0 + tile->j0 * sink->n;
  double *rows = sink->k + tile->j0 + tile->i0 * sink->n;
  (void) worker;
  sink->simd->store(tile, sink->n, sink->large,
                    sink->symmetric && !tile->mirrored ? NULL : columns,
                    sink->symmetric ? rows : NULL);
}

size_t km_fold_store_work(const km_pair *points) { return km_walk_work(points); }

void km_fold_store(const km_kernel *kernel, const km_pair *points, double *k, double *work,
                   km_poll poll) {
  const size_t length = points->n * second_count(points);
  store_sink sink = {simd(), points->n, !points->y, length > cache, k};
  ask_huge_pages(k, length);
  walk_tiles(kernel, points, slots_of(points, 1), 16, store_tile, &sink, work, poll);
}

void km_diagonal(const km_kernel *kernel, const double *x, size_t n, size_t d, double *diagonal) {
  double value = 0;
  switch (kernel->family) {
  case KM_POLY: simd()->diagonal(kernel, x, n, d, diagonal); return;
  case KM_RBF:
  case KM_LAPLACE_L1:
  case KM_LAPLACE_L2:
  case KM_MATERN32:
  case KM_MATERN52: value = 1; break;
  case KM_ENERGY:
  case KM_SQDIST:
  case KM_L1DIST: break;
  }
  for (size_t i = 0; i < n; i++) diagonal[i] = value;
}

void km_exp(const double *x, size_t n, double *out) { simd()->exp_all(x, n, out); }

size_t km_tile_between(const km_tile *tile, double low, double high, double *inside, size_t *below,
                       double *least) {
  return simd()->between(tile, low, high, inside, below, least);
}
