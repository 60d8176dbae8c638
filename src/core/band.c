#include "core/band.h"
#include "core/isa.h"

#include <math.h>
#include <string.h>

/* Steps 1 and 2 of the tridiagonal reduction (tridiag.c): K to HKH, HKH to the band B. */

enum {
  BAND = KM_BAND,
  TILE = KM_BAND_TILE,
  STRIDE = KM_BAND_STRIDE,
  SLOTS = KM_BAND_SLOTS,
  WORTH = KM_BAND_WORTH
};

/* Column sums of tile column j, and its lower tiles put in order by way of copy (n x TILE). */
static void to_tiles(const reduction *s, size_t j, double *copy) {
  const size_t n = s->n, width = extent(n, j), top = j * TILE;
  double *columns = s->a + top * n;
  for (size_t c = 0; c < width; c++) s->pack[top + c] = km_total(n, columns + c * n);
  for (size_t i = j; i < s->tiles; i++) {
    const size_t height = extent(n, i);
    double *tile = copy + (i - j) * TILE * width;
    for (size_t c = 0; c < width; c++)
      memcpy(tile + c * height, columns + c * n + i * TILE, height * sizeof *tile);
  }
  memcpy(columns + top * width, copy, (n - top) * width * sizeof *copy);
}

static void pack_update(const reduction *s, size_t tile) {
  const double *wv = s->wv + tile * TILE * 2 * BAND;
  double *pack = s->pack + tile * TILE * 2 * BAND;
  for (size_t k = 0; k < 2 * BAND; k++)
    for (size_t i = 0; i < TILE; i++)
      pack[k * TILE + i] = -wv[i * 2 * BAND + (k + BAND) % (2 * BAND)];
}

/* HKH = K - vw' - wv' becomes the update that the first panel finds waiting. */
static void first_reflector(const reduction *s) {
  const size_t n = s->n;
  const double root = 1 / sqrt((double) n), scale = 1 / (1 - root); /* 2 / v'v */
  double *w = s->pack, *column = s->x;
  memcpy(column, s->a, n * sizeof *column);
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(s) schedule(static, 1) \
  num_threads(km_threads((double) s->n * (double) s->n))
#endif
  for (size_t slot = 0; slot < SLOTS / 2; slot++)
    for (size_t j = slot; j < s->tiles; j += SLOTS / 2)
      to_tiles(s, j, s->sums + slot * s->rows * TILE);
  for (size_t i = 0; i < n; i++) w[i] = scale * (root * w[i] - column[i]);
  const double half = scale / 2 * (root * km_total(n, w) - w[0]);
  for (size_t i = 0; i < n; i++) {
    const double v = i == 0 ? root - 1 : root;
    s->wv[i * 2 * BAND] = w[i] - half * v;
    s->wv[i * 2 * BAND + BAND] = v;
  }
  for (size_t tile = 0; tile < s->tiles; tile++) pack_update(s, tile);
}

/* Rows of panel c0 in one tile row, updated, into x; rows above c0 are zero. */
static void load_rows(const reduction *s, size_t c0, const double *update, size_t tile) {
  const size_t n = s->n, top = tile * TILE, first = top < c0 ? c0 - top : 0;
  const size_t height = extent(n, tile), cols = smaller(BAND, n - c0);
  const double *a = s->a + tile_offset(n, tile, c0 / TILE) + c0 % TILE * height;
  double *x = s->x + top * BAND;
  memset(x, 0, TILE * BAND * sizeof *x);
  for (size_t c = 0; c < cols; c++)
    for (size_t i = first; i < height; i++) x[i * BAND + c] = a[i + c * height];
  const factor wv = {s->wv + top * 2 * BAND, 1, 2 * BAND};
  km_multiply(TILE, BAND, 2 * BAND, wv, update, BAND, x, BAND);
  memset(x, 0, first * BAND * sizeof *x);
}

static void load_panel(const reduction *s, size_t c0) {
  double update[2 * BAND * BAND];
  for (size_t c = 0; c < BAND; c++)
    for (size_t k = 0; k < 2 * BAND; k++)
      update[k * BAND + c] = -s->wv[(c0 + c) * 2 * BAND + (k + BAND) % (2 * BAND)];
#ifdef _OPENMP
#pragma omp taskloop default(none) shared(s, c0, update)
#endif
  for (size_t tile = c0 / TILE; tile < s->tiles; tile++) load_rows(s, c0, update, tile);
}

/*
 * One pass over rows first .. m-1 of x (m x BAND): x <- x - x_column w', then x_column scaled, and
 * g = x'x_next of the result.
 */
INLINE void panel_pass_body(size_t m, size_t first, size_t column, size_t next, double scale,
                            const double *restrict w, double *restrict x, double *restrict g) {
  double w0[8], w1[8], w2[8], s0[8], s1[8], s2[8];
  SIMD
  for (size_t e = 0; e < 8; e++) {
    w0[e] = w[e];
    w1[e] = w[e + 8];
    w2[e] = w[e + 16];
    s0[e] = s1[e] = s2[e] = 0;
  }
  for (size_t i = first; i < m; i++) {
    double *row = x + i * BAND;
    const double f = row[column];
    SIMD
    for (size_t e = 0; e < 8; e++) {
      row[e] -= f * w0[e];
      row[e + 8] -= f * w1[e];
      row[e + 16] -= f * w2[e];
    }
    const double y = row[next]; /* as it is stored: of noise, roundings are what is left */
    SIMD
    for (size_t e = 0; e < 8; e++) {
      s0[e] += y * row[e];
      s1[e] += y * row[e + 8];
      s2[e] += y * row[e + 16];
    }
    row[column] = f * scale;
  }
  SIMD
  for (size_t e = 0; e < 8; e++) {
    g[e] = s0[e];
    g[e + 8] = s1[e];
    g[e + 16] = s2[e];
  }
}

VERSIONS(panel_pass,
         (size_t m, size_t first, size_t column, size_t next, double scale, const double *w,
          double *x, double *g),
         (m, first, column, next, scale, w, x, g), (m, first, column, next, scale, w, x, g),
         (m, first, column, next, scale, w, x, g))

/*
 * x (m x BAND, row-major) = QR: R above, reflectors (1, v) below. The products of a column with all
 * others come out of the pass that updates them, so each reflector costs one pass.
 */
static void factor_panel(size_t m, double *x, double *tau) {
  double g[BAND], w[BAND] = {0};
  panel_pass_version()(m, 0, 0, 0, 1, w, x, g);
  for (size_t c = 0; c < BAND; c++) {
    tau[c] = 0;
    if (c + 1 >= m) continue;
    double *row = x + c * BAND;
    const double alpha = row[c], norm = sqrt(g[c]);
    double scale = 0;
    memset(w, 0, sizeof w);
    if (g[c] > tiny_norm2) {
      const double beta = alpha > 0 ? -norm : norm;
      tau[c] = (beta - alpha) / beta;
      scale = 1 / (alpha - beta);
      for (size_t k = c + 1; k < BAND; k++) {
        const double f = tau[c] * scale * (g[k] - beta * row[k]);
        row[k] -= f;
        w[k] = f * scale;
      }
      row[c] = beta;
    }
    panel_pass_version()(m, c + 1, c, c + 1 < BAND ? c + 1 : c, scale, w, x, g);
  }
}

/* S of I - VSV' = H_1 .. H_b (upper triangular, row-major), from V (m x BAND, row-major). */
static void compact_factor(size_t m, const double *v, const double *tau, double *compact) {
  double gram[BAND * BAND] = {0};
  const factor left = {v, BAND, 1};
  km_multiply(BAND, BAND, m, left, v, BAND, gram, BAND);
  memset(compact, 0, BAND * BAND * sizeof *compact);
  for (size_t j = 0; j < BAND; j++) {
    compact[j * BAND + j] = tau[j];
    for (size_t i = 0; i < j; i++) {
      double sum = 0;
      for (size_t k = i; k < j; k++) sum += compact[i * BAND + k] * gram[k * BAND + j];
      compact[i * BAND + j] = -tau[j] * sum;
    }
  }
}

static void put_band(const reduction *s, size_t i, size_t j, double value) {
  s->band[i + STRIDE * j] = value;
  if (i - j < BAND) s->band[j + STRIDE * i] = value; /* within BAND both halves are kept */
}

/* The diagonal part of panel c0 goes to B. */
static void keep_diagonal(const reduction *s, size_t c0) {
  const size_t count = smaller(BAND, s->n - c0);
  double *x = s->x + c0 * BAND;
  for (size_t i = 0; i < count; i++)
    for (size_t c = 0; c <= i; c++) put_band(s, c0 + i, c0 + c, x[i * BAND + c]);
  memset(x, 0, count * BAND * sizeof *x);
}

/* R goes to B, and leaves 1 and zeros above the reflectors. */
static void keep_factor(const reduction *s, size_t c0) {
  const size_t r0 = c0 + BAND, count = smaller(BAND, s->n - r0);
  double *x = s->x + r0 * BAND;
  for (size_t i = 0; i < count; i++) {
    for (size_t c = i; c < BAND; c++) {
      put_band(s, r0 + i, c0 + c, x[i * BAND + c]);
      x[i * BAND + c] = 0;
    }
    x[i * BAND + i] = 1;
  }
}

/* Tile (i, j) of A, which starts at r0: the update that waits, then its parts of AV. */
static void reduce_tile(const reduction *s, size_t r0, size_t i, size_t j, double *copy,
                        double *sums) {
  const size_t n = s->n, height = extent(n, i), width = extent(n, j);
  const size_t top = i * TILE < r0 ? r0 - i * TILE : 0, left = j * TILE < r0 ? r0 - j * TILE : 0;
  const int whole = top == 0 && left == 0 && height == TILE && width == TILE;
  double *a = s->a + tile_offset(n, i, j), *t = whole ? a : copy;
  if (!whole) {
    memset(t, 0, TILE * TILE * sizeof *t);
    for (size_t c = left; c < width; c++)
      memcpy(t + top + c * TILE, a + top + c * height, (height - top) * sizeof *t);
  }
  const factor wv = {s->wv + j * TILE * 2 * BAND, 1, 2 * BAND}, down = {t, 1, TILE};
  km_multiply(TILE, TILE, 2 * BAND, wv, s->pack + i * TILE * 2 * BAND, TILE, t, TILE);
  if (!whole)
    for (size_t c = left; c < width; c++)
      memcpy(a + top + c * height, t + top + c * TILE, (height - top) * sizeof *t);
  km_multiply(TILE, BAND, TILE, down, s->x + i * TILE * BAND, BAND, sums + j * TILE * BAND, BAND);
  const factor across = {t, TILE, 1};
  if (i != j)
    km_multiply(TILE, BAND, TILE, across, s->x + j * TILE * BAND, BAND, sums + i * TILE * BAND,
                BAND);
}

/* The tile columns of one slot: dealt out to and fro, as they get shorter. */
static void reduce_slot(const reduction *s, size_t r0, size_t slot) {
  const size_t first = r0 / TILE;
  double *copy = s->tile + slot * TILE * TILE, *sums = s->sums + slot * s->rows * BAND;
  for (size_t j = first + slot; j < s->tiles; j++) {
    const size_t turn = (j - first) % (2 * SLOTS);
    if ((turn < SLOTS ? turn : 2 * SLOTS - 1 - turn) != slot) continue;
    for (size_t i = j; i < s->tiles; i++) {
      if (j == first + slot) memset(sums + i * TILE * BAND, 0, TILE * BAND * sizeof *sums);
      reduce_tile(s, r0, i, j, copy, sums);
    }
  }
}

/* Slot k holds rows from its first tile column, first + k, on. */
static void add_slots(const reduction *s, size_t first, size_t tile) {
  double *sum = s->sums + tile * TILE * BAND;
  for (size_t slot = 1; slot < SLOTS && first + slot <= tile; slot++) {
    const double *part = sum + slot * s->rows * BAND;
    SIMD
    for (size_t i = 0; i < TILE * BAND; i++) sum[i] += part[i];
  }
}

/* One pass over A: slot 0 of sums becomes AV. */
static void reduce_trailing(const reduction *s, size_t r0) {
  const size_t first = r0 / TILE, tiles = s->tiles;
#ifdef _OPENMP
#pragma omp taskloop default(none) shared(s, r0) grainsize(1)
#endif
  for (size_t slot = 0; slot < SLOTS; slot++) reduce_slot(s, r0, slot);
#ifdef _OPENMP
#pragma omp taskloop default(none) shared(s) firstprivate(first, tiles)
#endif
  for (size_t tile = first; tile < tiles; tile++) add_slots(s, first, tile);
}

/* Rows of W = AVS + V middle; V goes to A; both become the update that waits. */
static void update_rows(const reduction *s, size_t c0, const double *compact, const double *middle,
                        size_t tile) {
  const size_t n = s->n, r0 = c0 + BAND, top = tile * TILE, first = top < r0 ? r0 - top : 0;
  const size_t height = extent(n, tile);
  const double *x = s->x + top * BAND;
  double *a = s->a + tile_offset(n, tile, c0 / TILE) + c0 % TILE * height;
  double *w = s->sums + (s->rows + top) * BAND, *wv = s->wv + top * 2 * BAND;
  const factor av = {s->sums + top * BAND, 1, BAND}, v = {x, 1, BAND};
  memset(w, 0, TILE * BAND * sizeof *w);
  km_multiply(TILE, BAND, BAND, av, compact, BAND, w, BAND);
  km_multiply(TILE, BAND, BAND, v, middle, BAND, w, BAND);
  for (size_t i = 0; i < TILE; i++) {
    memcpy(wv + i * 2 * BAND, w + i * BAND, BAND * sizeof *w);
    memcpy(wv + i * 2 * BAND + BAND, x + i * BAND, BAND * sizeof *w);
  }
  for (size_t c = 0; c < BAND; c++)
    for (size_t i = first; i < height; i++) a[i + c * height] = x[i * BAND + c];
  pack_update(s, tile);
}

static void next_update(const reduction *s, size_t c0, const double *compact) {
  const size_t r0 = c0 + BAND, first = r0 / TILE, tiles = s->tiles;
  double inner[BAND * BAND] = {0}, half[BAND * BAND] = {0}, middle[BAND * BAND] = {0};
  const factor v = {s->x + r0 * BAND, BAND, 1}, sym = {inner, 1, BAND}, left = {compact, BAND, 1};
  km_multiply(BAND, BAND, s->n - r0, v, s->sums + r0 * BAND, BAND, inner, BAND);
  km_multiply(BAND, BAND, BAND, sym, compact, BAND, half, BAND);
  for (size_t i = 0; i < BAND * BAND; i++) half[i] *= -0.5;
  km_multiply(BAND, BAND, BAND, left, half, BAND, middle, BAND);
#ifdef _OPENMP
#pragma omp taskloop default(none) shared(s, c0, compact, middle) firstprivate(first, tiles)
#endif
  for (size_t tile = first; tile < tiles; tile++) update_rows(s, c0, compact, middle, tile);
}

static void reduce_panels(const reduction *s, size_t from, size_t to) {
  const size_t n = s->n;
  double compact[BAND * BAND];
  for (size_t c0 = from; c0 < to; c0 += BAND) {
    const size_t r0 = c0 + BAND;
    load_panel(s, c0);
    keep_diagonal(s, c0);
    if (r0 >= n) return;
    factor_panel(n - r0, s->x + r0 * BAND, s->tau + c0);
    keep_factor(s, c0);
    compact_factor(n - r0, s->x + r0 * BAND, s->tau + c0, compact);
    reduce_trailing(s, r0);
    next_update(s, c0, compact);
  }
}

/*
 * Tasks, not loops shared out in advance: between two of its own tasks the first thread never waits
 * for another, which on a busy machine may not be running (hundreds of barriers made two threads
 * six times slower than one). Who runs a task does not matter to its result.
 */
void km_to_band(const reduction *s, km_poll poll) {
  first_reflector(s);
  for (size_t c0 = 0, next; c0 < s->n; c0 = next) {
    const double left = (double) (s->n - c0), panel = 4 * left * left * BAND;
    next = smaller(s->n, c0 + BAND * (1 + (size_t) (poll_flops / panel)));
    if (poll) poll();
#ifdef _OPENMP
#pragma omp parallel default(none) shared(s, c0, next) \
  num_threads(km_threads(panel / WORTH * (double) (next - c0) / BAND))
#pragma omp master
#endif
    reduce_panels(s, c0, next);
  }
}
