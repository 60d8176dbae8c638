#ifndef KM_KRYLOV_H
#define KM_KRYLOV_H

#include "core/center.h"
#include "core/public.h"

/* The leading eigenpairs of a centered Gram matrix that is never formed. */

/* Columns of the basis, at most, for so many eigenpairs: worth it for n beyond a few times that. */
size_t km_krylov_basis(size_t count);

/*
 * values: count, decreasing; vectors: n x count, signs as of km_eigen. residual: the largest
 * |K^c v - value v|; products: blocks that K^c was multiplied by. square: of km_centered_square.
 * source: symmetric. KM_NO_CONVERGENCE: the residuals stayed above 1e-10
 * values[0] and above the rounding of a product, 64 eps n max |m_i|.
 */
size_t km_krylov_work(const km_source *source, size_t count);
size_t km_krylov_iwork(size_t count);
km_status km_krylov(const km_source *source, km_centering mean, double square, size_t count,
                    double *values, double *vectors, double *residual, int *products, double *work,
                    int *iwork, km_poll poll);

#endif
