#ifndef KM_CHANGES_H
#define KM_CHANGES_H

#include "core/threads.h"

#include <stddef.h>

/* Where a sequence of bins, each of them a point, changes its mean. */

/*
 * What one cut gains, for each of `count` orders of n bins: the squared distance of the means
 * before and after it, times the harmonic weight of their sizes, in a metric that is made of the
 * differences of neighbors in that order. x: r x n, a bin a column, of mean 0; orders: n x count,
 * the bins from 1 on; least: bins of a part; gains: (n - 1) x count, 0 where a part is shorter.
 */
typedef struct {
  size_t n, r, count, least;
  const double *x;
  const int *orders;
} km_cuts;

size_t km_cut_gains_work(size_t n, size_t r, size_t count);
void km_cut_gains(const km_cuts *cuts, double *gains, double *work, km_poll poll);

/*
 * costs_ji, j >= i: the squared distances of bins i .. j from their mean, in a metric made of the
 * differences of neighbors but for those at `count` cuts, the last bins before them (from 1 on).
 * x: r x n, of mean 0; costs: n x n, what is above the diagonal is of no use.
 */
size_t km_segment_costs_work(size_t n, size_t r);
void km_segment_costs(size_t n, size_t r, const double *x, size_t count, const int *cuts,
                      double *costs, double *work, km_poll poll);

/*
 * The least total cost of 1, ..., `most` segments of at least `least` bins each, INFINITY where
 * there are none; last: n x most, for so many segments of bins 1 .. j where the last one begins,
 * from 1 on, or 0. totals: most; work: n most.
 */
void km_segments(size_t n, const double *costs, size_t least, size_t most, double *totals,
                 int *last, double *work, km_poll poll);

#endif
