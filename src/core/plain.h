#ifndef KM_PLAIN_H
#define KM_PLAIN_H

#include <stddef.h>

/* The tridiagonal form of a symmetric matrix by one reflection after the other. */

/*
 * A = Q T Q', Q e_1 = e_1. a (n x n, both halves) is overwritten: column k holds, below the
 * diagonal, v of its reflection I - tau_k v v'. diag, tau, w: n each; off: n - 1. Opens no region;
 * 8 n^3 / 3 flops in loops over whole columns.
 */
void km_plain_tridiag(size_t n, double *a, double *diag, double *off, double *tau, double *w);

/* Squares of entries must not over- or underflow: A of another size is divided by 2^result. */
int km_plain_scale(size_t n, double *a);

/* A <- (I - tau v v') A (I - tau v v'). w: n. */
void km_plain_reflection(size_t n, double *a, const double *v, double tau, double *w);

/* q (n x n) <- Q */
void km_plain_axes(size_t n, const double *a, const double *tau, double *q);

/* Y <- QY. y: n x count, columns n apart. */
void km_plain_apply(size_t n, const double *a, const double *tau, size_t count, double *y);

#endif
