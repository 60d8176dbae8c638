#ifndef KM_TILE_H
#define KM_TILE_H

#include "core/kernel.h"
#include "core/threads.h"

/* Folds over the tiles of a Gram matrix that is never stored as a whole. */

/* Two sets of points; y = NULL (then m = n) is the symmetric walk over x alone. */
typedef struct {
  const double *x; /* n x d, column-major */
  size_t n;
  const double *y; /* m x d, column-major, or NULL */
  size_t m;
  size_t d;
} km_pair;

/* One tile: rows i0 .. i0+ni-1 and columns j0 .. j0+nj-1 of the Gram matrix, zeros beyond nj. */
typedef struct {
  size_t i0, j0, ni, nj;
  int mirrored;    /* off the diagonal of a symmetric walk: the tile stands for its transpose too */
  const double *k; /* k[i * KM_TILE_COLS + j] */
} km_tile;

enum { KM_TILE_ROWS = 32, KM_TILE_COLS = 64, KM_WORKERS = 32 };

/* What is done with a tile. `worker` (0 .. KM_WORKERS-1) depends on the sizes alone. */
typedef void (*km_consumer)(const km_tile *tile, void *sink, size_t worker);

/* Doubles of scratch for a walk: packed points and one tile a worker. */
size_t km_walk_work(const km_pair *points);

/* Evaluates every tile once and hands it to the consumer. */
void km_walk(const km_kernel *kernel, const km_pair *points, km_consumer consume, void *sink,
             double *work, km_poll poll);

/* The Gram matrix itself. k: n x m (both halves filled in a symmetric walk). */
size_t km_fold_store_work(const km_pair *points);
void km_fold_store(const km_kernel *kernel, const km_pair *points, double *k, double *work,
                   km_poll poll);

/* Row sums. sums: n. */
size_t km_fold_rows_work(const km_pair *points);
void km_fold_rows(const km_kernel *kernel, const km_pair *points, double *sums, double *work,
                  km_poll poll);

/* K V. v: m x p; out: n x p. */
size_t km_fold_apply_work(const km_pair *points, size_t p);
void km_fold_apply(const km_kernel *kernel, const km_pair *points, const double *v, size_t p,
                   double *out, double *work, km_poll poll);

/* u_c' K v_c for each column c; in a symmetric walk u = v. u: n x p; v: m x p; out: p. */
size_t km_fold_quad_work(const km_pair *points, size_t p);
void km_fold_quad(const km_kernel *kernel, const km_pair *points, const double *u, const double *v,
                  size_t p, double *out, double *work, km_poll poll);

/*
 * For a tile of distances, each pair of points once: copies those from low to high to inside (room
 * for a tile), returns their number, counts those below low in *below and lowers *least to the
 * smallest positive one.
 */
size_t km_tile_between(const km_tile *tile, double low, double high, double *inside, size_t *below,
                       double *least);

/* exp of n numbers <= 0, as in the kernels: within 2 ulp, 0 below -708.39. out: n. */
void km_exp(const double *x, size_t n, double *out);

/* The diagonal k(x_i, x_i). diagonal: n. */
void km_diagonal(const km_kernel *kernel, const double *x, size_t n, size_t d, double *diagonal);

#endif
