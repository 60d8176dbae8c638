#include "core/tile.h"
#include "core/isa.h"
#include "core/parts.h"
#include "core/scratch.h"

#include <float.h>
#include <math.h>
#include <string.h>

/*
 * How work is cut. These words have one meaning each in core and apps:
 *   tile    a rectangle of a matrix that is treated at once, in cache
 *   panel   neighboring points, rows or columns: a side of tiles
 *   pack    what stands together in memory in the order it is read: points, feature-major
 *   patch   results held in registers, some rows by some vectors
 *   strip   some vectors of one row, or of one column
 *   chunk   things that are treated together because they fit a cache
 *   block   things that belong together: columns multiplied at once, values of lambda, points,
 *           permutations
 *   worker  what one thread does at a time; how many there are depends on the sizes alone
 *   share   what is dealt to one worker
 *   slice   the scratch of one worker
 *   slot    an accumulator; workers may have slots of their own or take turns at one
 */

/*
 * Points are centered, scaled and packed, feature-major, zeros after the last. A tile is n_i x n_j
 * kernel values of 2 d + 45 flops (RBF by inner products) or 3 d + 45 (by differences). Inner
 * products are used for RBF alone, and only if the second set lies near the center (half norms <=
 * 32): there they are off by some 35 eps sqrt(d) in the exponent (2.4e-13 was seen at d = 1,000),
 * and as the second set alone decides, a row of a rectangular walk never depends on other rows.
 *
 * Tiles are dealt to workers by the sizes alone; a worker adds up its tiles in order in
 * accumulators of its own, which are then added in the order of the workers: the same bits for any
 * number of threads. A symmetric walk gives each worker a share of the list of panel pairs I <= J.
 * A rectangular walk has a worker for each share of the columns (cut by m alone) in each share of
 * the rows; slots belong to shares of the columns, so each row is summed by m alone. With a slot
 * for each worker there is one share of the rows.
 *
 * Memory: (n + m)(d + 1) doubles and 32 tiles; accumulators of 32 n p (beyond 64 MB, as many as fit
 * but at least 8) in a symmetric walk, of 8 n p at most in a rectangular one.
 */

enum {
  PACK = KM_PACK,
  PANEL = KM_TILE_COLS,
  COLUMN_SHARES = 8, /* at most, in a rectangular walk */
  TEAMS = 2 * KM_WORKERS, /* shares of the panels in a walk by rounds, but for short walks */
  TEAM_PANELS = 16,       /* and long ones: at most so many panels a share */
  FEWEST_WORKERS = 8, /* at least, in a symmetric walk */
  PIECES = 24         /* of a worker's share, at most */
};

static const double most_accumulators = 8388608; /* doubles: 64 MB */
static const double poll_work = 134217728;       /* operations a lane between two polls */

typedef struct {
  const km_source *source;
  const km_arithmetic *simd;
  km_point_set x, y;
  int symmetric;
  size_t row_panels, column_panels;
  size_t row_shares, column_shares; /* 1 and the number of workers in a symmetric walk */
  int alone;                        /* on one thread */
  double *x_room, *y_room;          /* packed points */
  size_t room;                      /* of a tile */
  double *tiles;                    /* one for each worker that has work */
  km_consumer consume;
  double cost;                      /* operations of the consumer on one value */
  void *sink;
} walk;

void km_pack_points(const km_source *source, const double *x, size_t n, size_t first,
                    double *points) {
  const size_t d = source->d, count = smaller(PACK, n - first);
  for (size_t l = 0; l < d; l++) {
    for (size_t i = 0; i < count; i++)
      points[l * PACK + i] = (x[first + i + l * n] - source->center[l]) * source->scale[l];
    for (size_t i = count; i < PACK; i++) points[l * PACK + i] = 0;
  }
}

/* No more than there are panel pairs, as a worker without any needs none. */
static size_t count_tiles(const km_source *source) {
  const size_t rows = pieces(source->n, PANEL), columns = pieces(source->m, PANEL);
  return smaller(KM_WORKERS, source->y ? rows * columns : rows * (rows + 1) / 2);
}

static size_t lay_out(walk *w, double *work) {
  const km_source *source = w->source;
  const size_t wide = source->d + km_norms(&source->kernel);
  km_scratch scratch = {work, 0};
  if (source->x) w->x_room = take_aligned(&scratch, round_up(source->n, PACK) * wide);
  if (source->y) w->y_room = take_aligned(&scratch, round_up(source->m, PACK) * wide);
  w->room = km_tile_room(&source->kernel);
  w->tiles = take_aligned(&scratch, count_tiles(source) * w->room);
  return scratch.used;
}

/* Packs a set; half norms are added where the kernel takes them. */
static km_point_set pack(const walk *w, const double *x, size_t n, double *points) {
  const size_t d = w->source->d, padded = round_up(n, PACK);
  const int norms = km_takes_norms(&w->source->kernel);
  double *half_norms = points + padded * d;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(w, x, n, points, half_norms) \
    firstprivate(d, padded, norms) schedule(dynamic, 8) \
    num_threads(w->alone ? 1 : km_threads((double) n * (double) d))
#endif
  for (size_t i = 0; i < padded; i += PACK) {
    km_pack_points(w->source, x, n, i, points + i * d);
    if (norms)
      km_half_norms(&w->source->kernel, points + i * d, PACK, d, padded, half_norms + i);
  }
  return (km_point_set){points, norms ? half_norms : NULL, n, padded};
}

/* The workers of a symmetric walk, the shares of columns of another. */
size_t km_walk_slots(const km_source *source, double size) {
  if (source->y) return smaller(COLUMN_SHARES, pieces(source->m, PANEL));
  const double fit = most_accumulators / size;
  if (fit >= KM_WORKERS) return KM_WORKERS;
  return fit > FEWEST_WORKERS ? (size_t) fit : FEWEST_WORKERS;
}

/* Panel pairs of a symmetric walk. */
static size_t all_pairs(const walk *w) { return w->row_panels * (w->row_panels + 1) / 2; }

size_t km_walk_workers(const km_source *source) { return count_tiles(source); }

static size_t pairs_of(const walk *w, size_t worker) {
  if (w->symmetric) return share_size(all_pairs(w), w->column_shares, worker);
  return share_size(w->row_panels, w->row_shares, worker / w->column_shares) *
         share_size(w->column_panels, w->column_shares, worker % w->column_shares);
}

/* Row and column, in panels, of the worker's pair number `index`. */
static void locate(const walk *w, size_t worker, size_t index, size_t *row, size_t *column) {
  if (w->symmetric) {
    size_t left = share_start(all_pairs(w), w->column_shares, worker) + index;
    size_t i = 0;
    for (; left >= w->row_panels - i; i++) left -= w->row_panels - i;
    *row = i;
    *column = i + left;
    return;
  }
  const size_t row_share = worker / w->column_shares, column_share = worker % w->column_shares;
  const size_t first = share_start(w->column_panels, w->column_shares, column_share);
  const size_t width = share_size(w->column_panels, w->column_shares, column_share);
  *row = share_start(w->row_panels, w->row_shares, row_share) + index / width;
  *column = first + index % width;
}

/* How a walk is cut; w->column_shares is set. */
static void deal(walk *w) {
  w->symmetric = !w->source->y;
  w->row_panels = pieces(w->source->n, PANEL);
  w->column_panels = pieces(w->source->m, PANEL);
  w->row_shares = w->symmetric ? 1 : KM_WORKERS / w->column_shares;
}

km_walk_part km_walk_part_of(const km_source *source, size_t slots, size_t worker) {
  walk w = {.source = source, .column_shares = slots};
  deal(&w);
  const size_t count = worker < w.column_shares * w.row_shares ? pairs_of(&w, worker) : 0;
  if (!count) return (km_walk_part){0};
  size_t row, column, last_row, last_column;
  locate(&w, worker, 0, &row, &column);
  locate(&w, worker, count - 1, &last_row, &last_column);
  if (w.symmetric && row < last_row) { /* from the diagonal to the end */
    column = row;
    last_column = w.column_panels - 1;
  }
  return (km_walk_part){row * PANEL, smaller((last_row + 1) * PANEL, source->n), column * PANEL,
                        smaller((last_column + 1) * PANEL, source->m)};
}

/* At most `most` points from number `first`. */
static km_point_set some_points(const km_point_set *set, size_t d, size_t first, size_t most) {
  return (km_point_set){set->points ? set->points + first * d : NULL,
                        set->half_norms ? set->half_norms + first : NULL,
                        smaller(most, set->count - first), set->apart};
}

/* A row of the tile is part of a column of the symmetric matrix. */
static void copy_tile(const double *stored, size_t n, const km_tile *tile, double *k) {
  for (size_t i = 0; i < tile->ni; i++) {
    double *row = k + i * KM_TILE_COLS;
    memcpy(row, stored + tile->j0 + (tile->i0 + i) * n, tile->nj * sizeof *k);
    for (size_t j = tile->nj; j < KM_TILE_COLS; j++) row[j] = 0;
  }
}

/* The panel pair (row, column), in tiles of KM_TILE_ROWS rows that leave room in the L1 cache.
   room: km_tile_room. */
static void run_pair(const walk *w, size_t worker, double *room, size_t row, size_t column) {
  const size_t d = w->source->d, j0 = column * PANEL;
  km_tile_job job = {.y = some_points(&w->y, d, j0, PANEL), .d = d, .wide = d, .k = room};
  for (size_t i0 = row * PANEL; i0 < (row + 1) * PANEL && i0 < w->x.count; i0 += KM_TILE_ROWS) {
    job.x = some_points(&w->x, d, i0, KM_TILE_ROWS);
    const km_tile tile = {i0, j0, job.x.count, job.y.count, w->symmetric && row != column, job.k};
    if (w->source->k)
      copy_tile(w->source->k, w->x.count, &tile, job.k);
    else
      km_tile_values(&w->source->kernel, &job);
    w->consume(&tile, w->sink, worker);
  }
}

/* The tile of a worker: so many before it have work. */
static double *tile_of(const walk *w, size_t worker) {
  size_t busy = 0;
  for (size_t before = 0; before < worker; before++) busy += pairs_of(w, before) > 0;
  return w->tiles + busy * w->room;
}

static void run_pairs(const walk *w, size_t worker, size_t first, size_t last) {
  last = smaller(last, pairs_of(w, worker));
  if (first >= last) return;
  double *room = tile_of(w, worker);
  size_t row = 0, column = 0;
  for (size_t index = first; index < last; index++) {
    if (index == first || !w->symmetric)
      locate(w, worker, index, &row, &column);
    else if (++column == w->row_panels)
      column = ++row;
    run_pair(w, worker, room, row, column);
  }
  /* What `store` streamed is seen by other threads. */
#ifdef _OPENMP
#pragma omp flush
#endif
}

/* Operations of `pairs` panel pairs at `value` a kernel value; no more than there are values. */
static inline double operations(const walk *w, size_t pairs, double value) {
  const double these = (double) pairs * (double) (PANEL * PANEL) * value;
  const double all = (double) w->x.count * (double) w->y.count * value;
  return these < all ? these : all;
}

/* Operations on a kernel value. */
static inline double value_operations(const walk *w) {
  return km_value_cost(&w->source->kernel, w->source->d) + w->cost;
}

/*
 * Shares are done whole where the threads divide the workers: what a worker adds up stays in the
 * cache of one. Others would wait for whole ones, 20 threads for 8 of 32, and do pieces: a thread
 * does the next piece of the worker that is least far, the best there is for pieces of one size,
 * max(p, pieces(w p, t)) of them one after the other for w workers of p pieces and t threads. Each
 * worker has its pairs in their order, so the bits stay.
 */
typedef struct {
  size_t done[KM_WORKERS]; /* pieces */
  int busy[KM_WORKERS];    /* a thread does the next one */
} progress;

/* A worker, or `workers` if others do all that is left. */
static size_t take_turn(progress *now, size_t workers, size_t count) {
  size_t next = workers, least = count;
#ifdef _OPENMP
#pragma omp critical(km_turn)
#endif
  {
    for (size_t worker = 0; worker < workers; worker++)
      if (!now->busy[worker] && now->done[worker] < least) {
        least = now->done[worker];
        next = worker;
      }
    if (next < workers) now->busy[next] = 1;
  }
  return next;
}

static void end_turn(progress *now, size_t worker) {
#ifdef _OPENMP
#pragma omp critical(km_turn)
#endif
  {
    now->done[worker]++;
    now->busy[worker] = 0;
  }
}

/* Pairs first .. last - 1 of every worker. */
static void run_all(const walk *w, size_t first, size_t last) {
  const size_t workers = w->column_shares * w->row_shares;
  const int threads =
    w->alone ? 1 : km_threads(operations(w, workers * (last - first), value_operations(w)));
  const size_t most = workers % (size_t) threads ? PIECES : 1;
  const size_t size = pieces(last - first, most), count = pieces(last - first, size);
  progress now = {0};
#ifdef _OPENMP
#pragma omp parallel default(none) shared(w, now) firstprivate(workers, first, last, size, count) \
    num_threads(threads)
#endif
  for (size_t worker; (worker = take_turn(&now, workers, count)) < workers;) {
    const size_t start = first + now.done[worker] * size;
    run_pairs(w, worker, start, smaller(start + size, last));
    end_turn(&now, worker);
  }
}

static void run(walk *w, km_poll poll) {
  const size_t workers = w->column_shares * w->row_shares;
  const double at_once = poll_work * (double) w->simd->lanes /
                         ((double) (PANEL * PANEL) * value_operations(w));
  const size_t step = 1 + (size_t) (at_once / (double) workers);
  size_t longest = 0;
  for (size_t worker = 0; worker < workers; worker++)
    longest = larger(longest, pairs_of(w, worker));
  for (size_t first = 0; first < longest; first += step) {
    run_all(w, first, smaller(first + step, longest));
    if (poll) poll();
  }
}

/* All panel pairs of two shares of the panels, or of one alone. */
static void run_shares(const walk *w, size_t worker, size_t teams, size_t a, size_t b) {
  const size_t panels = w->row_panels;
  for (size_t i = share_start(panels, teams, a); i < share_start(panels, teams, a + 1); i++)
    for (size_t j = a == b ? i : share_start(panels, teams, b);
         j < share_start(panels, teams, b + 1); j++)
      run_pair(w, worker, w->tiles + worker * w->room, smaller(i, j), larger(i, j));
}

/*
 * The circle method of tournaments: in each of teams - 1 rounds every share of the panels meets one
 * other. The last keeps its place, the others turn. In the last round each share meets itself.
 */
static void run_match(const walk *w, size_t match, size_t teams, size_t round) {
  const size_t circle = teams - 1, worker = match % KM_WORKERS;
  if (round == circle) {
    run_shares(w, worker, teams, 2 * match, 2 * match);
    run_shares(w, worker, teams, 2 * match + 1, 2 * match + 1);
  } else if (match == 0) {
    run_shares(w, worker, teams, round, circle);
  } else {
    run_shares(w, worker, teams, (round + match) % circle, (round + circle - match) % circle);
  }
}

/* Operations of so many matches, at most. */
static inline double match_operations(const walk *w, size_t teams, size_t count) {
  const size_t panels = pieces(w->row_panels, teams);
  return operations(w, count * panels * panels, value_operations(w));
}

static void run_rounds(walk *w, km_poll poll) {
  const size_t panels = w->row_panels;
  const size_t teams = round_up(larger(smaller(panels, TEAMS), pieces(panels, TEAM_PANELS)), 2);
  for (size_t round = 0; round < teams; round++)
    for (size_t first = 0; first < teams / 2; first += KM_WORKERS) {
      const size_t last = smaller(first + KM_WORKERS, teams / 2);
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(w, round, first) firstprivate(teams, last) \
    schedule(dynamic) num_threads(km_threads(match_operations(w, teams, last - first)))
#endif
      for (size_t match = first; match < last; match++) run_match(w, match, teams, round);
      if (poll) poll();
    }
}

size_t km_walk_work(const km_source *source) {
  walk w = {.source = source};
  return lay_out(&w, NULL);
}

/* Packs the points. */
static void set_up(walk *w, double *work) {
  const km_source *source = w->source;
  w->simd = km_simd();
  lay_out(w, work);
  if (source->k)
    w->x = w->y = (km_point_set){.count = source->n};
  else
    w->x = w->y = pack(w, source->x, source->n, w->x_room);
  if (source->y) w->y = pack(w, source->y, source->m, w->y_room);
  if (!km_near_center(&source->kernel, &w->y)) w->x.half_norms = w->y.half_norms = NULL;
  deal(w);
}

void km_walk(const km_source *source, size_t slots, double cost, km_consumer consume, void *sink,
             double *work, km_poll poll) {
  walk w = {
    .source = source, .column_shares = slots, .consume = consume, .cost = cost, .sink = sink};
  set_up(&w, work);
  run(&w, poll);
}

void km_walk_alone(const km_source *source, size_t slots, double cost, km_consumer consume,
                   void *sink, double *work) {
  walk w = {.source = source,
            .column_shares = slots,
            .alone = 1,
            .consume = consume,
            .cost = cost,
            .sink = sink};
  set_up(&w, work);
  run(&w, NULL);
}

void km_walk_rounds(const km_source *source, double cost, km_consumer consume, void *sink,
                    double *work, km_poll poll) {
  walk w = {
    .source = source, .column_shares = 1, .consume = consume, .cost = cost, .sink = sink};
  set_up(&w, work);
  run_rounds(&w, poll);
}

void km_diagonal(const km_source *source, double *diagonal) {
  const size_t n = source->n;
  if (source->k) {
    for (size_t i = 0; i < n; i++) diagonal[i] = source->k[i + i * n];
  } else {
    km_points_diagonal(source, diagonal);
  }
}

void km_column_ranges(const double *x, size_t n, size_t d, double *ends) {
  for (size_t l = 0; l < d; l++) {
    const double *column = x + l * n;
    double low = column[0], high = column[0];
    for (size_t i = 1; i < n; i++) {
      low = column[i] < low ? column[i] : low;
      high = column[i] > high ? column[i] : high;
    }
    ends[2 * l] = low;
    ends[2 * l + 1] = high;
  }
}

/* In units of the largest value. */
void km_column_spreads(const double *x, size_t n, size_t d, double *logs) {
  for (size_t l = 0; l < d; l++) {
    const double *column = x + l * n;
    double ends[2], mean = 0, squares = 0;
    km_column_ranges(column, n, 1, ends);
    const double unit = fmax(fmax(-ends[0], ends[1]), DBL_MIN);
    for (size_t i = 0; i < n; i++) mean += column[i] / unit;
    mean /= (double) n;
    for (size_t i = 0; i < n; i++) {
      const double apart = column[i] / unit - mean;
      squares += apart * apart;
    }
    logs[l] = ends[0] < ends[1] ? log(unit) + log(squares / (double) (n - 1)) / 2 : -INFINITY;
  }
}

/* A number times 0 is 0, or NaN if it is not finite. */
int km_all_finite(const double *x, size_t n) {
  enum { LANES = 16 };
  double sums[LANES] = {0};
  size_t i = 0;
  for (; i + LANES <= n; i += LANES)
    SIMD
    for (size_t e = 0; e < LANES; e++) sums[e] += x[i + e] * 0.0;
  double all = 0;
  for (size_t e = 0; e < LANES; e++) all += sums[e];
  for (; i < n; i++) all += x[i] * 0.0;
  return all == 0;
}
