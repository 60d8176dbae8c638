#include "core/public.h"
#include "glue/entries.h"

#include <R.h>
#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>
#include <Rinternals.h>

#define ENTRY(name, arguments) {#name, (DL_FUNC) &name, arguments}

static const R_CallMethodDef entries[] = {
  ENTRY(r_threads, 1),
  ENTRY(r_work_per_thread, 1),
  ENTRY(r_openmp, 0),
  ENTRY(r_isa, 1),
  ENTRY(r_exp, 1),
  ENTRY(r_kernel_store, 1),
  ENTRY(r_kernel_rows, 1),
  ENTRY(r_kernel_apply, 2),
  ENTRY(r_kernel_quad, 3),
  ENTRY(r_kernel_moments, 2),
  ENTRY(r_kernel_diagonal, 1),
  ENTRY(r_column_ranges, 1),
  ENTRY(r_column_spreads, 1),
  ENTRY(r_all_finite, 1),
  ENTRY(r_kernel_median, 1),
  ENTRY(r_kernel_sampled_median, 2),
  ENTRY(r_sequence, 1),
  ENTRY(r_permutations, 3),
  ENTRY(r_subsets, 6),
  ENTRY(r_subset_sums, 3),
  ENTRY(r_subset_forms, 4),
  ENTRY(r_subset_spectra, 9),
  ENTRY(r_small_forms, 2),
  ENTRY(r_block_sums, 6),
  ENTRY(r_block_rows, 2),
  ENTRY(r_tridiag, 1),
  ENTRY(r_tridiag_apply, 3),
  ENTRY(r_tridiag_spectrum, 3),
  ENTRY(r_tridiag_solve, 4),
  ENTRY(r_eigen, 2),
  ENTRY(r_range, 1),
  ENTRY(r_centered, 3),
  ENTRY(r_centered_square, 3),
  ENTRY(r_krylov, 5),
  ENTRY(r_product, 4),
  ENTRY(r_column_dots, 2),
  ENTRY(r_factor, 2),
  ENTRY(r_triangle_solve, 3),
  ENTRY(r_triangle_inverse, 1),
  ENTRY(r_resolvent, 4),
  ENTRY(r_left_out, 8),
  ENTRY(r_score_gcv, 4),
  ENTRY(r_score_printed, 3),
  ENTRY(r_score_loocv, 7),
  ENTRY(r_pivoted, 4),
  ENTRY(r_lowrank, 2),
  ENTRY(r_random_pivots, 3),
  ENTRY(r_sketch_sums, 3),
  ENTRY(r_sketch_cross, 3),
  ENTRY(r_sketch_bins, 2),
  ENTRY(r_permuted_forms, 3),
  ENTRY(r_permuted_grid, 3),
  ENTRY(r_permuted_products, 3),
  ENTRY(r_permuted_sums, 3),
  ENTRY(r_permuted_tensor, 3),
  ENTRY(r_bag_flexible, 3),
  ENTRY(r_bag_marginal, 5),
  ENTRY(r_bag_noisy, 8),
  ENTRY(r_smooth_folds, 7),
  ENTRY(r_fda_left_out, 5),
  ENTRY(r_match, 7),
  ENTRY(r_match_free, 6),
  ENTRY(r_log_density, 4),
  ENTRY(r_lower_ends, 3),
  ENTRY(r_cut_gains, 3),
  ENTRY(r_segments, 4),
  ENTRY(r_day_scores, 2),
  ENTRY(r_neighbors, 2),
  ENTRY(r_rank_bets, 3),
  ENTRY(r_weigh, 4),
  ENTRY(r_normal_means, 4),
  {NULL, NULL, 0}};

/* What other packages can call: the routines of kernmean.h. */

#define CALLABLE(name) {#name, (DL_FUNC) &name}

static const struct {
  const char *name;
  DL_FUNC routine;
} callables[] = {
  CALLABLE(km_abi),
  CALLABLE(km_fold_store_work),
  CALLABLE(km_fold_store),
  CALLABLE(km_diagonal),
  CALLABLE(km_fold_rows_work),
  CALLABLE(km_fold_rows),
  CALLABLE(km_fold_apply_work),
  CALLABLE(km_fold_apply),
  CALLABLE(km_fold_quad_work),
  CALLABLE(km_fold_quad),
  CALLABLE(km_subset_words),
  CALLABLE(km_subset_sums),
  CALLABLE(km_subset_forms_work),
  CALLABLE(km_subset_forms),
  CALLABLE(km_invert),
  CALLABLE(km_permuted_forms_work),
  CALLABLE(km_permuted_forms),
  CALLABLE(km_lowrank_work),
  CALLABLE(km_lowrank),
  CALLABLE(km_lowrank_unpack),
  CALLABLE(km_eigen_work),
  CALLABLE(km_eigen_iwork),
  CALLABLE(km_eigen)};

void attribute_visible R_init_kernmean(DllInfo *dll);

void attribute_visible R_init_kernmean(DllInfo *dll) {
  km_start();
  for (size_t i = 0; i < sizeof callables / sizeof *callables; i++)
    R_RegisterCCallable("kernmean", callables[i].name, callables[i].routine);
  R_registerRoutines(dll, NULL, entries, NULL, NULL);
  R_useDynamicSymbols(dll, FALSE);
  R_forceSymbols(dll, TRUE);
}
