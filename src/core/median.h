#ifndef KM_MEDIAN_H
#define KM_MEDIAN_H

#include "core/permute.h"
#include "core/tile.h"

/* The exact median of all pairwise distances, selected over a fold. */

typedef struct {
  double median;   /* of the n(n-1)/2 distances (mean of the two middle ones) */
  double positive; /* of those > 0, 0 if there are none; like the other where that is not 0 */
} km_median;

/* The family is KM_SQDIST or KM_L1DIST, the source symmetric with n >= 2. */
size_t km_median_work(const km_source *source);
km_median km_pairwise_median(const km_source *source, double *work, km_poll poll);

/* The same of `pairs` pairs of different points that are drawn, pairs >= 1. */
size_t km_sampled_median_work(size_t pairs);
size_t km_sampled_median_iwork(size_t pairs);
km_median km_sampled_median(const km_source *source, size_t pairs, km_draw draw, double *work,
                            int *iwork, km_poll poll);

#endif
