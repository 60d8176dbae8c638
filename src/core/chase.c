#include "core/chase.h"
#include "core/isa.h"
#include "core/parts.h"

#include <math.h>

/* Step 3 of the tridiagonal reduction (tridiag.c): B to T, by chasing bulges down the band. */

enum {
  BAND = KM_BAND,
  TILE = KM_BAND_TILE,
  STRIDE = KM_BAND_STRIDE,
  WORTH = KM_BAND_WORTH,
  COLUMNS = 8, /* a block of columns, chased together */
  CHUNK = 4,   /* steps down the band that a block makes at a time */
  LAG = 3      /* a block follows LAG chunks after the last: 1 + COLUMNS / CHUNK */
};

INLINE double sum8(const double *s) {
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* Products of BAND-vectors: x'y. */
INLINE double inner(const double *restrict x, const double *restrict y) {
  double s[8];
  SIMD
  for (size_t e = 0; e < 8; e++) s[e] = x[e] * y[e] + x[e + 8] * y[e + 8] + x[e + 16] * y[e + 16];
  return sum8(s);
}

/* v (BAND) becomes (1, v) with (I - tau vv') v_old = beta e_1. Returns beta. */
INLINE double reflect(double *restrict v, double *restrict tau) {
  const double norm2 = inner(v, v), norm = sqrt(norm2), alpha = v[0];
  const int zero = !(norm2 > tiny_norm2);
  const double beta = zero ? alpha : alpha > 0 ? -norm : norm;
  const double scale = zero ? 0 : 1 / (alpha - beta);
  *tau = zero ? 0 : (beta - alpha) / beta;
  SIMD
  for (size_t e = 0; e < BAND; e++) v[e] *= scale;
  v[0] = 1;
  return beta;
}

/* w (2 BAND) = tile v; tile: 2 BAND x BAND, stride STRIDE. */
INLINE void tile_times(const double *restrict tile, const double *restrict v, double *restrict w) {
  double s0[8], s1[8], s2[8], s3[8], s4[8], s5[8];
  SIMD
  for (size_t e = 0; e < 8; e++) s0[e] = s1[e] = s2[e] = s3[e] = s4[e] = s5[e] = 0;
  for (size_t j = 0; j < BAND; j++) {
    const double f = v[j], *column = tile + j * STRIDE;
    SIMD
    for (size_t e = 0; e < 8; e++) {
      s0[e] += f * column[e];
      s1[e] += f * column[e + 8];
      s2[e] += f * column[e + 16];
      s3[e] += f * column[e + 24];
      s4[e] += f * column[e + 32];
      s5[e] += f * column[e + 40];
    }
  }
  SIMD
  for (size_t e = 0; e < 8; e++) {
    w[e] = s0[e];
    w[e + 8] = s1[e];
    w[e + 16] = s2[e];
    w[e + 24] = s3[e];
    w[e + 32] = s4[e];
    w[e + 40] = s5[e];
  }
}

/* y = tile'v; tile: BAND x BAND, stride STRIDE. */
INLINE void tile_inner(const double *restrict tile, const double *restrict v, double *restrict y) {
  for (size_t j = 0; j < BAND; j += 8) {
    double s[8][8];
    UNROLL
    for (size_t l = 0; l < 8; l++) {
      const double *column = tile + (j + l) * STRIDE;
      SIMD
      for (size_t e = 0; e < 8; e++)
        s[l][e] = column[e] * v[e] + column[e + 8] * v[e + 8] + column[e + 16] * v[e + 16];
    }
    UNROLL
    for (size_t l = 0; l < 8; l++) y[j + l] = sum8(s[l]);
  }
}

/* The upper half of the tile loses vw' + wv', the lower one zv' + uy'. w, z: the halves of wz. */
INLINE void tile_update(double *restrict tile, const double *restrict v, const double *restrict wz,
                        const double *restrict u, const double *restrict y) {
  const double *z = wz + BAND;
  for (size_t j = 0; j < BAND; j++) {
    const double f = v[j], g = wz[j], h = y[j];
    double *column = tile + j * STRIDE;
    SIMD
    for (size_t e = 0; e < 8; e++) {
      column[e] -= v[e] * g + wz[e] * f;
      column[e + 8] -= v[e + 8] * g + wz[e + 8] * f;
      column[e + 16] -= v[e + 16] * g + wz[e + 16] * f;
      column[e + 24] -= z[e] * f + u[e] * h;
      column[e + 32] -= z[e + 8] * f + u[e + 8] * h;
      column[e + 40] -= z[e + 16] * f + u[e + 16] * h;
    }
  }
}

/*
 * One step down the band. tile = (D; C): that on the diagonal at row r and the one below it.
 * D <- HDH and C <- GCH with H = I - tau vv' and the reflector G that leaves C's first column a
 * multiple of e_1; v and tau become those of G.
 */
INLINE void chase_step(double *restrict tile, double *restrict v, double *restrict tau) {
  double wz[2 * BAND], u[BAND], y[BAND], *c = tile + BAND, *z = wz + BAND, next;
  tile_times(tile, v, wz);
  const double t = *tau, f = 0.5 * t * inner(wz, v);
  SIMD
  for (size_t e = 0; e < BAND; e++) {
    wz[e] = t * (wz[e] - f * v[e]);
    z[e] *= t;
    u[e] = c[e] - z[e]; /* v_0 = 1 */
  }
  const double beta = reflect(u, &next), zu = inner(z, u);
  tile_inner(c, u, y);
  SIMD
  for (size_t e = 0; e < BAND; e++) y[e] = next * (y[e] - zu * v[e]);
  tile_update(tile, v, wz, u, y);
  SIMD
  for (size_t e = 0; e < BAND; e++) {
    c[e] = 0;
    v[e] = u[e];
  }
  c[0] = beta;
  /* Row 0 of C is in D when the next column is chased, which needs both halves. */
  for (size_t j = 1; j < BAND; j++) tile[j + BAND * STRIDE] = c[j * STRIDE];
  *tau = next;
}

size_t km_kept_offset(size_t n, size_t k, size_t step) {
  const size_t i = step / 2, j = (n - 1 - k) / TILE;
  return tile_offset(n, i, j) + (n - 1 - k) % TILE * extent(n, i) + step % 2 * BAND;
}

INLINE void keep_reflector(size_t count, const double *restrict v, double tau,
                           double *restrict kept) {
  kept[0] = tau;
  for (size_t i = 1; i < count; i++) kept[i] = v[i];
}

/* Steps from .. to - 1 of column k; the reflectors go to the upper triangle of a. */
INLINE void chase_body(size_t n, double *band, double *a, size_t k, size_t from, size_t to) {
  double v[BAND] = {0}, tau = 0;
  for (size_t step = from; step < to; step++) {
    const size_t r = k + 1 + step * BAND;
    if (r >= n) return;
    const size_t count = smaller(BAND, n - r);
    double *kept = a + km_kept_offset(n, k, step);
    if (step == 0) {
      for (size_t i = 0; i < count; i++) v[i] = band[r + i + STRIDE * k];
      band[r + STRIDE * k] = reflect(v, &tau);
      keep_reflector(count, v, tau, kept);
    } else if (step == from) {
      for (size_t i = 0; i < count; i++) v[i] = kept[i];
      tau = v[0];
      v[0] = 1;
    }
    chase_step(band + r + STRIDE * r, v, &tau);
    if (r + BAND >= n) return;
    const size_t below = smaller(BAND, n - r - BAND);
    keep_reflector(below, v, tau, a + km_kept_offset(n, k, step + 1));
  }
}

VERSIONS(chase, (size_t n, double *band, double *a, size_t k, size_t from, size_t to),
         (n, band, a, k, from, to), (n, band, a, k, from, to), (n, band, a, k, from, to))

/*
 * Step t of column k + 1 needs step t + 1 of column k. So chunk c of block g holds, for its q-th
 * column, the steps c CHUNK - q .. (c + 1) CHUNK - q - 1.
 */
static void chase_chunk(const reduction *s, size_t block, size_t chunk) {
  const size_t end = (chunk + 1) * CHUNK;
  for (size_t q = 0; q < COLUMNS && q < end; q++) {
    const size_t k = block * COLUMNS + q, from = end - q < CHUNK ? 0 : end - q - CHUNK;
    if (k + 2 < s->n) chase_version()(s->n, s->band, s->a, k, from, end - q);
  }
}

/* Chunks on one front, block + LAG chunk = front, do not meet. */
static void chase_fronts(const reduction *s, size_t chunks, size_t from, size_t to) {
  const size_t blocks = pieces(s->n, COLUMNS);
  for (size_t front = from; front < to; front++) {
    const size_t first = front < chunks ? 0 : (front - chunks) / LAG + 1;
    const size_t last = front / LAG < blocks ? front / LAG : blocks - 1;
#ifdef _OPENMP
#pragma omp taskloop default(none) shared(s, front) firstprivate(first, last) grainsize(1)
#endif
    for (size_t block = first; block <= last; block++) chase_chunk(s, block, front - LAG * block);
  }
}

void km_chase_band(const reduction *s, km_poll poll) {
  const size_t chunks = (s->n / BAND + 1 + COLUMNS) / CHUNK + 1;
  const size_t fronts = LAG * pieces(s->n, COLUMNS) + chunks;
  const double flops = 14.0 * COLUMNS * CHUNK * BAND * BAND * (1 + (double) chunks / LAG);
  for (size_t from = 0, next; from < fronts; from = next) {
    next = from + 1 + (size_t) (poll_flops / 8 / flops); /* these flops are slower */
    if (next > fronts) next = fronts;
    if (poll) poll();
#ifdef _OPENMP
#pragma omp parallel default(none) shared(s, from, next) firstprivate(chunks) \
    num_threads(s->n < 3 * TILE ? 1 : km_threads(flops / WORTH * (double) (next - from)))
#pragma omp master
#endif
    chase_fronts(s, chunks, from, next);
  }
}
