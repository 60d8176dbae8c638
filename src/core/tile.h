#ifndef KM_TILE_H
#define KM_TILE_H

#include "core/sum.h"
#include "core/threads.h"

/* A walk over the tiles of a Gram matrix that is never stored as a whole (or of one that is). The
   walk is symmetric where its source is: over x alone, or over a stored matrix. */

enum { KM_WORKERS = 32 };

/* What is done with a tile. `worker` (0 .. KM_WORKERS-1) depends on the sizes alone. */
typedef void (*km_consumer)(const km_tile *tile, void *sink, size_t worker);

/* How many accumulators of `size` doubles a consumer needs: it adds to number worker % slots. */
size_t km_walk_slots(const km_source *source, double size);

/* KM_WORKERS, or fewer for a short symmetric walk: no more slots than there is work for. */
size_t km_walk_workers(const km_source *source);

/* Doubles of scratch for a walk: packed points and one tile a worker. */
size_t km_walk_work(const km_source *source);

/* Evaluates every tile once and hands it to the consumer. slots: from km_walk_slots, or
   KM_WORKERS, an accumulator for each worker: then in a rectangular walk a worker has all rows, in
   their order, of a share of the columns. cost: the operations of the consumer on one value. */
void km_walk(const km_source *source, size_t slots, double cost, km_consumer consume, void *sink,
             double *work, km_poll poll);

/* The same on one thread: for short walks that come one after the other, where threads would wait
   for each other longer than they work. */
void km_walk_alone(const km_source *source, size_t slots, double cost, km_consumer consume,
                   void *sink, double *work);

/* The same of a symmetric source, in rounds: tiles that are handed over at the same time have no
   point in common, neither in their rows nor in their columns, and those of a point come in an
   order that depends on the sizes alone. So a consumer may add to what belongs to the points of its
   tile, in place. */
void km_walk_rounds(const km_source *source, double cost, km_consumer consume, void *sink,
                    double *work, km_poll poll);

/* Rows i0 .. i1-1 and columns j0 .. j1-1, which hold all tiles of a worker; none if i0 = i1. */
typedef struct {
  size_t i0, i1, j0, j1;
} km_walk_part;

km_walk_part km_walk_part_of(const km_source *source, size_t slots, size_t worker);

/* The next KM_PACK of n points from number `first` on, centered, scaled and packed (d x KM_PACK),
   zeros after the last. x: n x d. */
void km_pack_points(const km_source *source, const double *x, size_t n, size_t first,
                    double *points);

/* The diagonal of a symmetric source. diagonal: n. */
void km_diagonal(const km_source *source, double *diagonal);

/* The smallest and the largest value of each column. x: n x d, n >= 1; ends: 2 x d. */
void km_column_ranges(const double *x, size_t n, size_t d, double *ends);

/* The logarithm of the standard deviation of each column, -Inf of one whose values are all the
   same; no square over- or underflows. x: n x d, n >= 2; logs: d. */
void km_column_spreads(const double *x, size_t n, size_t d, double *logs);

/* Is none of n numbers NaN or infinite? */
int km_all_finite(const double *x, size_t n);

#endif
