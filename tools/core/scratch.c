#include "apps/bags.h"
#include "apps/density.h"
#include "apps/hsic.h"
#include "apps/sketch.h"
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
#include "core/scores.h"
#include "core/small.h"
#include "core/subsets.h"
#include "core/tall.h"
#include "core/tridiag.h"
#include "driver.h"

#include <stdio.h>

/*
 * Scratch never gets less when a size grows: a caller may take it once for the largest of several
 * problems. Each function of sizes is walked along each of them.
 */

static km_source of(size_t n, size_t m, size_t d) {
  static const double x = 0;
  return (km_source){.kernel = {KM_RBF, 0, 0}, .x = &x, .n = n, .y = m ? &x : NULL,
                     .m = m ? m : n, .d = d};
}

#define SIZES size_t n, size_t m
#define WORK(name, value) static size_t name(SIZES) { (void) n; (void) m; return value; }
#define OF_SOURCE(name, f, ...)                              \
  static size_t name(SIZES) {                                \
    const km_source source = of(n, 0, m);                    \
    return f(&source __VA_ARGS__);                           \
  }                                                          \
  static size_t name##_cross(SIZES) {                        \
    const km_source source = of(n, m, 3);                    \
    return f(&source __VA_ARGS__);                           \
  }

WORK(axes, km_axes_work(n))
WORK(back, km_tridiag_back_work(n, m))
WORK(factor_n, km_factor_work(n))
WORK(triangle_solve, km_triangle_solve_work(n, m))
WORK(triangle_inverse, km_triangle_inverse_work(n))
WORK(triangle_gram, km_triangle_gram_work(n))
WORK(resolvent, km_resolvent_work(n))
WORK(product, km_product_work(n, m, 50))
WORK(product_depth, km_product_work(50, n, m))
WORK(tridiag_spectrum, km_tridiag_spectrum_work(n))
WORK(tridiag_solve, km_tridiag_solve_work(n))
WORK(eigen, m > n ? 0 : km_eigen_work(n, m, 0))
WORK(eigen_divide, m > n ? 0 : km_eigen_work(n, m, 1))
WORK(eigen_ints, km_eigen_iwork(n, 1))
WORK(krylov_ints, km_krylov_iwork(n))
WORK(sampled_median, km_sampled_median_work(n))
WORK(sampled_median_ints, km_sampled_median_iwork(n))
WORK(blocks_ints, km_blocks_iwork(n))
WORK(loocv, km_score_loocv_work(n, m))
WORK(relabel, km_relabel_iwork(n))
WORK(tall_n, km_tall_work(n, m))
WORK(tridiag, km_tridiag_work(n))
WORK(permuted_forms, km_permuted_forms_work(n))
WORK(permuted_products, km_permuted_products_work(n, m, 20))
WORK(permuted_tensor, km_permuted_tensor_work(n))
OF_SOURCE(centered_square, km_centered_square_work)
OF_SOURCE(store, km_fold_store_work)
OF_SOURCE(column, km_fold_column_work)
OF_SOURCE(rows_of, km_fold_rows_work)
OF_SOURCE(apply, km_fold_apply_work, , 7)
OF_SOURCE(quad, km_fold_quad_work, , 7)
OF_SOURCE(moments, km_fold_moments_work, , 7)
OF_SOURCE(krylov, km_krylov_work, , 5)
OF_SOURCE(lowrank, km_lowrank_work, , 40)
OF_SOURCE(median, km_median_work)
OF_SOURCE(small_forms, km_small_forms_work, , 9)
OF_SOURCE(subset_forms, km_subset_forms_work, , 9, 2)
OF_SOURCE(tiles, km_walk_work)
OF_SOURCE(bag_marginal, km_bag_marginal_work)
OF_SOURCE(sketch_sums, km_sketch_sums_work, , 1, 1)
OF_SOURCE(sketch_bins, km_sketch_bins_work)

typedef struct {
  const char *name;
  size_t (*work)(SIZES);
} sized;

#define ONE(name) {#name, name}
#define BOTH(name) {#name, name}, {#name " of two", name##_cross}

static const sized all[] = {
    ONE(axes), ONE(back), ONE(factor_n), ONE(triangle_solve), ONE(triangle_inverse),
    ONE(triangle_gram), ONE(resolvent), ONE(product), ONE(product_depth), ONE(tridiag_spectrum),
    ONE(tridiag_solve), ONE(eigen), ONE(eigen_divide), ONE(eigen_ints), ONE(krylov_ints),
    ONE(sampled_median), ONE(sampled_median_ints), ONE(blocks_ints), ONE(loocv), ONE(relabel),
    ONE(tall_n), ONE(tridiag), ONE(permuted_forms), ONE(permuted_products), ONE(permuted_tensor),
    BOTH(centered_square), BOTH(store), BOTH(column), BOTH(rows_of), BOTH(apply), BOTH(quad),
    BOTH(moments), BOTH(krylov), BOTH(lowrank), BOTH(median), BOTH(small_forms), BOTH(subset_forms),
    BOTH(tiles), BOTH(bag_marginal), BOTH(sketch_sums), BOTH(sketch_bins)};

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
  for (size_t f = 0; f < sizeof all / sizeof *all; f++)
    for (size_t o = 0; o < sizeof others / sizeof *others; o++)
      for (size_t n = 1; n < 4200; n++) {
        grow(all + f, n, others[o]);
        grow(all + f, others[o], n);
      }
}
