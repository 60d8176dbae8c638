#include "core/blocks.h"
#include "core/parts.h"
#include "core/rounds.h"
#include "core/scratch.h"
#include "core/walk.h"

#include <string.h>

/*
 * One walk over the tiles: the rows of a tile are added up over a block (one addition a value), the
 * sums over the columns of each block then go to a cell. A worker has cells for the blocks that its
 * share of the walk meets, in a symmetric walk those above the diagonal only: with M and M' blocks,
 * about M^2 / 2 in all, else M M' and up to 32 rows or columns more, as a block may be cut.
 *
 * In a rectangular walk a worker has all rows, in their order, of a share of the columns, and a
 * block of rows stays open from tile to tile: where tiles begin changes nothing.
 */

enum {
  SQUARE = 32,
  MOMENTS = 2,
  SHORT = 12 /* fewer columns of a tile are added up one by one */
};

/* The cells of a worker: blocks a0 .. a1-1 by b0 .. b1-1, by rows. */
typedef struct {
  size_t a0, a1, b0, b1;
  double *sums;
  int cleared;
} share;

typedef struct {
  const km_arithmetic *simd;
  const km_runs *rows, *columns;
  int symmetric;
  double *walk;
  double *open;    /* of a rectangular walk: the open block's sums for each column, or NULL */
  double *moments; /* KM_WORKERS x MOMENTS, or NULL */
  share shares[KM_WORKERS];
} blocks_sink;

size_t km_run_ends(const int *sizes, size_t count, int *ends) {
  size_t end = 0;
  for (size_t b = 0; b < count; b++) ends[b] = (int) (end += (size_t) sizes[b]);
  return end;
}

static size_t lay_out(blocks_sink *sink, const km_source *source, int moments, double *work) {
  km_scratch scratch = {work, 0};
  sink->walk = take(&scratch, km_walk_work(source));
  sink->open = source->y ? take_aligned(&scratch, round_up(source->m, KM_TILE_COLS)) : NULL;
  sink->moments = moments ? take(&scratch, KM_WORKERS * MOMENTS) : NULL;
  for (size_t worker = 0; worker < KM_WORKERS; worker++) {
    const km_walk_part part = km_walk_part_of(source, KM_WORKERS, worker);
    share own = {0};
    if (part.i0 < part.i1) {
      own.a0 = km_run_of(sink->rows, part.i0);
      own.a1 = km_run_of(sink->rows, part.i1 - 1) + 1;
      own.b0 = km_run_of(sink->columns, part.j0);
      own.b1 = km_run_of(sink->columns, part.j1 - 1) + 1;
      own.sums = take(&scratch, (own.a1 - own.a0) * (own.b1 - own.b0));
    }
    sink->shares[worker] = own;
  }
  return scratch.used;
}

/* Adds the sums of a block of rows for the columns of a tile, run, to its row of cells, and clears
   them. cells: those of block `first` and the next. */
static void add_cells(const blocks_sink *sink, const km_tile *tile, size_t a, size_t b,
                      double *restrict run, double *restrict cells, size_t first) {
  const km_runs *columns = sink->columns;
  if (columns->weights)
    for (size_t j = 0; j < tile->nj; j++) run[j] *= columns->weights[tile->j0 + j];
  for (size_t j = 0; j < tile->nj; b++) {
    const size_t end = smaller(tile->nj, (size_t) columns->ends[b] - tile->j0);
    double sum = 0;
    for (; j < end; j++) {
      sum += run[j];
      run[j] = 0;
    }
    /* Below the diagonal stands what stands above it. */
    if (!sink->symmetric || b > a)
      cells[b - first] += sum;
    else if (b == a)
      cells[b - first] += tile->mirrored ? 2 * sum : sum;
  }
}

static void add_tile(const km_tile *tile, void *to, size_t worker) {
  blocks_sink *sink = to;
  const km_runs *rows = sink->rows;
  share *own = sink->shares + worker;
  const size_t width = own->b1 - own->b0, b = km_run_of(sink->columns, tile->j0);
  double tile_run[KM_TILE_COLS] = {0};
  double *run = sink->open ? sink->open + tile->j0 : tile_run;
  if (!own->cleared) memset(own->sums, 0, (own->a1 - own->a0) * width * sizeof *own->sums);
  own->cleared = 1;
  if (sink->moments) {
    double these[MOMENTS] = {0};
    sink->simd->moments(tile->k, tile->ni, these);
    for (size_t l = 0; l < MOMENTS; l++)
      sink->moments[worker * MOMENTS + l] += tile->mirrored ? 2 * these[l] : these[l];
  }
  size_t a = km_run_of(rows, tile->i0);
  for (size_t i = 0; i < tile->ni; a++) {
    const size_t end = (size_t) rows->ends[a] - tile->i0, last = smaller(tile->ni, end);
    sink->simd->add_rows(tile->k + i * KM_TILE_COLS, last - i,
                         rows->weights ? rows->weights + tile->i0 + i : NULL, run);
    i = last;
    if (last == end || !sink->open)
      add_cells(sink, tile, a, b, run, own->sums + (a - own->a0) * width, own->b0);
  }
}

/* The sums of all workers over blocks a .. and b .., in their order. square: SQUARE x SQUARE. */
static void add_shares(const blocks_sink *sink, size_t a, size_t b, double *square) {
  memset(square, 0, SQUARE * SQUARE * sizeof *square);
  for (size_t worker = 0; worker < KM_WORKERS; worker++) {
    const share *own = sink->shares + worker;
    const size_t last_a = smaller(own->a1, a + SQUARE), last_b = smaller(own->b1, b + SQUARE);
    const size_t first_b = larger(own->b0, b), width = own->b1 - own->b0;
    for (size_t i = larger(own->a0, a); i < last_a; i++)
      for (size_t j = first_b; j < last_b; j++)
        square[(i - a) * SQUARE + j - b] += own->sums[(i - own->a0) * width + j - own->b0];
  }
}

/* Fills a square of the matrix and, in a symmetric one, its mirror image. */
static void fill(const blocks_sink *sink, size_t a, size_t b, double *sums) {
  const size_t m = sink->rows->count;
  const size_t last_a = smaller(m, a + SQUARE), last_b = smaller(sink->columns->count, b + SQUARE);
  double square[SQUARE * SQUARE];
  add_shares(sink, a, b, square);
  for (size_t j = b; j < last_b; j++)
    for (size_t i = a; i < (sink->symmetric ? smaller(j + 1, last_a) : last_a); i++)
      sums[i + j * m] = square[(i - a) * SQUARE + j - b];
  if (!sink->symmetric) return;
  for (size_t i = a; i < last_a; i++)
    for (size_t j = larger(b, i); j < last_b; j++)
      sums[j + i * m] = square[(i - a) * SQUARE + j - b];
}

static void fill_all(const blocks_sink *sink, double *sums) {
  const size_t m = sink->rows->count, columns = sink->columns->count;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(sink, sums) firstprivate(m, columns) \
    schedule(dynamic) num_threads(km_threads((double) m * (double) columns))
#endif
  for (size_t b = 0; b < columns; b += SQUARE)
    for (size_t a = 0; a < (sink->symmetric ? b + 1 : m); a += SQUARE) fill(sink, a, b, sums);
}

size_t km_block_sums_work(const km_source *source, const km_runs *rows, const km_runs *columns) {
  blocks_sink sink = {.rows = rows, .columns = columns ? columns : rows};
  return lay_out(&sink, source, 1, NULL);
}

void km_block_sums(const km_source *source, const km_runs *rows, const km_runs *columns,
                   double *sums, double *moments, double *work, km_poll poll) {
  blocks_sink sink = {.simd = km_simd(),
                      .rows = rows,
                      .columns = columns ? columns : rows,
                      .symmetric = !columns};
  lay_out(&sink, source, moments != NULL, work);
  if (sink.open) memset(sink.open, 0, round_up(source->m, KM_TILE_COLS) * sizeof *work);
  if (moments) memset(sink.moments, 0, KM_WORKERS * MOMENTS * sizeof *work);
  km_walk(source, KM_WORKERS, 4, add_tile, &sink, sink.walk, poll);
  fill_all(&sink, sums);
  for (size_t l = 0; moments && l < MOMENTS; l++) {
    moments[l] = 0;
    for (size_t worker = 0; worker < KM_WORKERS; worker++)
      moments[l] += sink.moments[worker * MOMENTS + l];
  }
}

/* --- Sums of each row ---------------------------------------------------------- */

typedef struct {
  const km_arithmetic *simd;
  const km_runs *blocks;
  size_t n;
  double *rows;
} rows_sink;

/* sums_i += sum of k_ij over columns first .. last - 1 of a tile. */
static void add_block_columns(const km_arithmetic *simd, const km_tile *tile, size_t first,
                              size_t last, double *sums) {
  if (last - first == KM_TILE_COLS) {
    simd->sums(tile->k, tile->ni, sums, NULL);
  } else if (last - first >= SHORT) {
    double in_block[KM_TILE_COLS];
    for (size_t j = 0; j < KM_TILE_COLS; j++) in_block[j] = j >= first && j < last;
    simd->products(tile->k, tile->ni, NULL, in_block, sums, NULL);
  } else {
    for (size_t i = 0; i < tile->ni; i++) {
      double sum = 0;
      for (size_t j = first; j < last; j++) sum += tile->k[i * KM_TILE_COLS + j];
      sums[i] += sum;
    }
  }
}

/* sums_j += sum of k_ij over rows first .. last - 1. */
static void add_block_rows(const km_arithmetic *simd, const km_tile *tile, size_t first,
                           size_t last, double *sums) {
  const double *k = tile->k + first * KM_TILE_COLS;
  double whole[KM_TILE_COLS] = {0};
  if (tile->nj == KM_TILE_COLS) {
    simd->add_rows(k, last - first, NULL, sums);
    return;
  }
  simd->add_rows(k, last - first, NULL, whole);
  for (size_t j = 0; j < tile->nj; j++) sums[j] += whole[j];
}

/* Its rows with the blocks of its columns and, of a mirrored tile, its columns with those of its
   rows. */
static void add_to_rows(const km_tile *tile, void *to, size_t worker) {
  const rows_sink *sink = to;
  const int *ends = sink->blocks->ends;
  (void) worker;
  size_t b = km_run_of(sink->blocks, tile->j0);
  for (size_t j = 0; j < tile->nj; b++) {
    const size_t last = smaller(tile->nj, (size_t) ends[b] - tile->j0);
    if (last > j)
      add_block_columns(sink->simd, tile, j, last, sink->rows + tile->i0 + b * sink->n);
    j = last;
  }
  if (!tile->mirrored) return;
  size_t a = km_run_of(sink->blocks, tile->i0);
  for (size_t i = 0; i < tile->ni; a++) {
    const size_t last = smaller(tile->ni, (size_t) ends[a] - tile->i0);
    if (last > i) add_block_rows(sink->simd, tile, i, last, sink->rows + tile->j0 + a * sink->n);
    i = last;
  }
}

size_t km_block_rows_work(const km_source *source) { return km_walk_work(source); }

void km_block_rows(const km_source *source, const km_runs *blocks, double *rows, double *work,
                   km_poll poll) {
  rows_sink sink = {km_simd(), blocks, source->n, rows};
  memset(rows, 0, source->n * blocks->count * sizeof *rows);
  km_walk_rounds(source, 4, add_to_rows, &sink, work, poll);
}
