#include "core/center.h"
#include "core/columns.h"
#include "core/fold.h"
#include "core/lowrank.h"
#include "core/median.h"
#include "core/panel.h"
#include "core/rounds.h"
#include "core/walk.h"
#include "driver.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

/* Folds over Gram matrices: every kernel, one set of points and two, a stored matrix. */

enum { N = 70, M = 67, D = 3, FEW = 2, MANY = 9, LARGE = 740 };

static void put_fold(const char *fold, const char *of, const double *values, size_t count) {
  char name[64];
  snprintf(name, sizeof name, "%s_%s", fold, of);
  put(name, values, count);
}

static void folds(const km_source *source, const char *name) {
  const size_t m = source->m, most = N * MANY;
  double *v = inputs(21, m * MANY), *u = source->y ? inputs(22, N * MANY) : v, *out = room(most);
  km_fold_rows(source, out, room(km_fold_rows_work(source)), poll);
  put_fold("rows", name, out, N);
  km_fold_apply(source, v, FEW, out, room(km_fold_apply_work(source, FEW)), poll);
  put_fold("few", name, out, N * FEW);
  km_fold_apply(source, v, MANY, out, room(km_fold_apply_work(source, MANY)), poll);
  put_fold("many", name, out, N * MANY);
  km_fold_quad(source, u, v, MANY, out, room(km_fold_quad_work(source, MANY)), poll);
  put_fold("quad", name, out, MANY);
  if (source->y) {
    double *k = room(N * M);
    km_fold_store(source, k, room(km_fold_store_work(source)), poll);
    put_fold("store", name, k, N * M);
    return;
  }
  double *rows = room(N), *work = room(km_fold_moments_work(source, MANY));
  km_fold_moments(source, v, MANY, rows, out, work, poll);
  put_fold("rows_beside_forms", name, rows, N);
  put_fold("forms_beside_rows", name, out, MANY);
  km_diagonal(source, out);
  put_fold("diagonal", name, out, N);
  km_fold_column(source, 65, out, room(km_fold_column_work(source)));
  put_fold("column", name, out, N);
}

static void every_family(void) {
  for (size_t family = 0; km_facts(family); family++) {
    const km_family_facts *facts = km_facts(family);
    km_source source = points((km_family) family, 20, N, D);
    char name[32];
    folds(&source, facts->name);
    put_fold("at_zero", facts->name, &facts->at_zero, 1);
    source.y = inputs(23, M * D);
    source.m = M;
    snprintf(name, sizeof name, "between_%s", facts->name);
    folds(&source, name);
  }
  const km_source stored = {.x = NULL, .n = N, .m = N, .k = gram(20, N, D)};
  folds(&stored, "stored");
}

/* Points far from the center are treated by differences; large matrices are streamed, here to an
   address that no vector is aligned to. */
static void special(void) {
  km_source far = points(KM_RBF, 24, N, D);
  double *x = inputs(24, N * D), *out = room(LARGE * LARGE + 1);
  for (size_t i = 0; i < N * D; i++) x[i] += 1000;
  far.x = x;
  km_fold_rows(&far, out, room(km_fold_rows_work(&far)), poll);
  put("rows_far", out, N);
  const km_source large = points(KM_RBF, 25, LARGE, D);
  km_fold_store(&large, out + 1, room(km_fold_store_work(&large)), poll);
  for (size_t i = 0; i < LARGE * LARGE; i += 997) put_number("streamed", out[i + 1]);
  int symmetric = 1;
  for (size_t i = 0; i < LARGE; i++)
    for (size_t j = 0; j < i; j++)
      symmetric &= out[1 + i + j * LARGE] == out[1 + j + i * LARGE];
  must(symmetric, "a streamed matrix is not symmetric");
}

static void add_up(const km_tile *tile, void *sink, size_t worker) {
  double *sums = sink;
  for (size_t i = 0; i < tile->ni; i++)
    for (size_t j = 0; j < tile->nj; j++)
      sums[worker] += (tile->mirrored ? 2 : 1) * tile->k[i * KM_TILE_COLS + j];
}

static void walks(void) {
  const km_source source = points(KM_RBF, 20, N, D);
  double *work = room(km_walk_work(&source)), sums[4][KM_WORKERS] = {{0}};
  double total = 0, by_rounds = 0;
  const size_t slots = km_walk_slots(&source, 1);
  km_walk(&source, slots, 1, add_up, sums[0], work, poll);
  km_walk_alone(&source, slots, 1, add_up, sums[1], work);
  km_walk_rounds(&source, 1, add_up, sums[2], work, poll);
  for (size_t worker = 0; worker < KM_WORKERS; worker++) {
    must(sums[0][worker] == sums[1][worker], "a walk alone gives other sums");
    total += sums[0][worker];
    by_rounds += sums[2][worker];
  }
  put_number("walk", total);
  const km_tiles tiles = km_pack_tiles(&source, 1, add_up, sums[3], 1, work);
  for (size_t row = 0; row < tiles.rows; row++)
    for (size_t column = row; column < tiles.columns; column++)
      km_run_pair(&tiles, 0, 0, row, column);
  must(km_pair_operations(&tiles, 2) > km_pair_operations(&tiles, 1), "the work of a pair");
  put_number("walk_by_hand", sums[3][0]);
  put_number("walk_rounds", by_rounds);
  double *ends = room(2 * D);
  km_column_ranges(source.x, N, D, ends);
  put("ranges", ends, 2 * D);
  km_column_spreads(source.x, N, D, ends);
  put("spreads", ends, D);
  double values[40] = {0};
  values[39] = DBL_MAX;
  must(km_all_finite(values, 40), "numbers that are finite are said not to be");
  for (size_t i = 0; i < 40; i++) {
    values[i] = i % 2 ? NAN : -INFINITY;
    must(!km_all_finite(values, i + 1), "a number that is not finite is not seen");
    values[i] = 1;
  }
}

static void centering(void) {
  const km_source source = points(KM_RBF, 20, N, D);
  double *k = gram(20, N, D), *at = room(N);
  const km_centering mean = km_row_means(N, k, at);
  put("means", at, N);
  put_number("norm2", mean.norm2);
  put_number("square", km_centered_square(&source, mean, room(km_centered_square_work(&source)),
                                          poll));
  km_center(N, k, mean, k);
  put("centered", k, N * N);
}

static void medians(void) {
  enum { PAIRS = 1001 };
  const char *const names[] = {"median_sqdist", "median_l1dist"};
  const km_family family[] = {KM_SQDIST, KM_L1DIST};
  for (int i = 0; i < 2; i++) {
    const km_source source = points(family[i], 20, N, D);
    put_number(names[i], km_pairwise_median(&source, room(km_median_work(&source)), poll).median);
  }
  const km_source source = points(KM_SQDIST, 20, N, D);
  set_draws(26);
  put_number("median_sampled",
             km_sampled_median(&source, PAIRS, draw, room(km_sampled_median_work(PAIRS)),
                               int_room(km_sampled_median_iwork(PAIRS)), poll)
                 .median);
  double x[] = {0, 0, 0, 0, 0, 2}, one = 1, none = 0; /* 10 of 15 distances are 0 */
  km_source ties = {.kernel = {.family = KM_SQDIST}, .center = &none, .scale = &one, .x = x, .n = 6,
                    .m = 6, .d = 1};
  const km_median tied = km_pairwise_median(&ties, room(km_median_work(&ties)), poll);
  put_number("median_tied", tied.median);
  put_number("median_positive", tied.positive);
}

static size_t factor_rank(const km_source *source, size_t cap) {
  double left;
  return km_lowrank(source, 1e-13, cap, int_room(cap), &left, room(km_lowrank_work(source, cap)),
                    poll);
}

/* A polynomial of degree 3 in 3 variables has 20 terms. Then as many columns as points, in blocks,
   from these and from their matrix. */
static void low_rank(void) {
  enum { CAP = 24, BELOW = 5, FULL = 130 };
  km_source source = points(KM_POLY, 20, N, D);
  double *work = room(km_lowrank_work(&source, CAP)), left;
  int *pivots = int_room(FULL);
  size_t rank = km_lowrank(&source, 1e-13, CAP, pivots, &left, work, poll);
  put_number("rank", (double) rank);
  put_number("rank_beyond", (double) factor_rank(&source, BELOW));
  double *few = room(km_lowrank_work(&source, BELOW)), *f_few = room(N * BELOW), left_by_few;
  must(km_lowrank(&source, 1e-13, BELOW, pivots, &left_by_few, few, poll) == BELOW + 1,
       "5 columns are enough");
  km_lowrank_unpack(N, few, BELOW, f_few);
  put("few_columns", f_few, N * BELOW);
  put_number("left_by_few", left_by_few);
  const double no_kernel[1] = {-1};
  const km_source indefinite = {.n = 1, .m = 1, .k = no_kernel};
  must(factor_rank(&indefinite, 1) == 3, "a factor of a negative number");
  double *centered = room(N * rank);
  km_lowrank_center(N, work, rank, centered);
  put("lowrank", centered, N * rank);
  const double zeros[4] = {0};
  const km_source nothing = {.n = 2, .m = 2, .k = zeros};
  put_number("rank_zero", (double) factor_rank(&nothing, 2));

  source = points(KM_LAPLACE_L1, 27, FULL, D);
  work = room(km_lowrank_work(&source, FULL));
  rank = km_lowrank(&source, 1e-13, FULL, pivots, &left, work, poll);
  double *f = room(FULL * rank), *again = room(FULL * rank), *k = room(FULL * FULL);
  km_lowrank_unpack(FULL, work, rank, f);
  put("pivoted", f, FULL * rank);
  put_ints("pivots", pivots, rank);
  put_number("pivoted_left", left);
  km_fold_store(&source, k, room(km_fold_store_work(&source)), poll);
  const km_source stored = {.n = FULL, .m = FULL, .k = k};
  work = room(km_lowrank_work(&stored, FULL));
  must(km_lowrank(&stored, 1e-13, FULL, pivots, &left, work, poll) == rank, "another rank");
  km_lowrank_unpack(FULL, work, rank, again);
  for (size_t i = 0; i < FULL * rank; i++) must(f[i] == again[i], "points and their matrix");
}

/* From points, and from fewer than are wanted: three that stand twice. */
static void random_pivots(void) {
  enum { POINTS = 130, MOST = 20, TWICE = 6 };
  const km_source source = points(KM_LAPLACE_L1, 27, POINTS, D);
  double left;
  int *pivots = int_room(MOST);
  set_draws(39);
  const size_t rank = km_random_pivots(&source, MOST, 16, uniform, pivots, &left,
                                       room(km_lowrank_work(&source, MOST)), poll);
  must(rank == MOST, "fewer pivots");
  put_ints("random_pivots", pivots, rank);
  put_number("random_left", left);
  double k[TWICE * TWICE];
  for (size_t i = 0; i < TWICE * TWICE; i++) k[i] = i % TWICE / 2 == i / TWICE / 2;
  const km_source twice = {.n = TWICE, .m = TWICE, .k = k};
  must(km_random_pivots(&twice, TWICE, 16, uniform, pivots, &left,
                        room(km_lowrank_work(&twice, TWICE)), poll) == TWICE / 2 && left == 0,
       "pivots of points that stand twice");
}

/* count points of D columns, in packs. */
static double *packed(int seed, size_t count) {
  const double *x = inputs(seed, count * D);
  double *points = room(km_panel_size(D));
  for (size_t i = 0; i < KM_TILE_COLS; i++)
    for (size_t l = 0; l < D; l++)
      points[i / KM_PACK * KM_PACK * D + l * KM_PACK + i % KM_PACK] =
        i < count ? x[i + l * count] : 0;
  return points;
}

static void panels(void) {
  enum { ROWS = 40, COLUMNS = 50 };
  const km_source source = points(KM_RBF, 28, ROWS, D);
  double *pack = room(KM_PACK * D);
  km_pack_points(&source, source.x, ROWS, KM_PACK, pack);
  put("packed", pack, KM_PACK * D);
  const km_kernel kernel = {.family = KM_RBF};
  const double scale[D] = {1, 2, 0.5};
  const km_point_set x =
    km_panel_scale(D, packed(28, ROWS), ROWS, scale, room(km_panel_size(D)));
  const km_point_set y = km_panel_set(D, packed(29, COLUMNS), COLUMNS);
  must(km_near_center(&kernel, &y), "points near the center");
  double *columns = inputs(30, KM_TILE_COLS), *tile = room(KM_PANEL_TILE);
  km_panel_columns(&kernel, D, x, y, inputs(38, ROWS), tile, columns);
  put("panel", columns, COLUMNS);
}

/* The first points of a sum of kernels, by hand. */
static void tile_of_sum(void) {
  const km_source source = points(KM_SUM, 20, N, D);
  const km_kernel *kernel = &source.kernel, rbf = {.family = KM_RBF};
  double *pack = room(KM_PACK * D), *norms = room(KM_PACK * km_norms(kernel));
  double *k = room(km_tile_room(kernel)), *diagonal = room(N);
  km_pack_points(&source, source.x, N, 0, pack);
  km_half_norms(kernel, pack, KM_PACK, D, KM_PACK, norms);
  put("sum_norms", norms, KM_PACK * km_norms(kernel));
  const km_point_set set = {pack, norms, KM_PACK, KM_PACK};
  must(km_takes_norms(kernel) && km_near_center(kernel, &set), "points near the center");
  must(km_value_cost(kernel, D) > km_value_cost(&rbf, D), "a sum costs no more than a part");
  const km_tile_job job = {set, set, D, D, k};
  km_tile_values(kernel, &job);
  put("sum_tile", k, KM_PACK * KM_TILE_COLS);
  km_diagonal(&source, diagonal);
  for (size_t i = 0; i < KM_PACK; i++)
    must(k[i * KM_TILE_COLS + i] == diagonal[i], "another diagonal than that of the tile");
}

void run_grams(void) {
  every_family();
  tile_of_sum();
  special();
  walks();
  panels();
  centering();
  medians();
  low_rank();
  random_pivots();
}
