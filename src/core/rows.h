#ifndef KM_ROWS_H
#define KM_ROWS_H

#include "core/parts.h"

/* Loops over the rows of a matrix of points: how they are dealt to workers, inner products with and
   squared distances from a point. */

enum {
  KM_ROW_CHUNK = 128, /* rows that are treated together */
  KM_ROW_WORKERS = 32
};

static inline size_t row_workers(size_t n) {
  return smaller(KM_ROW_WORKERS, pieces(n, KM_ROW_CHUNK));
}

/* First chunk of a worker's share. */
static inline size_t first_chunk(size_t n, size_t workers, size_t worker) {
  return share_start(pieces(n, KM_ROW_CHUNK), workers, worker);
}

/* For km_threads, of n rows of d columns and m points: a second thread is worth waking from 0.1 ms
   on. */
static inline double row_operations(size_t n, size_t m, size_t d) {
  return (double) n * (double) m * (double) (d + 8) / 4;
}

/*
 * For `count` rows, from x on, of a matrix of n rows and d columns, and a point y: inner = start +
 * x_i'y; distances = sum_l (x_il - y_l)^2; squares and others the same with terms times a_l and
 * b_l.
 */
typedef struct {
  void (*inner)(size_t count, size_t n, size_t d, const double *x, const double *y, double start,
                double *inner);
  void (*distances)(size_t count, size_t n, size_t d, const double *x, const double *y,
                    double *distances);
  void (*squares)(size_t count, size_t n, size_t d, const double *x, const double *y,
                  const double *a, const double *b, double *squares, double *others);
} km_row_loops;

/* Those for the instructions in use. */
km_row_loops km_rows(void);

#endif
