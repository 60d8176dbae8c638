#ifndef KM_SHRUNK_H
#define KM_SHRUNK_H

#include <stddef.h>

/* Covariances of points, in units in which the identity is what noise alone makes of them. */

/*
 * S = sum x_i x_i' / freedom of n deviations, and the rho, returned, with which (1 - rho) S + rho I
 * is nearest to what S estimates. x: r x n, a deviation a column; s: r x r, both halves filled.
 */
double km_shrunk_moments(size_t n, size_t r, const double *x, double freedom, double *s);

/* The lower Cholesky factor of (1 - rho) S + rho I, rho > 0, in the lower half of s. */
void km_factor_shrunk(size_t r, double rho, double *s);

/* x <- L^{-1} x for each of n columns. l: r x r, x: r x n. */
void km_whiten(size_t n, size_t r, const double *l, double *x);

#endif
