#ifndef KM_PARTS_H
#define KM_PARTS_H

#include <stddef.h>

/* How a number of things is cut: in pieces of one size, or dealt to workers in equal shares. */

static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static inline size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Pieces of `size` things that hold n of them; the last may be short. */
static inline size_t pieces(size_t n, size_t size) { return (n + size - 1) / size; }

static inline size_t round_up(size_t n, size_t size) { return pieces(n, size) * size; }

/* The first of a worker's share of `count` things. */
static inline size_t share_start(size_t count, size_t workers, size_t worker) {
  return count * worker / workers;
}

/* How many things that share has. */
static inline size_t share_size(size_t count, size_t workers, size_t worker) {
  return share_start(count, workers, worker + 1) - share_start(count, workers, worker);
}

#endif
