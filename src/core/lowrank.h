#ifndef KM_LOWRANK_H
#define KM_LOWRANK_H

#include "core/fold.h"

/* Factors of low rank of a Gram matrix, K ~ FF', from its points or from the matrix. */

/*
 * Pivoted incomplete Cholesky factor f of a symmetric source: what is left of the trace is at most
 * 1e-13 of it. Returns the rank, or cap + 1 where cap columns are not enough. f (n x cap,
 * row-major) stands at the start of work, its first `rank` columns are filled.
 */
size_t km_lowrank_work(const km_source *source, size_t cap);
size_t km_lowrank(const km_source *source, size_t cap, double *work, km_poll poll);

/* factor (n x rank, row-major) = the first rank columns of f (n x cap), each minus its mean. */
void km_lowrank_center(size_t n, const double *f, size_t cap, size_t rank, double *factor);

#endif
