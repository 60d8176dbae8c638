#ifndef KM_SOURCE_H
#define KM_SOURCE_H

#include "core/kernel.h"

/*
 * Where the values of a Gram matrix come from: a kernel and two sets of points, which are centered
 * and scaled first. y = NULL (then m = n) is the symmetric matrix of x alone. Or a symmetric matrix
 * k in place of points (x = y = NULL, m = n, d = 0); then the kernel is not looked at.
 */
typedef struct {
  km_kernel kernel;
  const double *center; /* d: subtracted from every point */
  const double *scale;  /* d: then each coordinate is multiplied by this (1 / bandwidth) */
  const double *x;      /* n x d, column-major */
  size_t n;
  const double *y; /* m x d, column-major, or NULL */
  size_t m;
  size_t d;
  const double *k; /* n x n, or NULL */
} km_source;

#endif
