#ifndef KM_CHOLESKY_H
#define KM_CHOLESKY_H

#include "core/public.h"
#include "core/threads.h"

#include <stddef.h>

/* Cholesky factors of large matrices, and what is solved by them. */

/*
 * l <- lower factor L of K + shift I = LL', zeros above; k: n x n, of which the lower half is read.
 * KM_NOT_POSITIVE where a pivot is no positive number: info is its place, from 1 on.
 */
size_t km_factor_work(size_t n);
km_status km_factor(size_t n, const double *k, double shift, double *l, double *work, int *info,
                    km_poll poll);

/* x <- L^{-1} x, or L'^{-1} x if transposed. l: n x n, of which the lower half is read, its columns
   ldl apart; x: n x p, its columns ldx apart. */
size_t km_triangle_solve_work(size_t n, size_t p);
void km_triangle_solve(size_t n, size_t p, const double *l, size_t ldl, int transposed, double *x,
                       size_t ldx, double *work, km_poll poll);

/* inverse <- L^{-1}, zeros above. */
size_t km_triangle_inverse_work(size_t n);
void km_triangle_inverse(size_t n, const double *l, double *inverse, double *work, km_poll poll);

/* gram <- L'L, of a lower triangle with zeros above: n^3 / 3 flops. With the inverse of a factor
   for L, the inverse of what was factored. */
size_t km_triangle_gram_work(size_t n);
void km_triangle_gram(size_t n, const double *l, double *gram, double *work, km_poll poll);

/* out <- times (K + shift I)^{-1} + plus I, from the lower half of K; as km_factor where that is
   not positive definite. room: n x n. */
size_t km_resolvent_work(size_t n);
km_status km_resolvent(size_t n, const double *k, double shift, double times, double plus,
                       double *out, double *room, double *work, int *info, km_poll poll);

#endif
