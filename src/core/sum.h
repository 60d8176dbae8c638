#ifndef KM_SUM_H
#define KM_SUM_H

#include "core/arithmetic.h"

/* Tiles of any kernel: of one family, or sums of products of several, part by part. */

/* Doubles that a tile is evaluated in: its own, and behind it those of its parts. */
size_t km_tile_room(const km_kernel *kernel);

/* Half norms of a point: one for each part. */
size_t km_norms(const km_kernel *kernel);

/* Operations of a kernel value of d features. */
double km_value_cost(const km_kernel *kernel, size_t d);

/* Has the kernel values that half norms are good for? */
int km_takes_norms(const km_kernel *kernel);

/* The half norms of packed points, of part p from p * apart on; of parts that take none 0. count:
   a multiple of KM_PACK. */
void km_half_norms(const km_kernel *kernel, const double *points, size_t count, size_t d,
                   size_t apart, double *half_norms);

/* May RBF values with this second set be evaluated by inner products? It has half norms then, and
   lies near the center. */
int km_near_center(const km_kernel *kernel, const km_point_set *set);

/* Evaluates a tile; columns beyond the last point are set to 0. job->k: km_tile_room(kernel). */
void km_tile_values(const km_kernel *kernel, const km_tile_job *job);

/* The diagonal of a symmetric source. diagonal: n. */
void km_diagonal(const km_source *source, double *diagonal);

#endif
