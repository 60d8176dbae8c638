#include "core/tile.h"
#include "core/parts.h"
#include "core/scratch.h"

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
 * Memory: (n + m)(d + 1) doubles and 32 tiles.
 */

enum { PACK = KM_PACK, PANEL = KM_TILE_COLS };

void km_pack_points(const km_source *source, const double *x, size_t n, size_t first,
                    double *points) {
  const size_t d = source->d, count = smaller(PACK, n - first);
  for (size_t l = 0; l < d; l++) {
    for (size_t i = 0; i < count; i++)
      points[l * PACK + i] = (x[first + i + l * n] - source->center[l]) * source->scale[l];
    for (size_t i = count; i < PACK; i++) points[l * PACK + i] = 0;
  }
}

/* A worker without any pair needs no tile. */
size_t km_walk_workers(const km_source *source) {
  const size_t rows = pieces(source->n, PANEL), columns = pieces(source->m, PANEL);
  return smaller(KM_WORKERS, source->y ? rows * columns : rows * (rows + 1) / 2);
}

typedef struct {
  double *x, *y; /* packed points */
  double *tiles;
} layout;

static size_t lay_out(layout *s, const km_source *source, double *work) {
  const size_t wide = source->d + km_norms(&source->kernel);
  km_scratch scratch = {work, 0};
  if (source->x) s->x = take_aligned(&scratch, round_up(source->n, PACK) * wide);
  if (source->y) s->y = take_aligned(&scratch, round_up(source->m, PACK) * wide);
  s->tiles = take_aligned(&scratch, km_walk_workers(source) * km_tile_room(&source->kernel));
  return scratch.used;
}

size_t km_walk_work(const km_source *source) {
  layout s;
  return lay_out(&s, source, NULL);
}

/* Packs a set; half norms are added where the kernel takes them. */
static km_point_set pack(const km_source *source, const double *x, size_t n, int alone,
                         double *points) {
  const size_t d = source->d, padded = round_up(n, PACK);
  const int norms = km_takes_norms(&source->kernel);
  double *half_norms = points + padded * d;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(source, x, n, points, half_norms) \
    firstprivate(d, padded, norms) schedule(dynamic, 8) \
    num_threads(alone ? 1 : km_threads((double) n * (double) d))
#else
  (void) alone;
#endif
  for (size_t i = 0; i < padded; i += PACK) {
    km_pack_points(source, x, n, i, points + i * d);
    if (norms) km_half_norms(&source->kernel, points + i * d, PACK, d, padded, half_norms + i);
  }
  return (km_point_set){points, norms ? half_norms : NULL, n, padded};
}

km_tiles km_pack_tiles(const km_source *source, double cost, km_consumer consume, void *sink,
                       int alone, double *work) {
  layout s;
  lay_out(&s, source, work);
  km_tiles tiles = {.source = source,
                    .rows = pieces(source->n, PANEL),
                    .columns = pieces(source->m, PANEL),
                    .room = s.tiles,
                    .cost = km_value_cost(&source->kernel, source->d) + cost,
                    .consume = consume,
                    .sink = sink};
  tiles.x = source->k ? (km_point_set){.count = source->n}
                      : pack(source, source->x, source->n, alone, s.x);
  tiles.y = source->y ? pack(source, source->y, source->m, alone, s.y) : tiles.x;
  if (!km_near_center(&source->kernel, &tiles.y)) tiles.x.half_norms = tiles.y.half_norms = NULL;
  return tiles;
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

/* In tiles of KM_TILE_ROWS rows that leave room in the L1 cache. */
void km_run_pair(const km_tiles *tiles, size_t worker, size_t place, size_t row, size_t column) {
  const km_source *source = tiles->source;
  const size_t d = source->d, n = source->n, j0 = column * PANEL;
  double *room = tiles->room + place * km_tile_room(&source->kernel);
  km_tile_job job = {.y = some_points(&tiles->y, d, j0, PANEL), .d = d, .wide = d, .k = room};
  for (size_t i0 = row * PANEL; i0 < (row + 1) * PANEL && i0 < n; i0 += KM_TILE_ROWS) {
    job.x = some_points(&tiles->x, d, i0, KM_TILE_ROWS);
    const km_tile tile = {i0, j0, job.x.count, job.y.count, !source->y && row != column, job.k};
    if (source->k)
      copy_tile(source->k, n, &tile, job.k);
    else
      km_tile_values(&source->kernel, &job);
    tiles->consume(&tile, tiles->sink, worker);
  }
}

double km_pair_operations(const km_tiles *tiles, size_t pairs) {
  const double these = (double) pairs * (double) (PANEL * PANEL) * tiles->cost;
  const double all = (double) tiles->x.count * (double) tiles->y.count * tiles->cost;
  return these < all ? these : all;
}
