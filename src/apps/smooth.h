#ifndef KM_SMOOTH_H
#define KM_SMOOTH_H

#include "core/public.h"
#include "core/threads.h"

#include <stddef.h>

/* Smoothing about the mean: what it is worth on points that were left out. */

/*
 * n points in p coordinates, RBF kernel of bandwidth 1, in folds 0 .. folds - 1 (codes from 1 on,
 * none of which holds all points). A column l that is constant without fold lost_l - 1 has no
 * variance there and does not count as a direction; unseen: of directions without a coordinate,
 * because no point leaves 0 in them, those that count in each fold, then those that each fold loses
 * (folds + 1 numbers).
 */
typedef struct {
  size_t n, p, folds;
  const double *x; /* n x p */
  const int *fold, *lost, *unseen;
  size_t h_count;
  const double *h;       /* within [0, 1] */
  size_t others;         /* other candidates, of plain weights */
  const double *weights; /* n x others x folds, 0 at the points left out; or NULL */
  int pairs;             /* are inner products of all pairs of h wanted? */
} km_smooth_job;

/*
 * Of mu_h without the points of a fold, c = 1: at_hi, its values at these points; norms_hf, its
 * squared norm, or norms_ghf, all inner products; cross_hqf, its inner products with the other
 * candidates (NULL where there are none).
 */
typedef struct {
  double *at, *norms, *cross;
} km_smooth_sums;

/* Results do not depend on the number of threads. KM_NO_CONVERGENCE: no eigenvalues of S. */
size_t km_smooth_folds_work(const km_smooth_job *job);
km_status km_smooth_folds(const km_smooth_job *job, const km_smooth_sums *out, double *work,
                          km_poll poll);

#endif
