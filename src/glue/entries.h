#ifndef KM_ENTRIES_H
#define KM_ENTRIES_H

#include <Rinternals.h>

/* What R can call. */

SEXP r_threads(SEXP limit);
SEXP r_work_per_thread(SEXP work);
SEXP r_openmp(void);
SEXP r_isa(SEXP highest);
SEXP r_exp(SEXP x);

SEXP r_kernel_store(SEXP source);
SEXP r_kernel_rows(SEXP source);
SEXP r_kernel_apply(SEXP source, SEXP v);
SEXP r_kernel_quad(SEXP source, SEXP u, SEXP v);
SEXP r_kernel_moments(SEXP source, SEXP u);
SEXP r_kernel_diagonal(SEXP source);
SEXP r_column_ranges(SEXP x);
SEXP r_column_spreads(SEXP x);
SEXP r_all_finite(SEXP x);
SEXP r_kernel_median(SEXP source);
SEXP r_kernel_sampled_median(SEXP source, SEXP pairs);

SEXP r_sequence(SEXP n);
SEXP r_permutations(SEXP sizes, SEXP count, SEXP blocks);

SEXP r_subsets(SEXP permutations, SEXP columns, SEXP sizes, SEXP sets, SEXP blocks, SEXP observed);
SEXP r_subset_sums(SEXP subsets, SEXP count, SEXP v);
SEXP r_subset_forms(SEXP source, SEXP subsets, SEXP count, SEXP rates);
SEXP r_subset_spectra(SEXP rows, SEXP subsets, SEXP count, SEXP unit, SEXP units, SEXP outside,
                      SEXP most, SEXP kept, SEXP least);
SEXP r_small_forms(SEXP source, SEXP members);
SEXP r_block_sums(SEXP source, SEXP sizes, SEXP weights, SEXP column_sizes, SEXP column_weights,
                  SEXP moments);
SEXP r_block_rows(SEXP source, SEXP sizes);

SEXP r_tridiag(SEXP k);
SEXP r_tridiag_apply(SEXP reflectors, SEXP tau, SEXP y);
SEXP r_tridiag_spectrum(SEXP diagonal, SEXP off, SEXP want_first);
SEXP r_tridiag_solve(SEXP diagonal, SEXP off, SEXP lambda, SEXP x);
SEXP r_eigen(SEXP k, SEXP count);
SEXP r_range(SEXP k);
SEXP r_centered(SEXP source, SEXP at, SEXP norm2);
SEXP r_centered_square(SEXP source, SEXP at, SEXP norm2);
SEXP r_krylov(SEXP source, SEXP at, SEXP norm2, SEXP square, SEXP count);

SEXP r_product(SEXP a, SEXP b, SEXP turned_a, SEXP turned_b);
SEXP r_column_dots(SEXP a, SEXP b);
SEXP r_factor(SEXP k, SEXP shift);
SEXP r_triangle_solve(SEXP l, SEXP b, SEXP how);
SEXP r_triangle_inverse(SEXP l);
SEXP r_resolvent(SEXP k, SEXP shift, SEXP times, SEXP plus);
SEXP r_left_out(SEXP z, SEXP weights, SEXP sizes, SEXP b, SEXP shares, SEXP functional_sizes,
                SEXP inverse, SEXP values);

SEXP r_score_gcv(SEXP gamma, SEXP q, SEXP trace, SEXP lambda);
SEXP r_score_printed(SEXP gamma, SEXP q, SEXP lambda);
SEXP r_score_loocv(SEXP gamma, SEXP vectors, SEXP along, SEXP diagonal, SEXP target, SEXP norm2,
                   SEXP lambda);

SEXP r_pivoted(SEXP source, SEXP tolerance, SEXP most, SEXP partial);
SEXP r_lowrank(SEXP source, SEXP cap);
SEXP r_random_pivots(SEXP source, SEXP most, SEXP block);

SEXP r_sketch_sums(SEXP source, SEXP weights, SEXP second);
SEXP r_sketch_cross(SEXP source, SEXP other, SEXP weights);
SEXP r_sketch_bins(SEXP source, SEXP sizes);

SEXP r_permuted_forms(SEXP k, SEXP l, SEXP permutations);
SEXP r_permuted_grid(SEXP k, SEXP l, SEXP permutations);
SEXP r_permuted_products(SEXP a, SEXP b, SEXP permutations);
SEXP r_permuted_sums(SEXP a, SEXP b, SEXP permutations);
SEXP r_permuted_tensor(SEXP kernels, SEXP rows, SEXP permutations);

SEXP r_bag_flexible(SEXP source, SEXP sizes, SEXP lambda);
SEXP r_bag_marginal(SEXP source, SEXP sizes, SEXP noise, SEXP column_sizes, SEXP column_noise);

SEXP r_bag_noisy(SEXP x, SEXP sizes, SEXP weights, SEXP covariances, SEXP y, SEXP y_sizes,
                 SEXP y_weights, SEXP y_covariances);

SEXP r_smooth_folds(SEXP x, SEXP fold, SEXP lost, SEXP unseen, SEXP grid, SEXP weights,
                    SEXP pairs);

SEXP r_fda_left_out(SEXP of, SEXP counts, SEXP means, SEXP within, SEXP factor);

SEXP r_match(SEXP source, SEXP weights, SEXP noise, SEXP pairs, SEXP shares, SEXP means,
             SEXP variances);
SEXP r_match_free(SEXP source, SEXP weights, SEXP noise, SEXP pairs, SEXP m, SEXP u);
SEXP r_log_density(SEXP x, SEXP shares, SEXP means, SEXP variances);

SEXP r_lower_ends(SEXP values, SEXP left_out, SEXP rest);

SEXP r_cut_gains(SEXP x, SEXP orders, SEXP least);
SEXP r_segments(SEXP x, SEXP cuts, SEXP least, SEXP most);

SEXP r_day_scores(SEXP x, SEXP noise);
SEXP r_neighbors(SEXP x, SEXP ends);

SEXP r_rank_bets(SEXP ranks, SEXP of, SEXP k);
SEXP r_weigh(SEXP logs, SEXP start, SEXP count, SEXP scores);
SEXP r_normal_means(SEXP n, SEXP d, SEXP theta, SEXP draws);

#endif
