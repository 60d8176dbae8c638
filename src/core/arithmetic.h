#ifndef KM_ARITHMETIC_H
#define KM_ARITHMETIC_H

#include "core/kernel.h"

#include <stdint.h>

/*
 * The arithmetic of a tile of a Gram matrix, for the instruction set in use. lanes.h holds the
 * loops, written once; km_simd() gives the table of those that the processor can run.
 */

enum {
  KM_TILE_ROWS = 32,
  KM_TILE_COLS = 64,
  KM_PACK = 32,              /* points packed together, feature-major */
  KM_EXP_COST = 24,          /* operations of a kernel value beside its features */
  KM_SUBSET_TABLE = 32 * 128, /* doubles of scratch for subset_forms */
  KM_GRID_ROWS = 5,           /* matrices on the two sides of grid_forms */
  KM_GRID_COLUMNS = 8
};

/* One tile: rows i0 .. i0+ni-1 and columns j0 .. j0+nj-1 of the Gram matrix, zeros beyond nj. */
typedef struct {
  size_t i0, j0, ni, nj;
  int mirrored;    /* off the diagonal of a symmetric walk: the tile stands for its transpose too */
  const double *k; /* k[i * KM_TILE_COLS + j] */
} km_tile;

typedef struct {
  const double *points;     /* packed */
  const double *half_norms; /* |x_i|^2 / 2; NULL: evaluate by differences */
  size_t count;
  size_t apart; /* from the half norms of a part of the kernel to those of the next */
} km_point_set;

typedef struct {
  km_point_set x, y; /* the tile's own points */
  size_t d, wide; /* features, and all that stand in a packed point */
  double *k;
} km_tile_job;

typedef struct {
  size_t lanes;

  /* Evaluates a tile; columns beyond the last point are set to 0. */
  void (*tile)(const km_kernel *kernel, const km_tile_job *job);

  /* |x_i|^2 / 2 of packed points. count: a multiple of KM_PACK. */
  void (*half_norms)(const double *points, size_t count, size_t d, double *half_norms);

  /* rows_i += sum_j k_ij; columns_j += sum_i k_ij unless columns is NULL. k: a tile of ni rows. */
  void (*sums)(const double *k, size_t ni, double *rows, double *columns);

  /* The same with weights: rows_i += sum_j k_ij v_j, columns_j += sum_i k_ij u_i. */
  void (*products)(const double *k, size_t ni, const double *u, const double *v, double *rows,
                   double *columns);

  /* columns_j += sum_i u_i k_ij over ni rows of a tile, one after the other. u: NULL is all 1. */
  void (*add_rows)(const double *k, size_t ni, const double *u, double *columns);

  /* sums += K v for a tile and, if mirrored, its transpose. v, sums: 2 lanes columns, by rows. */
  void (*block_products)(const km_tile *tile, const double *v, double *sums);

  /* sum_ij u_i k_ij v_j. v: KM_TILE_COLS. */
  double (*form)(const double *k, size_t ni, const double *u, const double *v);

  /* sums_c += times sum_ij k_ij over the rows i and columns j in set c, for c < count: those whose
     bits are set in rows[c] >> shift and columns[c]. All 32 rows are read. table: scratch. */
  void (*subset_forms)(const double *k, size_t count, const uint64_t *rows, unsigned shift,
                       const uint64_t *columns, double times, double *table, double *sums);

  /* moments += (sum |k_ij|, sum k_ij^2) over ni rows of a tile. */
  void (*moments)(const double *k, size_t ni, double *moments);

  /* sums_ab += sum over j < m of k_aj l_(order_j)b for KM_GRID_ROWS rows k_a and KM_GRID_COLUMNS
     columns of l, which is row-major; next: the rows of k that are wanted after these. */
  void (*grid_forms)(const double *const *k, const double *const *next, const double *l,
                     const int *order, size_t m, double *sums);

  /* Stores a tile in a matrix of n rows: k_ij at columns[i + j n] and at rows[j + i n] (or NULL);
     past the caches if `large`. */
  void (*store)(const km_tile *tile, size_t n, int large, double *columns, double *rows);

  /* For a tile of distances, each pair of points once: copies those from low to high to inside
     (room for a tile), returns their number, and counts those below low in *below. */
  size_t (*between)(const km_tile *tile, double low, double high, double *inside, size_t *below);

  /* exp of n numbers <= 0, as in the kernels: within 2 ulp, 0 below -708.39, NaN for NaN. */
  void (*exp_all)(const double *x, size_t n, double *out);

  /* k(x_i, x_i) for KM_POLY, bit for bit what `tile` gives, of `count` points from number `first`
     on. */
  void (*diagonal)(const km_source *source, size_t first, size_t count, double *diagonal);

  /* to_i *= x_i; to_i += times x_i. n: a multiple of KM_PACK. */
  void (*multiply_all)(const double *x, size_t n, double *to);
  void (*add_all)(double times, const double *x, size_t n, double *to);
} km_arithmetic;

const km_arithmetic *km_simd(void);

#endif
