#ifndef KM_EIGEN_H
#define KM_EIGEN_H

#include "core/public.h"
#include "core/threads.h"

#include <stddef.h>

/* Spectra of symmetric matrices, computed no further than they are needed. */

/*
 * Eigenvalues of T (decreasing) and, unless first is NULL, the first entries of its eigenvectors
 * (each made >= 0): first_j = |u_j' e| / sqrt(n). values, first: n; work: km_tridiag_spectrum_work.
 */
size_t km_tridiag_spectrum_work(size_t n);
km_status km_tridiag_spectrum(size_t n, const double *diag, const double *off, double *values,
                              double *first, double *work);

/* x <- (T + lambda I)^{-1} x for T + lambda I positive definite. x: n. */
size_t km_tridiag_solve_work(size_t n);
km_status km_tridiag_solve(size_t n, const double *diag, const double *off, double lambda,
                           double *x, double *work);

/*
 * The `count` leading eigenpairs (n: all) of a symmetric matrix, by km_axes where n is small, else
 * by km_tridiag, LAPACK's dstemr and km_tridiag_back: 4 n^3 / 3 + 5 n^2 count flops, 480 n +
 * min(count, 1600) n doubles of scratch.
 * poll is asked by the first and the last step, not by LAPACK, which takes O(n count). a: n x n,
 * both halves, destroyed; values: count, decreasing; vectors: n x count, with the signs of
 * km_fix_sign; work, iwork: km_eigen_work, km_eigen_iwork. KM_NO_CONVERGENCE: dstemr fails, as it
 * does where very many eigenvalues are equal; then call again with the matrix and divide = 1, which
 * needs up to 2 n^2 of scratch and, in LAPACK's integers, n <= 46338.
 */
size_t km_eigen_work(size_t n, size_t count, int divide);
size_t km_eigen_iwork(size_t n, int divide);
km_status km_eigen(size_t n, double *a, size_t count, double *values, double *vectors, int divide,
                   double *work, int *iwork, km_poll poll);

/*
 * The same of a positive semi-definite matrix: all n values, but vectors (n x n) only for the *rank
 * that are more than rounding, n eps times the largest, if these are less than 0.9 n, at least one.
 */
km_status km_eigen_range(size_t n, double *a, double *values, double *vectors, size_t *rank,
                         int divide, double *work, int *iwork, km_poll poll);

/* Makes u (n) positive at its first entry within 1e-8 of the largest in absolute value. */
void km_fix_sign(size_t n, double *u);

#endif
