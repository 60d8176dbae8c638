#ifndef KM_ROUNDS_H
#define KM_ROUNDS_H

#include "core/tile.h"

/* A walk over the tiles of a symmetric source in rounds: tiles that are handed over at the same
   time have no point in common, neither in their rows nor in their columns, and those of a point
   come in an order that depends on the sizes alone. So a consumer may add to what belongs to the
   points of its tile, in place. cost: the operations of the consumer on one value; work:
   km_walk_work. */
void km_walk_rounds(const km_source *source, double cost, km_consumer consume, void *sink,
                    double *work, km_poll poll);

#endif
