#ifndef KM_LOWRANK_H
#define KM_LOWRANK_H

#include "core/fold.h"

/* Factors of low rank of a Gram matrix, K ~ FF', from its points or from the matrix. */

/*
 * Pivoted Cholesky factor of a symmetric source: the trace of K - FF' is at most `tolerance` times
 * that of K. Returns the rank, or cap + 1 where cap columns are not enough. f stands at the start
 * of work, packed; pivots: cap, the points in their order from 0 on, at which F is a lower
 * triangle; *left: what is left of the trace.
 */
size_t km_lowrank_work(const km_source *source, size_t cap);
size_t km_lowrank(const km_source *source, double tolerance, size_t cap, int *pivots, double *left,
                  double *work, km_poll poll);

/* out (n x rank) = F. */
void km_lowrank_unpack(size_t n, const double *f, size_t rank, double *out);

/* out (n x rank, row-major) = F, each column minus its mean. */
void km_lowrank_center(size_t n, const double *f, size_t rank, double *out);

#endif
