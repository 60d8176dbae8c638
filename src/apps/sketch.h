#ifndef KM_SKETCH_H
#define KM_SKETCH_H

#include "core/blocks.h"
#include "core/tile.h"

/* Sums over rows that a kernel sees through landmarks: source->x are the m = source->n landmarks,
   source->y the rows, source->m of them, which may be none. weights: of the rows, or NULL for
   1. */

/* first_j = sum_i w_i k(s_j, x_i); second = sum_i w_i k(S, x_i) k(S, x_i)' unless NULL.
   first: m; second: m x m, both halves filled. */
size_t km_sketch_sums_work(const km_source *source, int weighted, int second);
void km_sketch_sums(const km_source *source, const double *weights, double *first, double *second,
                    double *work, km_poll poll);

/* cross = sum_i w_i k(S, x_i) l(T, y_i)' over as many rows of both. cross: landmarks x landmarks of
   the other. */
size_t km_sketch_cross_work(const km_source *source, const km_source *other);
void km_sketch_cross(const km_source *source, const km_source *other, const double *weights,
                     double *cross, double *work, km_poll poll);

/* sums_jb = sum of w_i k(s_j, x_i) over the rows of bin b. sums: m x bins. */
size_t km_sketch_bins_work(const km_source *source);
void km_sketch_bins(const km_source *source, const km_runs *bins, double *sums, double *work,
                    km_poll poll);

#endif
