#ifndef KM_BACK_H
#define KM_BACK_H

#include "core/tridiag.h"

/* From vectors in the axes of the tridiagonal form to those of the matrix. */

/* Z <- QZ, from the reflectors that km_tridiag left in a and tau. z: n x count. */
size_t km_tridiag_back_work(size_t n, size_t count);
void km_tridiag_back(size_t n, const double *a, const double *tau, size_t count, double *z,
                     double *work, km_poll poll);

#endif
