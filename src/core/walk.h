#ifndef KM_WALK_H
#define KM_WALK_H

#include "core/tile.h"

/* A walk over all tiles by workers that have an accumulator each, or each some rows of one. */

/* How many accumulators of `size` doubles a consumer needs: it adds to number worker % slots. */
size_t km_walk_slots(const km_source *source, double size);

/* Evaluates every tile once and hands it to the consumer. slots: from km_walk_slots, or
   KM_WORKERS, an accumulator for each worker: then in a rectangular walk a worker has all rows, in
   their order, of a share of the columns. cost: the operations of the consumer on one value. */
void km_walk(const km_source *source, size_t slots, double cost, km_consumer consume, void *sink,
             double *work, km_poll poll);

/* The same on one thread: for short walks that come one after the other, where threads would wait
   for each other longer than they work. */
void km_walk_alone(const km_source *source, size_t slots, double cost, km_consumer consume,
                   void *sink, double *work);

/* Rows i0 .. i1-1 and columns j0 .. j1-1, which hold all tiles of a worker; none if i0 = i1. */
typedef struct {
  size_t i0, i1, j0, j1;
} km_walk_part;

km_walk_part km_walk_part_of(const km_source *source, size_t slots, size_t worker);

#endif
