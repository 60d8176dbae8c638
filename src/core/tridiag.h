#ifndef KM_TRIDIAG_H
#define KM_TRIDIAG_H

#include "core/threads.h"

#include <stddef.h>

/* The tridiagonal form of a symmetric matrix, its first axis along the ones vector. */

/*
 * K = Q T Q' with Q e_1 = e/sqrt(n): T tridiagonal. On entry a is K (n x n, both halves), on exit
 * it holds the reflectors. diag: n; off: n - 1 (n >= 2), tau: n.
 */
size_t km_tridiag_work(size_t n);
void km_tridiag(size_t n, double *a, double *diag, double *off, double *tau, double *work,
                km_poll poll);

/* Are the reflectors those of core/plain.h, after H? */
int km_tridiag_plain(size_t n);

/* y <- Q y, from the reflectors that km_tridiag left. y: n. */
void km_tridiag_apply(size_t n, const double *a, const double *tau, double *y);

/* y <- Hy for the first reflector, H e_1 = e/sqrt(n). y: n >= 2. */
void km_first_reflector(size_t n, double *y);

#endif
