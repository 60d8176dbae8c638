#ifndef KM_NOISY_H
#define KM_NOISY_H

#include "core/blocks.h"
#include "core/public.h"

/* Inner products of samples with normal noise of any covariance. */

/* Parts that stand one after the other: sum_i w_i E k(x_i + e, .) over the points of a run, e of
   the covariance of the part. */
typedef struct {
  const double *x; /* n x d, in units of the bandwidths */
  size_t n;
  km_runs parts;             /* with weights */
  const double *covariances; /* d x d x parts, symmetric */
} km_noisy;

/*
 * inner_ab = sum_ij u_i v_j |C|^(-1/2) exp(-(x_i - y_j)'C^{-1}(x_i - y_j) / 2), C = I + S_a + S_b,
 * over the points of part a of the rows and part b of the columns. columns: NULL if they are the
 * rows; inner: parts of the rows x parts of the columns. Pairs of parts are dealt to threads.
 * KM_NOT_POSITIVE: a matrix C is not positive definite.
 */
size_t km_noisy_inner_work(size_t d, const km_noisy *rows, const km_noisy *columns);
size_t km_noisy_inner_iwork(const km_noisy *rows, const km_noisy *columns);
km_status km_noisy_inner(size_t d, const km_noisy *rows, const km_noisy *columns, double *inner,
                         double *work, int *iwork, km_poll poll);

#endif
