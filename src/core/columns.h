#ifndef KM_COLUMNS_H
#define KM_COLUMNS_H

#include <stddef.h>

/* What the columns of a data matrix tell before any kernel is evaluated. */

/* The smallest and the largest value of each column. x: n x d, n >= 1; ends: 2 x d. */
void km_column_ranges(const double *x, size_t n, size_t d, double *ends);

/* The logarithm of the standard deviation of each column, -Inf of one whose values are all the
   same; no square over- or underflows. x: n x d, n >= 2; logs: d. */
void km_column_spreads(const double *x, size_t n, size_t d, double *logs);

/* Is none of n numbers NaN or infinite? */
int km_all_finite(const double *x, size_t n);

#endif
