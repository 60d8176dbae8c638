#ifndef KM_AXES_H
#define KM_AXES_H

#include "core/public.h"

#include <stddef.h>

/* The axes of a small symmetric matrix, on the thread that asks. */

/*
 * All eigenpairs of a (n x n, both halves, destroyed), in no order, exact up to n eps |a|. Calls no
 * LAPACK, and no region opens: right within one, up to some hundred rows; for large matrices see
 * core/eigen.h. values: n; vectors: n x n. KM_NO_CONVERGENCE where entries are no numbers.
 */
size_t km_axes_work(size_t n);
km_status km_axes(size_t n, double *a, double *values, double *vectors, double *work);

#endif
