#ifndef KM_SCRATCH_H
#define KM_SCRATCH_H

#include <stddef.h>
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
