#include "core/walk.h"
#include "core/parts.h"

/*
 * Panel pairs are dealt to workers by the sizes alone; a worker adds up its tiles in order in
 * accumulators of its own, which are then added in the order of the workers: the same bits for any
 * number of threads. A symmetric walk gives each worker a share of the list of panel pairs I <= J.
 * A rectangular walk has a worker for each share of the columns (cut by m alone) in each share of
 * the rows; slots belong to shares of the columns, so each row is summed by m alone. With a slot
 * for each worker there is one share of the rows.
 *
 * Accumulators take 32 n p doubles (beyond 128 MB, as many as fit but at least 8) in a symmetric
 * walk, 8 n p at most in a rectangular one.
 */

enum {
  PANEL = KM_TILE_COLS,
  COLUMN_SHARES = 8,  /* at most, in a rectangular walk */
  FEWEST_WORKERS = 8, /* at least, in a symmetric walk */
  PIECES = 24         /* of a worker's share, at most */
};

/* Doubles, 128 MB: row sums of a million points have 16 workers. */
static const double most_accumulators = 16777216;
static const double poll_work = 134217728;       /* operations a lane between two polls */

/* --- Shares of the panel pairs ------------------------------------------------ */

typedef struct {
  int symmetric;
  size_t rows, columns;             /* panels */
  size_t row_shares, column_shares; /* 1 and the number of workers in a symmetric walk */
} shares;

/* The workers of a symmetric walk, the shares of columns of another. */
size_t km_walk_slots(const km_source *source, double size) {
  if (source->y) return smaller(COLUMN_SHARES, pieces(source->m, PANEL));
  const double fit = most_accumulators / size;
  if (fit >= KM_WORKERS) return KM_WORKERS;
  return fit > FEWEST_WORKERS ? (size_t) fit : FEWEST_WORKERS;
}

static shares deal(const km_source *source, size_t slots) {
  return (shares){.symmetric = !source->y,
                  .rows = pieces(source->n, PANEL),
                  .columns = pieces(source->m, PANEL),
                  .row_shares = source->y ? KM_WORKERS / slots : 1,
                  .column_shares = slots};
}

static size_t count_workers(const shares *all) { return all->column_shares * all->row_shares; }

/* Panel pairs of a symmetric walk. */
static size_t all_pairs(const shares *all) { return all->rows * (all->rows + 1) / 2; }

static size_t pairs_of(const shares *all, size_t worker) {
  if (all->symmetric) return share_size(all_pairs(all), all->column_shares, worker);
  return share_size(all->rows, all->row_shares, worker / all->column_shares) *
         share_size(all->columns, all->column_shares, worker % all->column_shares);
}

/* Row and column, in panels, of the worker's pair number `index`. */
static void locate(const shares *all, size_t worker, size_t index, size_t *row, size_t *column) {
  if (all->symmetric) {
    size_t left = share_start(all_pairs(all), all->column_shares, worker) + index;
    size_t i = 0;
    for (; left >= all->rows - i; i++) left -= all->rows - i;
    *row = i;
    *column = i + left;
    return;
  }
  const size_t row_share = worker / all->column_shares, column_share = worker % all->column_shares;
  const size_t width = share_size(all->columns, all->column_shares, column_share);
  *row = share_start(all->rows, all->row_shares, row_share) + index / width;
  *column = share_start(all->columns, all->column_shares, column_share) + index % width;
}

km_walk_part km_walk_part_of(const km_source *source, size_t slots, size_t worker) {
  const shares all = deal(source, slots);
  const size_t count = worker < count_workers(&all) ? pairs_of(&all, worker) : 0;
  if (!count) return (km_walk_part){0};
  size_t row, column, last_row, last_column;
  locate(&all, worker, 0, &row, &column);
  locate(&all, worker, count - 1, &last_row, &last_column);
  if (all.symmetric && row < last_row) { /* from the diagonal to the end */
    column = row;
    last_column = all.columns - 1;
  }
  return (km_walk_part){row * PANEL, smaller((last_row + 1) * PANEL, source->n), column * PANEL,
                        smaller((last_column + 1) * PANEL, source->m)};
}

/* --- The pairs of a worker, in their order ------------------------------------ */

typedef struct {
  km_tiles tiles;
  shares all;
  int alone; /* on one thread */
} walk;

/* The tile of a worker: so many before it have work. */
static size_t place_of(const walk *w, size_t worker) {
  size_t busy = 0;
  for (size_t before = 0; before < worker; before++) busy += pairs_of(&w->all, before) > 0;
  return busy;
}

static void run_pairs(const walk *w, size_t worker, size_t first, size_t last) {
  const shares *all = &w->all;
  last = smaller(last, pairs_of(all, worker));
  if (first >= last) return;
  const size_t place = place_of(w, worker);
  size_t row = 0, column = 0;
  for (size_t index = first; index < last; index++) {
    if (index == first || !all->symmetric)
      locate(all, worker, index, &row, &column);
    else if (++column == all->rows)
      column = ++row;
    km_run_pair(&w->tiles, worker, place, row, column);
  }
  /* What `store` streamed is seen by other threads. */
#ifdef _OPENMP
#pragma omp flush
#endif
}

/* --- Who does them, and when -------------------------------------------------- */

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
  const size_t workers = count_workers(&w->all);
  const int threads =
    w->alone ? 1 : km_threads(km_pair_operations(&w->tiles, workers * (last - first)));
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

static void run(const walk *w, km_poll poll) {
  const size_t workers = count_workers(&w->all);
  const double at_once = poll_work * (double) km_simd()->lanes /
                         ((double) (PANEL * PANEL) * w->tiles.cost);
  const size_t step = 1 + (size_t) (at_once / (double) workers);
  size_t longest = 0;
  for (size_t worker = 0; worker < workers; worker++)
    longest = larger(longest, pairs_of(&w->all, worker));
  for (size_t first = 0; first < longest; first += step) {
    run_all(w, first, smaller(first + step, longest));
    if (poll) poll();
  }
}

void km_walk(const km_source *source, size_t slots, double cost, km_consumer consume, void *sink,
             double *work, km_poll poll) {
  const walk w = {km_pack_tiles(source, cost, consume, sink, 0, work), deal(source, slots), 0};
  run(&w, poll);
}

void km_walk_alone(const km_source *source, size_t slots, double cost, km_consumer consume,
                   void *sink, double *work) {
  const walk w = {km_pack_tiles(source, cost, consume, sink, 1, work), deal(source, slots), 1};
  run(&w, NULL);
}
