#ifndef KM_LOWRANK_H
#define KM_LOWRANK_H

#include "core/fold.h"

/* Factors of low rank of a Gram matrix, K ~ FF', from its points or from the matrix. */

/*
 * Pivoted Cholesky factor of a symmetric source: the trace of K - FF' is at most `tolerance` times
 * that of K. Returns the rank, or cap + 1 where cap columns are not enough (they are there all the
 * same), or cap + 2 where K turns out not to be positive semi-definite. f stands at the start of
 * work, packed; pivots: cap, the points in their order from 0 on, at which F is a lower triangle;
 * *left: what is left of the trace.
 */
size_t km_lowrank_work(const km_source *source, size_t cap);
size_t km_lowrank(const km_source *source, double tolerance, size_t cap, int *pivots, double *left,
                  double *work, km_poll poll);

/* A number from 0 to 1, drawn anew. */
typedef double (*km_uniform)(void);

/*
 * Randomly pivoted Cholesky: of a symmetric source up to `most` pivots, each drawn with
 * probabilities like the residuals that those before it leave, from `block` proposals at a time.
 * Fewer where a residual drawn is rounding. Returns how many; *left: share of the trace that is
 * left. Scratch, F and pivots as above, with cap = most.
 */
size_t km_random_pivots(const km_source *source, size_t most, size_t block, km_uniform uniform,
                        int *pivots, double *left, double *work, km_poll poll);

/* out (n x rank) = F. */
void km_lowrank_unpack(size_t n, const double *f, size_t rank, double *out);

/* out (n x rank, row-major) = F, each column minus its mean. */
void km_lowrank_center(size_t n, const double *f, size_t rank, double *out);

#endif
