#include "apps/sketch.h"
#include "core/dense.h"
#include "core/isa.h"
#include "core/parts.h"
#include "core/scratch.h"

#include <string.h>

/*
 * One pass over the rows, in panels that a number of workers evaluate tile by tile: rows of a tile
 * are rows of the data, its columns landmarks, so that first sums are sums of a tile's rows, and
 * the landmarks alone decide how a value is evaluated. For second sums a panel's values are kept,
 * in bands of landmarks as km_multiply reads them, and then multiplied: each block of the result by
 * whoever is free, over the panel's rows in chunks.
 *
 * n m (2 d + 45) flops for first sums (RBF), n m^2 more for second ones, 2 n m m' for cross ones.
 * Memory: the packed landmarks, m (d + 1), and whatever n a panel: some 4 MB and
 * for a side of products 4 MB of values (512 m doubles where m > 1,000).
 *
 * Panels, workers and chunks depend on the sizes alone; what the workers have is added in order.
 */

enum {
  PACK = KM_PACK,
  PANEL = KM_TILE_COLS,
  WORKERS = 64,      /* of a panel for first sums */
  FEW_WORKERS = 32,  /* for products */
  RUN = 384,         /* rows of a worker in a panel for first sums, at most */
  SHORT_RUN = 64,    /* for products */
  STEP = 192,        /* rows packed at once, read in long pieces; SHORT_RUN of many columns */
  FEW_COLUMNS = 64,
  FEWEST_ROWS = 512, /* of a panel for products */
  BAND = KM_BAND,    /* landmarks side by side */
  COLUMNS = 8,       /* of a patch, as km_multiply has it */
  VECTOR = 8,        /* doubles that are copied together */
  HIGH = 96,         /* rows of a block of the result */
  WIDE = 96,         /* its columns */
  CHUNK = 512,       /* rows of a panel that are multiplied at a time */
  EDGES = 2
};

static const size_t most_values = 524288; /* doubles of a panel's values: 4 MB */

/* The rows of one variable, seen through its landmarks. */
typedef struct {
  const km_source *source;
  km_point_set landmarks;
  size_t m;        /* landmarks */
  size_t step;     /* rows that a worker packs at once */
  double *points;  /* packed landmarks, half norms behind them */
  double *rows;    /* a worker: a step of packed rows, half norms behind them */
  double *values;  /* of a panel: bands x depth x BAND, or NULL */
} side;

typedef struct {
  const km_arithmetic *simd;
  side sides[2];
  size_t count;          /* of sides */
  size_t n;              /* rows */
  double cost;           /* operations on a row, but for products */
  const double *weights;
  size_t run, workers, depth; /* rows of a worker in a panel, workers, rows of a panel */
  size_t room;           /* of a tile */
  double *tiles;         /* one a worker */
  /* First sums, by bins. */
  const km_runs *bins;   /* or NULL */
  double *sums;          /* m x bins */
  double *edges;         /* a worker: m for its first bin, m for its last, if others share them */
  /* Products. */
  double *weighted;      /* values of the first side times weights, if it is the other one too */
  double *product;       /* m x m of the second side */
  size_t high, wide;     /* blocks in a column and in a row */
  int lower;             /* blocks above the diagonal are not wanted */
} sketch;

/* --- Layout ------------------------------------------------------------------ */

/*
 * Rooms grow with every size, though the panels that use them need not: a panel of more landmarks
 * has fewer rows, and one row more can make two panels of one.
 */
typedef struct {
  size_t workers, rows; /* of a panel, at most */
  size_t step;          /* of a worker, at most */
} largest;

static size_t band_room(const largest *most, size_t m) {
  const size_t wide = round_up(m, BAND);
  return smaller(wide * most->rows,
                 larger(most_values + BAND * FEW_WORKERS * SHORT_RUN, wide * FEWEST_ROWS));
}

static void lay_out_side(const sketch *s, side *part, const largest *most, int products,
                         km_scratch *scratch) {
  const size_t d = part->source->d, norms = km_norms(&part->source->kernel);
  part->m = part->source->n;
  part->step = d > FEW_COLUMNS ? SHORT_RUN : smaller(STEP, s->run);
  part->points = take_aligned(scratch, round_up(part->m, PACK) * (d + norms));
  const size_t rows =
    larger(most->step * (smaller(d, FEW_COLUMNS) + norms), SHORT_RUN * (d + norms));
  part->rows = take_aligned(scratch, most->workers * rows);
  part->values = products ? take_aligned(scratch, band_room(most, part->m)) : NULL;
}

/* s->sides, count, n are set. */
static size_t lay_out(sketch *s, int bins, int products, int weighted, double *work) {
  km_scratch scratch = {work, 0};
  const size_t m = larger(s->sides[0].source->n, s->sides[s->count - 1].source->n);
  const size_t fit = most_values / m / SHORT_RUN * SHORT_RUN;
  const size_t panels = larger(1, pieces(s->n, WORKERS * RUN));
  s->run = products ? SHORT_RUN : larger(SHORT_RUN, round_up(s->n / panels / WORKERS + 1, PACK));
  s->depth = products ? smaller(FEW_WORKERS * SHORT_RUN, larger(FEWEST_ROWS, fit))
                      : WORKERS * s->run;
  s->depth = smaller(s->depth, round_up(s->n, s->run));
  s->workers = pieces(s->depth, s->run);
  s->cost = 0;
  s->room = 0;
  const size_t workers = smaller(products ? FEW_WORKERS : WORKERS, pieces(s->n, SHORT_RUN));
  const largest most = {.workers = workers, .rows = workers * SHORT_RUN,
                        .step = products ? 0 : smaller(STEP, round_up(s->n, SHORT_RUN))};
  for (size_t i = 0; i < s->count; i++) {
    lay_out_side(s, s->sides + i, &most, products, &scratch);
    const km_source *source = s->sides[i].source;
    s->room = larger(s->room, km_tile_room(&source->kernel));
    s->cost += (double) s->sides[i].m * km_value_cost(&source->kernel, source->d);
  }
  s->tiles = take_aligned(&scratch, workers * s->room);
  s->edges = bins ? take(&scratch, workers * EDGES * s->sides[0].source->n) : NULL;
  s->weighted =
    products && weighted && s->count == 1 ? take_aligned(&scratch, band_room(&most, m)) : NULL;
  return scratch.used;
}

/* --- Kernel values ----------------------------------------------------------- */

static void pack_landmarks(side *part) {
  const km_source *source = part->source;
  const size_t padded = round_up(part->m, PACK), d = source->d;
  const int norms = km_takes_norms(&source->kernel);
  double *half_norms = part->points + padded * d;
  for (size_t i = 0; i < part->m; i += PACK)
    km_pack_points(source, source->x, part->m, i, part->points + i * d);
  if (norms) km_half_norms(&source->kernel, part->points, padded, d, padded, half_norms);
  part->landmarks = (km_point_set){part->points, norms ? half_norms : NULL, part->m, padded};
  if (!km_near_center(&source->kernel, &part->landmarks)) part->landmarks.half_norms = NULL;
}

/* Rows of a worker, r0 .. r1 - 1. */
typedef struct {
  size_t worker, r0, r1;
} share;

/* Where a worker adds to the sums of a bin: at its edges others do too. */
static double *bin_sums(const sketch *s, const share *own, size_t bin) {
  const size_t m = s->sides[0].m;
  double *edges = s->edges + own->worker * EDGES * m;
  if (km_run_start(s->bins, bin) < own->r0) return edges;
  if ((size_t) s->bins->ends[bin] > own->r1) return edges + m;
  return s->sums + bin * m;
}

static void add_to_bins(const sketch *s, const share *own, const km_tile *tile) {
  const km_runs *bins = s->bins;
  size_t bin = bins->count > 1 ? km_run_of(bins, tile->i0) : 0;
  for (size_t i = 0; i < tile->ni; bin++) {
    const size_t last = smaller(tile->ni, (size_t) bins->ends[bin] - tile->i0);
    if (last == i) continue;
    double columns[KM_TILE_COLS] = {0}, *sums = bin_sums(s, own, bin) + tile->j0;
    s->simd->add_rows(tile->k + i * KM_TILE_COLS, last - i,
                      s->weights ? s->weights + tile->i0 + i : NULL, columns);
    for (size_t j = 0; j < tile->nj; j++) sums[j] += columns[j];
    i = last;
  }
}

/* Rows of a tile into the bands of a panel that begins with row p0. times: of each row, or NULL. */
static void keep(const sketch *s, const side *part, const km_tile *tile, size_t p0,
                 const double *times, double *values) {
  const size_t end = smaller(PANEL, round_up(part->m, VECTOR) - tile->j0);
  for (size_t j = 0; j < end; j += VECTOR) {
    const size_t column = tile->j0 + j;
    double *to = values + column / BAND * BAND * s->depth + (tile->i0 - p0) * BAND + column % BAND;
    const double *from = tile->k + j;
    for (size_t i = 0; i < tile->ni; i++, to += BAND, from += KM_TILE_COLS) {
      if (times)
        for (size_t v = 0; v < VECTOR; v++) to[v] = times[i] * from[v];
      else
        memcpy(to, from, VECTOR * sizeof *to);
    }
  }
}

static void consume(const sketch *s, size_t which, const share *own, const km_tile *tile,
                    size_t p0) {
  const side *part = s->sides + which;
  const double *times = s->weights ? s->weights + tile->i0 : NULL;
  if (s->bins && which == 0) add_to_bins(s, own, tile);
  if (!part->values) return;
  if (s->weighted) keep(s, part, tile, p0, times, s->weighted);
  keep(s, part, tile, p0, s->count > 1 && which == 0 ? times : NULL, part->values);
}

/* A worker's rows of a panel that begins with row p0, for one side. */
static void evaluate(const sketch *s, size_t which, const share *own, size_t p0) {
  const side *part = s->sides + which;
  const km_source *source = part->source;
  const size_t d = source->d, step = part->step;
  double *rows = part->rows + own->worker * step * (d + km_norms(&source->kernel));
  double *half_norms = rows + step * d, *k = s->tiles + own->worker * s->room;
  const int near = part->landmarks.half_norms != NULL;
  for (size_t r = own->r0; r < own->r1; r += step) {
    const size_t count = smaller(step, own->r1 - r);
    for (size_t i = 0; i < count; i += PACK)
      km_pack_points(source, source->y, s->n, r + i, rows + i * d);
    if (near)
      km_half_norms(&source->kernel, rows, round_up(count, PACK), d, step, half_norms);
    for (size_t j = 0; j < part->m; j += PANEL)
      for (size_t i = 0; i < count; i += KM_TILE_ROWS) {
        const km_tile_job job = {
          {rows + i * d, near ? half_norms + i : NULL, smaller(KM_TILE_ROWS, count - i),
           step},
          {part->points + j * d, near ? part->landmarks.half_norms + j : NULL,
           smaller(PANEL, part->m - j), part->landmarks.apart},
          d, d, k};
        const km_tile tile = {r + i, j, job.x.count, job.y.count, 0, k};
        km_tile_values(&source->kernel, &job);
        consume(s, which, own, &tile, p0);
      }
  }
}

static share share_of(const sketch *s, size_t worker, size_t p0, size_t p1) {
  const size_t r0 = p0 + worker * s->run;
  return (share){worker, smaller(r0, p1), smaller(r0 + s->run, p1)};
}

static void add_to(double *sums, const double *edge, size_t m) {
  for (size_t j = 0; j < m; j++) sums[j] += edge[j];
}

/* What the workers have in bins that they share. */
static void add_edges(const sketch *s, size_t p0, size_t p1) {
  const size_t m = s->sides[0].m;
  for (size_t worker = 0; worker < s->workers; worker++) {
    const share own = share_of(s, worker, p0, p1);
    if (own.r0 == own.r1) return;
    const size_t first = km_run_of(s->bins, own.r0), last = km_run_of(s->bins, own.r1 - 1);
    const double *edges = s->edges + worker * EDGES * m;
    if (km_run_start(s->bins, first) < own.r0) add_to(s->sums + first * m, edges, m);
    if (km_run_start(s->bins, last) >= own.r0 && (size_t) s->bins->ends[last] > own.r1)
      add_to(s->sums + last * m, edges + m, m);
  }
}

/* Rows p0 .. p1 - 1. */
static void evaluate_panel(const sketch *s, size_t p0, size_t p1) {
  const size_t workers = s->workers, edges = EDGES * s->sides[0].m;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(s, p0, p1) firstprivate(workers, edges) \
    schedule(dynamic) num_threads(km_threads(s->cost * (double) (p1 - p0)))
#endif
  for (size_t worker = 0; worker < workers; worker++) {
    const share own = share_of(s, worker, p0, p1);
    if (s->bins) memset(s->edges + worker * edges, 0, edges * sizeof *s->edges);
    for (size_t which = 0; which < s->count; which++) evaluate(s, which, &own, p0);
  }
  if (s->bins) add_edges(s, p0, p1);
}

/* --- Products ---------------------------------------------------------------- */

/* C += sums, what belongs to C. sums: BAND x COLUMNS, whose first row and column are i and j. */
static void add_patch(const sketch *s, size_t i, size_t j, const double *sums) {
  const size_t m = s->sides[0].m, end = smaller(COLUMNS, s->sides[s->count - 1].m - j);
  const size_t rows = smaller(BAND, m - i);
  for (size_t column = 0; column < end; column++) {
    double *c = s->product + i + (j + column) * m;
    SIMD
    for (size_t row = s->lower && j + column > i ? j + column - i : 0; row < rows; row++)
      c[row] += sums[row + column * BAND];
  }
}

/* Block t of the product: what a panel of `depth` rows adds. */
static void add_block(const sketch *s, size_t t, size_t depth) {
  const side *down = s->sides, *across = s->sides + s->count - 1;
  const double *a = s->weighted ? s->weighted : down->values, *b = across->values;
  const size_t i0 = t % s->high * HIGH, j0 = t / s->high * WIDE;
  const size_t i1 = smaller(down->m, i0 + HIGH), j1 = smaller(across->m, j0 + WIDE);
  for (size_t k = 0; k < depth; k += CHUNK) {
    const size_t length = smaller(CHUNK, depth - k);
    for (size_t j = j0; j < j1; j += COLUMNS) {
      const factor at = {b + j / BAND * BAND * s->depth + k * BAND + j % BAND, BAND, 1};
      for (size_t i = i0; i < i1; i += BAND) {
        if (s->lower && i + BAND <= j) continue;
        double sums[BAND * COLUMNS] = {0};
        km_multiply(COLUMNS, BAND, length, at, a + i * s->depth + k * BAND, BAND, sums, BAND);
        add_patch(s, i, j, sums);
      }
    }
  }
}

static void add_products(const sketch *s, size_t depth) {
  const size_t blocks = s->high * s->wide;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(s, depth) firstprivate(blocks) schedule(dynamic) \
    num_threads(km_threads(2 * (double) depth * (double) s->sides[0].m * \
                           (double) s->sides[s->count - 1].m / \
                           ((s->lower ? 2 : 1) * KM_DENSE_WORTH)))
#endif
  for (size_t t = 0; t < blocks; t++) add_block(s, blocks - 1 - t, depth);
}

/* --- The pass ---------------------------------------------------------------- */

/* What stands beside the last landmarks of a band is never written. */
static void clear(const sketch *s, size_t m, double *values) {
  if (values) memset(values, 0, round_up(m, BAND) * s->depth * sizeof *values);
}

static void run(sketch *s, km_poll poll) {
  s->high = pieces(s->sides[0].m, HIGH);
  s->wide = pieces(s->sides[s->count - 1].m, WIDE);
  clear(s, s->sides[0].m, s->weighted);
  for (size_t i = 0; i < s->count; i++) {
    pack_landmarks(s->sides + i);
    clear(s, s->sides[i].m, s->sides[i].values);
  }
  for (size_t p0 = 0; p0 < s->n; p0 += s->depth) {
    const size_t p1 = smaller(s->n, p0 + s->depth);
    if (poll) poll();
    evaluate_panel(s, p0, p1);
    if (s->product) add_products(s, p1 - p0);
  }
}

static sketch one_side(const km_source *source) {
  return (sketch){.simd = km_simd(), .sides = {{.source = source}}, .count = 1, .n = source->m};
}

size_t km_sketch_sums_work(const km_source *source, int weighted, int second) {
  sketch s = one_side(source);
  return lay_out(&s, 1, second, weighted, NULL);
}

void km_sketch_sums(const km_source *source, const double *weights, double *first, double *second,
                    double *work, km_poll poll) {
  const size_t m = source->n;
  const int end = (int) source->m;
  const km_runs all = {1, &end, NULL};
  sketch s = one_side(source);
  lay_out(&s, 1, second != NULL, weights != NULL, work);
  s.weights = weights;
  s.bins = &all;
  s.sums = first;
  s.product = second;
  s.lower = 1;
  memset(first, 0, m * sizeof *first);
  if (second) memset(second, 0, m * m * sizeof *second);
  run(&s, poll);
  if (second) km_mirror(m, second);
}

static sketch two_sides(const km_source *source, const km_source *other) {
  sketch s = one_side(source);
  s.sides[1].source = other;
  s.count = 2;
  return s;
}

size_t km_sketch_cross_work(const km_source *source, const km_source *other) {
  sketch s = two_sides(source, other);
  return lay_out(&s, 0, 1, 0, NULL);
}

void km_sketch_cross(const km_source *source, const km_source *other, const double *weights,
                     double *cross, double *work, km_poll poll) {
  sketch s = two_sides(source, other);
  lay_out(&s, 0, 1, 0, work);
  s.weights = weights;
  s.product = cross;
  memset(cross, 0, source->n * other->n * sizeof *cross);
  run(&s, poll);
}

size_t km_sketch_bins_work(const km_source *source) {
  sketch s = one_side(source);
  return lay_out(&s, 1, 0, 0, NULL);
}

void km_sketch_bins(const km_source *source, const km_runs *bins, double *sums, double *work,
                    km_poll poll) {
  sketch s = one_side(source);
  lay_out(&s, 1, 0, 0, work);
  s.weights = bins->weights;
  s.bins = bins;
  s.sums = sums;
  memset(sums, 0, source->n * bins->count * sizeof *sums);
  run(&s, poll);
}
