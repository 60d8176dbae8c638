#ifndef KM_SCORES_H
#define KM_SCORES_H

#include "core/threads.h"

#include <stddef.h>

/* Leave-one-out scores of the flexible shrinkage estimator (F-KMSE) along a path of lambda. */

/* Generalized score from gamma and q_j = (u_j'e)^2 alone. gamma, q: n; lambda, score: count. */
void km_score_gcv(size_t n, const double *gamma, const double *q, double trace, size_t count,
                  const double *lambda, double *score);

/* The score of Theorem 4 as printed. gamma, q: n. */
void km_score_printed(size_t n, const double *gamma, const double *q, size_t count,
                      const double *lambda, double *score);

/*
 * Exact leave-one-out score. gamma: rank; u: n x rank, the eigenvectors, but for some whose
 * eigenvalue is 0; diagonal: n, K_ii; target: n, f*(x_i), or NULL for f* = 0; along: U'e, then
 * U'target unless NULL; target_norm2 = |f*|^2; lambda, score: count.
 */
size_t km_score_loocv_work(size_t n, size_t count);
void km_score_loocv(size_t n, size_t rank, const double *gamma, const double *u,
                    const double *along, const double *diagonal, const double *target,
                    double target_norm2, size_t count, const double *lambda, double *score,
                    double *work, km_poll poll);

#endif
