#ifndef KM_SCRATCH_H
#define KM_SCRATCH_H

#include "core/parts.h"

#include <stdint.h>

/*
 * Scratch laid out once: the function that takes its parts from a caller's block tells how much it
 * took, and a km_x_work() that calls it with base = NULL how much is needed.
 */
typedef struct {
  double *base;
  size_t used;
} km_scratch;

/* The next `count` doubles; NULL if only their number is wanted. */
static inline double *take(km_scratch *scratch, size_t count) {
  double *part = scratch->base ? scratch->base + scratch->used : NULL;
  scratch->used += count;
  return part;
}

/* The same from the next cache line on, which takes up to 8 doubles more. */
static inline double *take_aligned(km_scratch *scratch, size_t count) {
  enum { LINE = 8 };
  const uintptr_t at = (uintptr_t) (scratch->base ? scratch->base + scratch->used : NULL);
  const size_t off = at % (LINE * sizeof(double)) / sizeof(double);
  scratch->used += scratch->base ? (LINE - off) % LINE : LINE;
  return take(scratch, count);
}

enum { KM_MOST_SCRATCH = 8388608 }; /* doubles of all workers: 64 MB */

/* How many workers have `size` doubles each: `most`, or as many as fit, but `fewest` at least. */
static inline size_t workers_that_fit(size_t fewest, size_t most, size_t size) {
  return larger(fewest, smaller(most, KM_MOST_SCRATCH / size));
}

/* Room for them. It grows with `size`, though there may be fewer of them. */
static inline size_t room_that_fits(size_t fewest, size_t most, size_t size) {
  return smaller(most * size, larger(KM_MOST_SCRATCH, fewest * size));
}

/* The same of integers. */
typedef struct {
  int *base;
  size_t used;
} km_int_scratch;

static inline int *take_ints(km_int_scratch *scratch, size_t count) {
  int *part = scratch->base ? scratch->base + scratch->used : NULL;
  scratch->used += count;
  return part;
}

#endif
