#ifndef KM_PROFILES_H
#define KM_PROFILES_H

#include "core/public.h"
#include "core/subsets.h"

/* Spectra of many subsets of the points of a Gram matrix (the samples of a permutation test). */

/* Subsets of `units`, see core/subsets.h, or what is left without them: of points where unit is
   NULL, or those whose unit (n codes from 1) is in them. most: points of the largest. */
typedef struct {
  const uint64_t *words;
  size_t units, count, most;
  const int *unit;
  int outside;
} km_point_subsets;

/* What points have: rows of features (n x r, r < n), or of their Gram matrix (r = n). */
typedef struct {
  size_t n, r;
  const double *rows;
} km_point_rows;

/*
 * The `kept` largest eigenvalues of the covariance operator of each subset about its own mean: of
 * its features, or of its centered Gram matrix divided by its m points; 0 in place of those below
 * `least`, or where there are fewer. values: kept x count.
 */
size_t km_subset_spectra_work(km_point_rows points, size_t most);
km_status km_subset_spectra(km_point_rows points, km_point_subsets of, size_t kept, double least,
                            double *values, double *work, km_poll poll);

#endif
