#ifndef KM_MEDIAN_H
#define KM_MEDIAN_H

#include "core/tile.h"

/* The exact median of all pairwise distances, selected over a fold. */

typedef struct {
  double median;       /* of the n(n-1)/2 distances (mean of the two middle ones) */
  double min_positive; /* smallest distance > 0, 0 if none; sought only if the median is 0 */
} km_median;

/* The family is KM_SQDIST or KM_L1DIST, the source symmetric with n >= 2. */
size_t km_median_work(const km_source *source);
km_median km_pairwise_median(const km_source *source, double *work, km_poll poll);

/* Distances of given pairs. first, second: 0-based, count of each; out: count. */
void km_pair_distances(const km_source *source, const int *first, const int *second, size_t count,
                       double *out);

/* Median and smallest positive value of a vector, which is reordered. count >= 1. */
km_median km_median_of(double *values, size_t count);

#endif
