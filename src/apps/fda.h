#ifndef KM_FDA_H
#define KM_FDA_H

#include "core/threads.h"

#include <stddef.h>

/* Fisher discriminants: points left out of the fit. */

/*
 * n points in classes 0 .. classes - 1 (codes from 1 on) of two points or more, with class means
 * M_c less the overall one and d_i = k_i - M_c of a point's own class. LL' = N + rI with the
 * scatter N = sum of d_i d_i', or I, where the scatter is not counted.
 */
typedef struct {
  size_t n, classes;
  const int *of;
  const double *counts; /* points of each class */
  const double *means;  /* M, n x classes */
  const double *within; /* d, n x n */
  const double *factor; /* L, n x n, zeros above; NULL: I */
} km_fda_fit;

/* (z_i - m_c)'(z_i - m_c) of the fit without point i on axes with W'(N + rI)W = I, where z_i is the
   point and m_c are the class means; distances: n x classes. Results do not depend on the number of
   threads. */
size_t km_fda_left_out_work(const km_fda_fit *fit);
void km_fda_left_out(const km_fda_fit *fit, double *distances, double *work, km_poll poll);

#endif
