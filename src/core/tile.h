#ifndef KM_TILE_H
#define KM_TILE_H

#include "core/sum.h"
#include "core/threads.h"

/* The tiles of a Gram matrix that is never stored as a whole (or of one that is), panel pair by
   panel pair. A source is symmetric over x alone, or over a stored matrix. In which order the pairs
   come, and on which threads, is for core/walk.h and core/rounds.h. */

enum { KM_WORKERS = 32 };

/* What is done with a tile. `worker` (0 .. KM_WORKERS-1) depends on the sizes alone. */
typedef void (*km_consumer)(const km_tile *tile, void *sink, size_t worker);

/* A source that is packed, and where its tiles go. */
typedef struct {
  const km_source *source;
  km_point_set x, y;
  size_t rows, columns; /* panels */
  double *room;         /* a tile for each worker that has work */
  double cost;          /* operations on one value, those of the consumer too */
  km_consumer consume;
  void *sink;
} km_tiles;

/* KM_WORKERS, or fewer for a short symmetric walk: no more than there are panel pairs. */
size_t km_walk_workers(const km_source *source);

/* Doubles of scratch for a walk: packed points and one tile a worker. */
size_t km_walk_work(const km_source *source);

/* Packs the points, on one thread if `alone`. cost: the operations of the consumer on one value. */
km_tiles km_pack_tiles(const km_source *source, double cost, km_consumer consume, void *sink,
                       int alone, double *work);

/* Evaluates the tiles of a panel pair and hands them over; of a symmetric source row <= column.
   place: of the worker's tile, below km_walk_workers. */
void km_run_pair(const km_tiles *tiles, size_t worker, size_t place, size_t row, size_t column);

/* The operations of so many panel pairs; no more than there are values. */
double km_pair_operations(const km_tiles *tiles, size_t pairs);

/* The next KM_PACK of n points from number `first` on, centered, scaled and packed (d x KM_PACK),
   zeros after the last. x: n x d. */
void km_pack_points(const km_source *source, const double *x, size_t n, size_t first,
                    double *points);

#endif
