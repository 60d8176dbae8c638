#include "apps/bags.h"
#include "apps/changes.h"
#include "apps/days.h"
#include "apps/density.h"
#include "apps/fda.h"
#include "apps/hsic.h"
#include "apps/noisy.h"
#include "apps/sketch.h"
#include "apps/smooth.h"
#include "core/axes.h"
#include "core/back.h"
#include "core/center.h"
#include "core/cholesky.h"
#include "core/dense.h"
#include "core/eigen.h"
#include "core/fold.h"
#include "core/krylov.h"
#include "core/lowrank.h"
#include "core/median.h"
#include "core/mixture.h"
#include "core/permute.h"
#include "core/range.h"
#include "core/scores.h"
#include "core/small.h"
#include "core/profiles.h"
#include "core/subsets.h"
#include "core/tall.h"
#include "core/tridiag.h"
#include "driver.h"

#include <stdio.h>

/*
 * Scratch never gets less when a size grows: a caller may take it once for the largest of several
 * problems. Each function of sizes is walked along each of them. (km_block_sums_work is none: it
 * depends on where the blocks end.)
 */

static km_source of(size_t n, size_t m, size_t d) {
  static const double x = 0;
  return (km_source){.kernel = {.family = KM_RBF}, .x = &x, .n = n, .y = m ? &x : NULL,
                     .m = m ? m : n, .d = d};
}

enum { LONGEST = 4201, PART = 7, FOLDS = 2 };

/* Points in parts, and in folds. */
static int ends[LONGEST], folds[LONGEST];

/* One bag. */
static size_t flexible_of(const km_source *source, int ints) {
  const int end = (int) source->n;
  const km_runs bag = {1, &end, NULL};
  return ints ? km_bag_flexible_iwork(source, &bag) : km_bag_flexible_work(source, &bag);
}

/* Points or components, in d columns. */
static size_t match_of(size_t n, size_t m, size_t d, int free) {
  const km_source source = of(n, 0, d);
  const km_estimate estimate = {.source = &source};
  const km_mixture mixture = {.m = m, .d = d};
  return free ? km_match_free_work(&mixture, &estimate) : km_match_work(&mixture, &estimate);
}

static size_t log_density_of(size_t n, size_t m, size_t d) {
  const km_mixture mixture = {.m = m, .d = d};
  return km_log_density_work(&mixture, n);
}

static size_t cross_of(const km_source *source, size_t others) {
  const km_source other = of(others, source->m, 4);
  return km_sketch_cross_work(source, &other);
}

static size_t noisy_ints_of(size_t parts, size_t others) {
  const km_noisy rows = {.parts = {parts, ends, NULL}}, columns = {.parts = {others, ends, NULL}};
  return km_noisy_inner_iwork(&rows, &columns);
}

static size_t noisy_of(size_t n, size_t parts, size_t d, int same) {
  const km_noisy rows = {.n = n, .parts = {parts, ends, NULL}};
  return km_noisy_inner_work(d, &rows, same ? NULL : &rows);
}

static size_t smooth_of(size_t n, size_t p, int pairs) {
  const km_smooth_job job = {.n = n, .p = p, .folds = FOLDS, .fold = folds, .h_count = 9,
                             .pairs = pairs};
  return km_smooth_folds_work(&job);
}

static size_t left_out_of(size_t n, size_t classes) {
  static const double l = 1;
  const km_fda_fit fit = {.n = n, .classes = classes, .factor = &l};
  return km_fda_left_out_work(&fit);
}

static size_t spectra_of(size_t most, size_t r) {
  const km_point_rows points = {.n = LONGEST, .r = r};
  return km_subset_spectra_work(points, most);
}

/* Each function with what is walked: SIZES(name, value at n and m), or SOURCE(name, function, what
   it takes beside a source). */
#define ALL_WORKS(SIZES, SOURCE) \
  SIZES(axes, km_axes_work(n)) \
  SIZES(back, km_tridiag_back_work(n, m)) \
  SIZES(factor_n, km_factor_work(n)) \
  SIZES(triangle_solve, km_triangle_solve_work(n, m)) \
  SIZES(triangle_inverse, km_triangle_inverse_work(n)) \
  SIZES(triangle_gram, km_triangle_gram_work(n)) \
  SIZES(resolvent, km_resolvent_work(n)) \
  SIZES(product, km_product_work(n, m, 50)) \
  SIZES(product_depth, km_product_work(50, n, m)) \
  SIZES(tridiag_spectrum, km_tridiag_spectrum_work(n)) \
  SIZES(tridiag_solve, km_tridiag_solve_work(n)) \
  SIZES(eigen, m > n ? 0 : km_eigen_work(n, m, 0)) \
  SIZES(eigen_divide, m > n ? 0 : km_eigen_work(n, m, 1)) \
  SIZES(eigen_ints, km_eigen_iwork(n, 1)) \
  SIZES(range, km_range_work(n, m)) \
  SIZES(range_ints, km_range_iwork(n)) \
  SIZES(krylov_ints, km_krylov_iwork(n)) \
  SIZES(sampled_median, km_sampled_median_work(n)) \
  SIZES(sampled_median_ints, km_sampled_median_iwork(n)) \
  SIZES(blocks_ints, km_blocks_iwork(n)) \
  SIZES(loocv, km_score_loocv_work(n, m)) \
  SIZES(subset_spectra, spectra_of(n, LONGEST)) \
  SIZES(feature_spectra, spectra_of(n, m)) \
  SIZES(relabel, km_relabel_iwork(n)) \
  SIZES(tall_n, km_tall_work(n, m)) \
  SIZES(tridiag, km_tridiag_work(n)) \
  SIZES(permuted_forms, km_permuted_forms_work(n)) \
  SIZES(permuted_grid, km_permuted_grid_work(n, m)) \
  SIZES(permuted_products, km_permuted_products_work(n, m, 20)) \
  SIZES(permuted_tensor, km_permuted_tensor_work(n)) \
  SOURCE(centered_square, km_centered_square_work) \
  SOURCE(store, km_fold_store_work) \
  SOURCE(column, km_fold_column_work) \
  SOURCE(rows_of, km_fold_rows_work) \
  SOURCE(apply, km_fold_apply_work, , 7) \
  SOURCE(quad, km_fold_quad_work, , 7) \
  SOURCE(moments, km_fold_moments_work, , 7) \
  SOURCE(krylov, km_krylov_work, , 5) \
  SOURCE(lowrank, km_lowrank_work, , 40) \
  SOURCE(median, km_median_work) \
  SOURCE(small_forms, km_small_forms_work, , 9) \
  SOURCE(subset_forms, km_subset_forms_work, , 9, 2) \
  SOURCE(tiles, km_walk_work) \
  SOURCE(bag_marginal, km_bag_marginal_work) \
  SOURCE(sketch_sums, km_sketch_sums_work, , 1, 1) \
  SOURCE(sketch_bins, km_sketch_bins_work) \
  SOURCE(sketch_cross, cross_of, , 60) \
  SOURCE(block_rows, km_block_rows_work) \
  SOURCE(bag_flexible, flexible_of, , 0) \
  SOURCE(bag_flexible_ints, flexible_of, , 1) \
  SIZES(match, match_of(n, m, 3, 0)) \
  SIZES(match_columns, match_of(50, m, n, 0)) \
  SIZES(match_free, match_of(n, m, 3, 1)) \
  SIZES(log_density, log_density_of(n, m, 3)) \
  SIZES(log_density_columns, log_density_of(50, n, m)) \
  SIZES(noisy_inner, noisy_of(n, 9, m, 1)) \
  SIZES(noisy_inner_parts, noisy_of(1000, n, m, 0)) \
  SIZES(fda_left_out, left_out_of(n, m)) \
  SIZES(noisy_inner_ints, noisy_ints_of(n, m)) \
  SIZES(day_scores, km_day_scores_work(n, m)) \
  SIZES(day_scores_ints, km_day_scores_iwork(n, m)) \
  SIZES(cut_gains, km_cut_gains_work(n, m, 50)) \
  SIZES(cut_gains_orders, km_cut_gains_work(50, n, m)) \
  SIZES(segment_costs, km_segment_costs_work(n, m)) \
  SIZES(smooth_folds, smooth_of(n, m, 0)) \
  SIZES(smooth_folds_pairs, smooth_of(n, m, 1))

#define SIZES_FUNCTION(name, value)       \
  static size_t name(size_t n, size_t m) { \
    (void) n;                              \
    (void) m;                              \
    return value;                          \
  }
/* Of one set of n points in m columns, and of sets of n and of m points. */
#define SOURCE_FUNCTIONS(name, f, ...)             \
  static size_t name(size_t n, size_t m) {         \
    const km_source source = of(n, 0, m);          \
    return f(&source __VA_ARGS__);                 \
  }                                                \
  static size_t name##_cross(size_t n, size_t m) { \
    const km_source source = of(n, m, 3);          \
    return f(&source __VA_ARGS__);                 \
  }
#define SIZES_ROW(name, value) {#name, name},
#define SOURCE_ROWS(name, f, ...) {#name, name}, {#name " of two", name##_cross},

ALL_WORKS(SIZES_FUNCTION, SOURCE_FUNCTIONS)

typedef struct {
  const char *name;
  size_t (*work)(size_t n, size_t m);
} sized;

static const sized all[] = {ALL_WORKS(SIZES_ROW, SOURCE_ROWS)};

/* Of n + 1 and m, and of n and m + 1. Room for all eigenvectors is not for fewer: they are made in
   the caller's. */
static void grow(const sized *one, size_t n, size_t m) {
  const int pairs = one->work == eigen || one->work == eigen_divide;
  const size_t here = one->work(n, m);
  if (here <= one->work(n + 1, m) && (pairs || here <= one->work(n, m + 1))) return;
  fprintf(stderr, "%s, %lu and %lu:\n", one->name, (unsigned long) n, (unsigned long) m);
  must(0, "less scratch for more");
}

void run_scratch(void) {
  static const size_t others[] = {1, 2, 7, 30, 63, 64, 129, 1000, 2100};
  for (int i = 0; i < LONGEST; i++) {
    ends[i] = PART * (i + 1);
    folds[i] = i % FOLDS + 1;
  }
  for (size_t f = 0; f < sizeof all / sizeof *all; f++)
    for (size_t o = 0; o < sizeof others / sizeof *others; o++)
      for (size_t n = 1; n < LONGEST - 1; n++) {
        grow(all + f, n, others[o]);
        grow(all + f, others[o], n);
      }
}
