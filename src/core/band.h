#ifndef KM_BAND_H
#define KM_BAND_H

#include "core/products.h"
#include "core/parts.h"
#include "core/threads.h"

/* What the steps of the tridiagonal reduction share, and its first two (tridiag.c says what). */

/* Comments leave KM_BAND_ and KM_ away, as the files that include this do. */
enum {
  KM_BAND_TILE = 2 * KM_BAND,   /* K is held in TILE x TILE tiles */
  KM_BAND_STRIDE = 3 * KM_BAND, /* B(i, j) = band[i + STRIDE * j], |i - j| < BAND and the bulge
                                   below */
  KM_BAND_SLOTS = 8,            /* partial sums of AV, added in this order */
  KM_BAND_WORTH = 2             /* flops that count as one operation for km_threads */
};

static const double poll_flops = 4e9; /* flops between two polls: about 0.05 s */

/* Squared norm below which a vector counts as zero: squares of its entries would underflow. */
static const double tiny_norm2 = 1e-280;

typedef struct {
  size_t n;
  size_t tiles;  /* ceil(n / TILE) */
  size_t rows;   /* tiles * TILE */
  double *a;     /* n x n, in tiles (tile_offset) */
  double *tau;   /* n */
  double *wv;    /* rows x 2 BAND, row-major: the update that A waits for, W then V */
  double *pack;  /* tiles x 2 BAND x TILE, row-major: -V' then -W' */
  double *x;     /* rows x BAND, row-major: the panel, then its reflectors */
  double *sums;  /* SLOTS x rows x BAND: parts of AV; later slot 0 is AV, slot 1 is W */
  double *tile;  /* SLOTS x TILE x TILE */
  double *band;  /* B, see STRIDE */
} reduction;

/* Rows of tile row `tile`, columns of tile column `tile`. */
static inline size_t extent(size_t n, size_t tile) {
  return smaller(KM_BAND_TILE, n - tile * KM_BAND_TILE);
}

/* Where tile (i, j) starts; its columns have stride extent(n, i). Permutes the n^2 cells. */
static inline size_t tile_offset(size_t n, size_t i, size_t j) {
  return j * KM_BAND_TILE * n + i * KM_BAND_TILE * extent(n, j);
}

/* Steps 1 and 2: s->a becomes reflectors below the band, s->band is B. */
void km_to_band(const reduction *s, km_poll poll);

#endif
