#ifndef KM_LEFT_OUT_H
#define KM_LEFT_OUT_H

#include "core/blocks.h"

/* Ridge regressions without a unit of rows. */

/*
 * n rows z of a regression in r axes, with weights, and the rows b over which a functional of it is
 * averaged, each with its share of the mean; `ridges` penalties. Units follow one another: the u-th
 * has run u of the rows and run u of those of the functional; either may be empty.
 */
typedef struct {
  size_t n, more, r, ridges;
  km_runs rows, functional; /* with the weights, positive, and the shares */
  const double *z;          /* n x r */
  const double *b;          /* more x r */
  const double *inverse;    /* r x ridges: of the normal matrix Z'WZ + penalty, which is diagonal */
} km_ridge;

/* A column for each penalty; alpha is the function whose mean with weights is that functional. */
typedef struct {
  double *alpha, *residuals;        /* of the rows, n x ridges */
  double *of_alpha, *of_regression; /* the functional of both, more x ridges */
} km_ridge_values;

/* Turns values of the fit to all rows into those of fits without the unit of each row. Where the
   others say nothing of a direction, alpha and residuals along it are 0. Results do not depend on
   the number of threads. */
size_t km_left_out_work(const km_ridge *ridge);
void km_left_out(const km_ridge *ridge, const km_ridge_values *values, double *work, km_poll poll);

#endif
