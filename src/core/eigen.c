#include "core/eigen.h"
#include "core/blas.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/*
 * Spectra of a symmetric K (n x n, column-major, both halves filled).
 *
 * K = QTQ' with Q e_1 = e/sqrt(n) (F-KMSE, spec/estimators.md), in three steps:
 *   1. H = I - 2 vv'/v'v, v = e/sqrt(n) - e_1, maps e/sqrt(n) to plus e_1; HKH: a rank-2 update.
 *   2. HKH = Q_1 B Q_1', bandwidth b = BAND: panels of b columns, each reduced by b Householder
 *      reflectors (I - V S V'), and A <- A - VW' - WV' with Y = AVS, W = Y - V(S'V'Y)/2. The update
 *      of one panel and the product AV of the next are one pass over the lower triangle: 4n^3/3
 *      flops, but A is read and written only n/b times (LAPACK's dsytrd reads it n times).
 *   3. B = Q_2 T Q_2': column by column, each reflector chasing its bulge down the band; 6 b n^2
 *      flops within n x 3b doubles. Neighbouring columns are chased at once, a few blocks apart.
 * Q_1 and Q_2 leave e_1 alone, so Q = H Q_1 Q_2 has Q e_1 = e/sqrt(n). Reflectors of step 2 replace
 * the lower triangle of K, those of step 3 the upper one; H needs no storage. Scratch: 390 n
 * doubles. Partitions depend on n alone, so results are bit-identical for any number of threads.
 * The scale of K must lie between 1e-120 and 1e150.
 *
 * Spectrum of T: QL without square roots (Pal, Walker, Kahan; Parlett 1998, 8.15), the first row of
 * the eigenvectors carried along as in Golub and Welsch (1969): O(n^2).
 */

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")
#else
#define INLINE static inline
#define UNROLL
#endif
#ifdef _OPENMP
#define SIMD _Pragma("omp simd")
#else
#define SIMD
#endif
#if defined(__x86_64__) && defined(__GNUC__)
#define X86
#define AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,fma,prefer-vector-width=512")))
#define AVX2 __attribute__((target("avx2,fma")))
#endif

enum {
  BAND = 24,          /* bandwidth of B: three AVX-512 vectors */
  TILE = 2 * BAND,    /* K is held in TILE x TILE blocks */
  STRIDE = 3 * BAND,  /* B(i, j) = band[i + STRIDE * j], |i - j| < BAND and the bulge below */
  SLOTS = 8,          /* partial sums of AV, added in this order */
  GROUP = 8,          /* columns chased together */
  CHUNK = 4,          /* blocks that a group moves at a time */
  LAG = 3,            /* a group follows LAG chunks after the last: 1 + GROUP / CHUNK */
  WORTH = 32          /* flops that count as one operation for km_threads */
};

static const double poll_flops = 4e9; /* flops between two polls: about 0.05 s */

/* Squared norm below which a vector counts as zero: squares of its entries would underflow. */
static const double tiny_norm2 = 1e-280;

/* ---- products of narrow matrices ---- */

/* A'V for A(k, l) = at[k * down + l * across]. */
typedef struct {
  const double *at;
  size_t down, across;
} factor;

/* out (count x 3 lanes) += A'V, in registers. V: depth rows, stride ldv; out: rows, stride ldo. */
INLINE void multiply_block(const size_t lanes, const size_t count, size_t depth, factor a,
                           const double *restrict v, size_t ldv, double *restrict out, size_t ldo) {
  double s0[8][8], s1[8][8], s2[8][8];
  UNROLL
  for (size_t l = 0; l < count; l++)
    SIMD
    for (size_t c = 0; c < lanes; c++) s0[l][c] = s1[l][c] = s2[l][c] = 0;
  for (size_t k = 0; k < depth; k++) {
    const double *row = v + k * ldv;
    UNROLL
    for (size_t l = 0; l < count; l++) {
      const double f = a.at[k * a.down + l * a.across];
      SIMD
      for (size_t c = 0; c < lanes; c++) {
        s0[l][c] += f * row[c];
        s1[l][c] += f * row[c + lanes];
        s2[l][c] += f * row[c + 2 * lanes];
      }
    }
  }
  UNROLL
  for (size_t l = 0; l < count; l++) {
    double *row = out + l * ldo;
    SIMD
    for (size_t c = 0; c < lanes; c++) {
      row[c] += s0[l][c];
      row[c + lanes] += s1[l][c];
      row[c + 2 * lanes] += s2[l][c];
    }
  }
}

INLINE void multiply_body(const size_t lanes, const size_t count, size_t rows, size_t cols,
                          size_t depth, factor a, const double *v, size_t ldv, double *out,
                          size_t ldo) {
  for (size_t l = 0; l < rows; l += count) {
    const factor part = {a.at + l * a.across, a.down, a.across};
    for (size_t c = 0; c < cols; c += 3 * lanes)
      multiply_block(lanes, count, depth, part, v + c, ldv, out + l * ldo + c, ldo);
  }
}

#ifdef X86
AVX512 static void multiply_avx512(size_t rows, size_t cols, size_t depth, factor a,
                                   const double *v, size_t ldv, double *out, size_t ldo) {
  multiply_body(8, 8, rows, cols, depth, a, v, ldv, out, ldo);
}

AVX2 static void multiply_avx2(size_t rows, size_t cols, size_t depth, factor a, const double *v,
                               size_t ldv, double *out, size_t ldo) {
  multiply_body(4, 4, rows, cols, depth, a, v, ldv, out, ldo);
}
#endif

static void multiply_baseline(size_t rows, size_t cols, size_t depth, factor a, const double *v,
                              size_t ldv, double *out, size_t ldo) {
  multiply_body(2, 4, rows, cols, depth, a, v, ldv, out, ldo);
}

/* out += A'V. A: depth x rows; v: depth x cols, row-major; out: rows x cols, row-major; rows a
   multiple of 8, cols of BAND. */
static void multiply(size_t rows, size_t cols, size_t depth, factor a, const double *v, size_t ldv,
                     double *out, size_t ldo) {
#ifdef X86
  const km_isa isa = km_isa_level();
  if (isa == KM_AVX512) {
    multiply_avx512(rows, cols, depth, a, v, ldv, out, ldo);
    return;
  }
  if (isa == KM_AVX2) {
    multiply_avx2(rows, cols, depth, a, v, ldv, out, ldo);
    return;
  }
#endif
  multiply_baseline(rows, cols, depth, a, v, ldv, out, ldo);
}

/* ---- K in tiles ---- */

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

static size_t extent(size_t n, size_t block) {
  const size_t left = n - block * TILE;
  return left < TILE ? left : TILE;
}

/* Where tile (i, j) starts; its columns have stride extent(n, i). Permutes the n^2 cells. */
static size_t tile_offset(size_t n, size_t i, size_t j) {
  return j * TILE * n + i * TILE * extent(n, j);
}

/* Sum by halves: the rounding error grows with log n, not n. */
static double total(size_t n, const double *x) {
  if (n > 128) return total(n / 2, x) + total(n - n / 2, x + n / 2);
  double sum = 0;
#ifdef _OPENMP
#pragma omp simd reduction(+ : sum)
#endif
  for (size_t i = 0; i < n; i++) sum += x[i];
  return sum;
}

static double dot(size_t n, const double *x, const double *y) {
  double sum = 0;
#ifdef _OPENMP
#pragma omp simd reduction(+ : sum)
#endif
  for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
  return sum;
}

static void subtract(size_t n, double f, const double *restrict x, double *restrict y) {
  SIMD
  for (size_t i = 0; i < n; i++) y[i] -= f * x[i];
}

/* Column sums of tile column j, and its lower tiles put in order by way of copy (n x TILE). */
static void to_tiles(const reduction *s, size_t j, double *copy) {
  const size_t n = s->n, width = extent(n, j), top = j * TILE;
  double *columns = s->a + top * n;
  for (size_t c = 0; c < width; c++) s->pack[top + c] = total(n, columns + c * n);
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
  num_threads(km_threads((double) s->n * (double) s->n / 4))
#endif
  for (size_t slot = 0; slot < SLOTS / 2; slot++)
    for (size_t j = slot; j < s->tiles; j += SLOTS / 2)
      to_tiles(s, j, s->sums + slot * s->rows * TILE);
  for (size_t i = 0; i < n; i++) w[i] = scale * (root * w[i] - column[i]);
  const double half = scale / 2 * (root * total(n, w) - w[0]);
  for (size_t i = 0; i < n; i++) {
    const double v = i == 0 ? root - 1 : root;
    s->wv[i * 2 * BAND] = w[i] - half * v;
    s->wv[i * 2 * BAND + BAND] = v;
  }
  for (size_t tile = 0; tile < s->tiles; tile++) pack_update(s, tile);
}

/* ---- step 2: to bandwidth BAND ---- */

/* Rows of panel c0 in one tile row, updated, into x; rows above c0 are zero. */
static void load_rows(const reduction *s, size_t c0, const double *update, size_t tile) {
  const size_t n = s->n, top = tile * TILE, first = top < c0 ? c0 - top : 0;
  const size_t height = extent(n, tile), cols = n - c0 < BAND ? n - c0 : BAND;
  const double *a = s->a + tile_offset(n, tile, c0 / TILE) + c0 % TILE * height;
  double *x = s->x + top * BAND;
  memset(x, 0, TILE * BAND * sizeof *x);
  for (size_t c = 0; c < cols; c++)
    for (size_t i = first; i < height; i++) x[i * BAND + c] = a[i + c * height];
  const factor wv = {s->wv + top * 2 * BAND, 1, 2 * BAND};
  multiply(TILE, BAND, 2 * BAND, wv, update, BAND, x, BAND);
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
    const double f = row[column], y = row[next] - f * w[next];
    SIMD
    for (size_t e = 0; e < 8; e++) {
      const double x0 = row[e] - f * w0[e];
      const double x1 = row[e + 8] - f * w1[e];
      const double x2 = row[e + 16] - f * w2[e];
      s0[e] += y * x0;
      s1[e] += y * x1;
      s2[e] += y * x2;
      row[e] = x0;
      row[e + 8] = x1;
      row[e + 16] = x2;
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

#ifdef X86
AVX512 static void panel_pass_avx512(size_t m, size_t first, size_t column, size_t next,
                                     double scale, const double *w, double *x, double *g) {
  panel_pass_body(m, first, column, next, scale, w, x, g);
}

AVX2 static void panel_pass_avx2(size_t m, size_t first, size_t column, size_t next, double scale,
                                 const double *w, double *x, double *g) {
  panel_pass_body(m, first, column, next, scale, w, x, g);
}
#endif

static void panel_pass_baseline(size_t m, size_t first, size_t column, size_t next, double scale,
                                const double *w, double *x, double *g) {
  panel_pass_body(m, first, column, next, scale, w, x, g);
}

static void panel_pass(size_t m, size_t first, size_t column, size_t next, double scale,
                       const double *w, double *x, double *g) {
#ifdef X86
  const km_isa isa = km_isa_level();
  if (isa == KM_AVX512) {
    panel_pass_avx512(m, first, column, next, scale, w, x, g);
    return;
  }
  if (isa == KM_AVX2) {
    panel_pass_avx2(m, first, column, next, scale, w, x, g);
    return;
  }
#endif
  panel_pass_baseline(m, first, column, next, scale, w, x, g);
}

/*
 * x (m x BAND, row-major) = QR: R above, reflectors (1, v) below. The products of a column with all
 * others come out of the pass that updates them, so each reflector costs one pass.
 */
static void factor_panel(size_t m, double *x, double *tau) {
  double g[BAND], w[BAND] = {0};
  panel_pass(m, 0, 0, 0, 1, w, x, g);
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
    panel_pass(m, c + 1, c, c + 1 < BAND ? c + 1 : c, scale, w, x, g);
  }
}

/* S of I - VSV' = H_1 .. H_b (upper triangular, row-major), from V (m x BAND, row-major). */
static void compact_factor(size_t m, const double *v, const double *tau, double *compact) {
  double gram[BAND * BAND] = {0};
  const factor left = {v, BAND, 1};
  multiply(BAND, BAND, m, left, v, BAND, gram, BAND);
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

/* The diagonal block of panel c0 goes to B. */
static void keep_diagonal(const reduction *s, size_t c0) {
  const size_t count = s->n - c0 < BAND ? s->n - c0 : BAND;
  double *x = s->x + c0 * BAND;
  for (size_t i = 0; i < count; i++)
    for (size_t c = 0; c <= i; c++) put_band(s, c0 + i, c0 + c, x[i * BAND + c]);
  memset(x, 0, count * BAND * sizeof *x);
}

/* R goes to B, and leaves 1 and zeros above the reflectors. */
static void keep_factor(const reduction *s, size_t c0) {
  const size_t r0 = c0 + BAND, count = s->n - r0 < BAND ? s->n - r0 : BAND;
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
  multiply(TILE, TILE, 2 * BAND, wv, s->pack + i * TILE * 2 * BAND, TILE, t, TILE);
  if (!whole)
    for (size_t c = left; c < width; c++)
      memcpy(a + top + c * height, t + top + c * TILE, (height - top) * sizeof *t);
  multiply(TILE, BAND, TILE, down, s->x + i * TILE * BAND, BAND, sums + j * TILE * BAND, BAND);
  const factor across = {t, TILE, 1};
  if (i != j)
    multiply(TILE, BAND, TILE, across, s->x + j * TILE * BAND, BAND, sums + i * TILE * BAND, BAND);
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
#pragma omp taskloop default(none) shared(s, first, tiles)
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
  multiply(TILE, BAND, BAND, av, compact, BAND, w, BAND);
  multiply(TILE, BAND, BAND, v, middle, BAND, w, BAND);
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
  multiply(BAND, BAND, s->n - r0, v, s->sums + r0 * BAND, BAND, inner, BAND);
  multiply(BAND, BAND, BAND, sym, compact, BAND, half, BAND);
  for (size_t i = 0; i < BAND * BAND; i++) half[i] *= -0.5;
  multiply(BAND, BAND, BAND, left, half, BAND, middle, BAND);
#ifdef _OPENMP
#pragma omp taskloop default(none) shared(s, c0, compact, middle)
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
static void to_band(const reduction *s, km_poll poll) {
  for (size_t c0 = 0, next; c0 < s->n; c0 = next) {
    const double left = (double) (s->n - c0), panel = 4 * left * left * BAND;
    next = c0 + BAND * (1 + (size_t) (poll_flops / panel));
    if (next > s->n) next = s->n;
    if (poll) poll();
#ifdef _OPENMP
#pragma omp parallel default(none) shared(s, c0, next) \
  num_threads(km_threads(panel / WORTH * (double) (next - c0) / BAND))
#pragma omp master
#endif
    reduce_panels(s, c0, next);
  }
}

/* ---- step 3: to tridiagonal form ---- */

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

/* w (2 BAND) = block v; block: 2 BAND x BAND, stride STRIDE. */
INLINE void block_times(const double *restrict block, const double *restrict v,
                        double *restrict w) {
  double s0[8], s1[8], s2[8], s3[8], s4[8], s5[8];
  SIMD
  for (size_t e = 0; e < 8; e++) s0[e] = s1[e] = s2[e] = s3[e] = s4[e] = s5[e] = 0;
  for (size_t j = 0; j < BAND; j++) {
    const double f = v[j], *column = block + j * STRIDE;
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

/* y = block'v; block: BAND x BAND, stride STRIDE. */
INLINE void block_inner(const double *restrict block, const double *restrict v,
                        double *restrict y) {
  for (size_t j = 0; j < BAND; j += 8) {
    double s[8][8];
    UNROLL
    for (size_t l = 0; l < 8; l++) {
      const double *column = block + (j + l) * STRIDE;
      SIMD
      for (size_t e = 0; e < 8; e++)
        s[l][e] = column[e] * v[e] + column[e + 8] * v[e + 8] + column[e + 16] * v[e + 16];
    }
    UNROLL
    for (size_t l = 0; l < 8; l++) y[j + l] = sum8(s[l]);
  }
}

/* The upper half of block loses vw' + wv', the lower one zv' + uy'. w, z: the halves of wz. */
INLINE void block_update(double *restrict block, const double *restrict v,
                         const double *restrict wz, const double *restrict u,
                         const double *restrict y) {
  const double *z = wz + BAND;
  for (size_t j = 0; j < BAND; j++) {
    const double f = v[j], g = wz[j], h = y[j];
    double *column = block + j * STRIDE;
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
 * One step down the band. block = (D; C): the diagonal block at row r and the one below it.
 * D <- HDH and C <- GCH with H = I - tau vv' and the reflector G that leaves C's first column a
 * multiple of e_1; v and tau become those of G.
 */
INLINE void chase_step(double *restrict block, double *restrict v, double *restrict tau) {
  double wz[2 * BAND], u[BAND], y[BAND], *c = block + BAND, *z = wz + BAND, next;
  block_times(block, v, wz);
  const double t = *tau, f = 0.5 * t * inner(wz, v);
  SIMD
  for (size_t e = 0; e < BAND; e++) {
    wz[e] = t * (wz[e] - f * v[e]);
    z[e] *= t;
    u[e] = c[e] - z[e]; /* v_0 = 1 */
  }
  const double beta = reflect(u, &next), zu = inner(z, u);
  block_inner(c, u, y);
  SIMD
  for (size_t e = 0; e < BAND; e++) y[e] = next * (y[e] - zu * v[e]);
  block_update(block, v, wz, u, y);
  SIMD
  for (size_t e = 0; e < BAND; e++) {
    c[e] = 0;
    v[e] = u[e];
  }
  c[0] = beta;
  /* Row 0 of C is in D when the next column is chased, which needs both halves. */
  for (size_t j = 1; j < BAND; j++) block[j + BAND * STRIDE] = c[j * STRIDE];
  *tau = next;
}

/* Where the reflector of step `step` for column k is kept: its tau (for v_0 = 1), then v. */
static size_t kept_offset(size_t n, size_t k, size_t step) {
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
    const size_t count = n - r < BAND ? n - r : BAND;
    double *kept = a + kept_offset(n, k, step);
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
    const size_t below = n - r - BAND < BAND ? n - r - BAND : BAND;
    keep_reflector(below, v, tau, a + kept_offset(n, k, step + 1));
  }
}

#ifdef X86
AVX512 static void chase_avx512(size_t n, double *band, double *a, size_t k, size_t from,
                                size_t to) {
  chase_body(n, band, a, k, from, to);
}

AVX2 static void chase_avx2(size_t n, double *band, double *a, size_t k, size_t from, size_t to) {
  chase_body(n, band, a, k, from, to);
}
#endif

static void chase_baseline(size_t n, double *band, double *a, size_t k, size_t from, size_t to) {
  chase_body(n, band, a, k, from, to);
}

static void chase(size_t n, double *band, double *a, size_t k, size_t from, size_t to) {
#ifdef X86
  const km_isa isa = km_isa_level();
  if (isa == KM_AVX512) {
    chase_avx512(n, band, a, k, from, to);
    return;
  }
  if (isa == KM_AVX2) {
    chase_avx2(n, band, a, k, from, to);
    return;
  }
#endif
  chase_baseline(n, band, a, k, from, to);
}

/*
 * Step t of column k + 1 needs step t + 1 of column k. So chunk c of group g holds, for its q-th
 * column, the steps c CHUNK - q .. (c + 1) CHUNK - q - 1.
 */
static void chase_chunk(const reduction *s, size_t group, size_t chunk) {
  const size_t end = (chunk + 1) * CHUNK;
  for (size_t q = 0; q < GROUP && q < end; q++) {
    const size_t k = group * GROUP + q, from = end - q < CHUNK ? 0 : end - q - CHUNK;
    if (k + 2 < s->n) chase(s->n, s->band, s->a, k, from, end - q);
  }
}

/* Chunks on one front, group + LAG chunk = front, do not meet. */
static void chase_fronts(const reduction *s, size_t chunks, size_t from, size_t to) {
  const size_t groups = (s->n + GROUP - 1) / GROUP;
  for (size_t front = from; front < to; front++) {
    const size_t first = front < chunks ? 0 : (front - chunks) / LAG + 1;
    const size_t last = front / LAG < groups ? front / LAG : groups - 1;
#ifdef _OPENMP
#pragma omp taskloop default(none) shared(s, first, last, front) grainsize(1)
#endif
    for (size_t group = first; group <= last; group++) chase_chunk(s, group, front - LAG * group);
  }
}

static void to_tridiagonal(const reduction *s, km_poll poll) {
  const size_t chunks = (s->n / BAND + 1 + GROUP) / CHUNK + 1;
  const size_t fronts = LAG * ((s->n + GROUP - 1) / GROUP) + chunks;
  const double flops = 14.0 * GROUP * CHUNK * BAND * BAND * (1 + (double) chunks / LAG);
  for (size_t from = 0, next; from < fronts; from = next) {
    next = from + 1 + (size_t) (poll_flops / 8 / flops); /* these flops are slower */
    if (next > fronts) next = fronts;
    if (poll) poll();
#ifdef _OPENMP
#pragma omp parallel default(none) shared(s, chunks, from, next) \
  num_threads(s->n < 3 * TILE ? 1 : km_threads(flops / WORTH * (double) (next - from)))
#pragma omp master
#endif
    chase_fronts(s, chunks, from, next);
  }
}

/* ---- the reduction ---- */

static size_t padded(size_t n) { return (n + TILE - 1) / TILE * TILE; }

static const size_t line = 64; /* bytes */

size_t km_tridiag_work(size_t n) {
  return padded(n) * BAND * (5 + SLOTS) + (size_t) SLOTS * TILE * TILE +
         (n + 2 * BAND) * (STRIDE + 1) + line / sizeof(double);
}

static reduction lay_out(size_t n, double *a, double *tau, double *work) {
  const size_t shift = (line - (uintptr_t) work % line) % line / sizeof(double);
  reduction s = {.n = n, .tiles = padded(n) / TILE, .rows = padded(n), .a = a, .tau = tau};
  s.wv = work + shift;
  s.pack = s.wv + s.rows * 2 * BAND;
  s.x = s.pack + s.rows * 2 * BAND;
  s.sums = s.x + s.rows * BAND;
  s.tile = s.sums + SLOTS * s.rows * BAND;
  s.band = s.tile + SLOTS * TILE * TILE;
  return s;
}

void km_tridiag(size_t n, double *a, double *diag, double *off, double *tau, double *work,
                km_poll poll) {
  memset(tau, 0, n * sizeof *tau);
  if (n == 1) {
    diag[0] = a[0];
    return;
  }
  memset(work, 0, km_tridiag_work(n) * sizeof *work);
  const reduction s = lay_out(n, a, tau, work);
  first_reflector(&s);
  to_band(&s, poll);
  to_tridiagonal(&s, poll);
  for (size_t k = 0; k < n; k++) diag[k] = s.band[k + STRIDE * k];
  for (size_t k = 0; k + 1 < n; k++) off[k] = s.band[k + 1 + STRIDE * k];
}

/* y <- (I - tau vv') y, v_0 = 1. */
static void apply_kept(size_t count, const double *kept, double *y) {
  const double f = kept[0] * (y[0] + dot(count - 1, kept + 1, y + 1));
  y[0] -= f;
  subtract(count - 1, f, kept + 1, y + 1);
}

/* y <- Hy for column c of step 2, which is in tiles. */
static void apply_column(size_t n, const double *a, double tau, size_t c, double *y) {
  const size_t top = (c / BAND + 1) * BAND, j = c / TILE, tiles = padded(n) / TILE;
  double sum = 0;
  for (size_t pass = 0; pass < 2; pass++)
    for (size_t i = top / TILE; i < tiles; i++) {
      const size_t height = extent(n, i), first = i * TILE < top ? top - i * TILE : 0;
      const double *v = a + tile_offset(n, i, j) + c % TILE * height + first;
      if (pass == 0)
        sum += dot(height - first, v, y + i * TILE + first);
      else
        subtract(height - first, tau * sum, v, y + i * TILE + first);
    }
}

void km_tridiag_apply(size_t n, const double *a, const double *tau, double *y) {
  if (n == 1) return;
  for (size_t k = n - 2; k-- > 0;)
    for (size_t r = k + 1, step = 0; r < n; r += BAND, step++)
      apply_kept(n - r < BAND ? n - r : BAND, a + kept_offset(n, k, step), y + r);
  for (size_t c = n; c-- > 0;)
    if (tau[c] != 0) apply_column(n, a, tau[c], c, y);
  const double root = 1 / sqrt((double) n);
  const double f = (root * total(n, y) - y[0]) / (1 - root);
  for (size_t i = 0; i < n; i++) y[i] -= f * (i == 0 ? root - 1 : root);
}

/* ---- spectrum of T ---- */

/*
 * One QL sweep over rows 0 .. m of T with the shift of Wilkinson. d: diagonal; e2: squares of the
 * off-diagonal; z: first row of the eigenvectors, or NULL. With p = (cos of the rotation times the
 * shifted diagonal entry)^2 as in Parlett, but p' = num^2 / (r p) puts one division, not two and a
 * root, on the way from one rotation to the next.
 */
static void ql_sweep(size_t m, double *restrict d, double *restrict e2, double *restrict z) {
  const double tiny = 1e-220; /* below it the cosine is zero: num^2 would underflow */
  const double root = sqrt(e2[0]), half = (d[1] - d[0]) / (2 * root);
  const double shift = d[0] - root / (half + copysign(sqrt(half * half + 1), half));
  double gamma = d[m] - shift, p = gamma * gamma, c = 1, s = 0;
  double sign = copysign(1, gamma), before = 1, carried = z ? z[m] : 0;
  for (size_t i = m; i-- > 0;) {
    const double r = p + e2[i], inverse = 1 / r, alpha = d[i];
    const double num = p * (alpha - shift) - e2[i] * gamma;
    const double c_next = p * inverse, s_next = e2[i] * inverse, gamma_next = num * inverse;
    if (i + 1 < m) e2[i + 1] = s * r;
    d[i + 1] = gamma + (alpha - gamma_next);
    if (z) {
      const double cosine = sign * sqrt(c_next), sine = sqrt(s_next);
      z[i + 1] = sine * z[i] + cosine * carried;
      carried = cosine * z[i] - sine * carried;
    }
    const double turned = p > tiny ? sign * copysign(1, num) : -before;
    p = p > tiny ? num * num / (r * p) : c * e2[i];
    before = sign;
    sign = turned;
    c = c_next;
    s = s_next;
    gamma = gamma_next;
  }
  d[0] = shift + gamma;
  e2[0] = s * p;
  if (z) z[0] = sign * carried; /* the new off-diagonal has that sign; e2 forgets it */
}

static void reverse(size_t n, double *x) {
  for (size_t i = 0; i < n / 2; i++) {
    const double keep = x[i];
    x[i] = x[n - 1 - i];
    x[n - 1 - i] = keep;
  }
}

/* Eigenvalues of T, of norm about 1, into d. Off-diagonals below small count as zero. */
static km_status ql(size_t n, double *d, double *e2, double *z) {
  const double small = DBL_EPSILON / 4, small2 = small * small;
  size_t sweeps = 0, end = 0;
  for (size_t i = 0; i < n;) {
    size_t m = i;
    while (m + 1 < n && !(e2[m] <= small2)) m++;
    if (m == i) {
      i++;
      continue;
    }
    if (m != end && fabs(d[i]) > fabs(d[m])) { /* a new block: start at its smaller end */
      reverse(m - i + 1, d + i);
      reverse(m - i, e2 + i);
      if (z) reverse(m - i + 1, z + i);
    }
    end = m;
    if (sweeps++ > 30 * n) return KM_NO_CONVERGENCE;
    ql_sweep(m - i, d + i, e2 + i, z ? z + i : NULL);
  }
  return KM_OK;
}

static void exchange(double *x, size_t i, size_t j) {
  const double keep = x[i];
  x[i] = x[j];
  x[j] = keep;
}

/* Restores the heap with the smallest value on top, below node i. */
static void sift(size_t n, size_t i, double *values, double *first) {
  for (size_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && values[child + 1] < values[child]) child++;
    if (!(values[child] < values[i])) return;
    exchange(values, i, child);
    if (first) exchange(first, i, child);
  }
}

static void sort_decreasing(size_t n, double *values, double *first) {
  for (size_t i = n / 2; i-- > 0;) sift(n, i, values, first);
  for (size_t left = n; left-- > 1;) {
    exchange(values, 0, left);
    if (first) exchange(first, 0, left);
    sift(left, 0, values, first);
  }
}

size_t km_tridiag_spectrum_work(size_t n) { return n; }

km_status km_tridiag_spectrum(size_t n, const double *diag, const double *off, double *values,
                              double *first, double *work) {
  double largest = 0;
  for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(diag[i]));
  for (size_t i = 0; i + 1 < n; i++) largest = fmax(largest, fabs(off[i]));
  int exponent = 0;
  frexp(largest, &exponent);
  for (size_t i = 0; i < n; i++) values[i] = ldexp(diag[i], -exponent);
  for (size_t i = 0; i + 1 < n; i++) {
    const double e = ldexp(off[i], -exponent);
    work[i] = e * e;
  }
  if (first) memset(first, 0, n * sizeof *first);
  if (first) first[0] = 1;
  const km_status status = ql(n, values, work, first);
  for (size_t i = 0; i < n; i++) values[i] = ldexp(values[i], exponent);
  if (first)
    for (size_t i = 0; i < n; i++) first[i] = fabs(first[i]);
  sort_decreasing(n, values, first);
  return status;
}

/* T + lambda I = LDL', then two substitutions. */
km_status km_tridiag_solve(size_t n, const double *diag, const double *off, double lambda,
                           double *x, double *work) {
  double *pivot = work, *factor_l = work + n;
  for (size_t i = 0; i < n; i++) {
    pivot[i] = diag[i] + lambda;
    if (i > 0) {
      factor_l[i] = off[i - 1] / pivot[i - 1];
      pivot[i] -= factor_l[i] * off[i - 1];
      x[i] -= factor_l[i] * x[i - 1];
    }
    if (!(pivot[i] > 0)) return KM_NOT_POSITIVE;
  }
  x[n - 1] /= pivot[n - 1];
  for (size_t i = n - 1; i-- > 0;) x[i] = x[i] / pivot[i] - factor_l[i + 1] * x[i + 1];
  return KM_OK;
}

/* ---- LAPACK ---- */

/* dsyevr with range "A" and abstol 0, as R's eigen() calls it; lwork = -1 asks for the sizes. */
static int syevr(size_t n, double *a, double *values, double *vectors, double *work, int lwork,
                 int *iwork, int liwork, int *isuppz) {
  const int order = (int) n, il = 0, iu = 0;
  const double vl = 0, vu = 0, tolerance = 0;
  int found = 0, info = 0;
  F77_CALL(dsyevr)("V", "A", "L", &order, a, &order, &vl, &vu, &il, &iu, &tolerance, &found, values,
                   vectors, &order, isuppz, work, &lwork, iwork, &liwork,
                   &info FCONE FCONE FCONE);
  return info;
}

size_t km_eigen_work(size_t n) {
  double best = 1, unused = 0;
  int size = 1, support[2] = {0, 0};
  syevr(n, &unused, &unused, &unused, &best, -1, &size, -1, support);
  return (size_t) best;
}

/* dsyevr's own 10 n, then the 2 n of isuppz. */
size_t km_eigen_iwork(size_t n) { return 12 * n; }

/* Sign rule: positive at the first entry within 1e-8 of the largest. */
static void fix_sign(size_t n, double *u) {
  const double within = 1 - 1e-8;
  double largest = 0;
  for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs(u[i]));
  size_t i = 0;
  while (i + 1 < n && fabs(u[i]) < within * largest) i++;
  if (u[i] < 0)
    for (size_t k = 0; k < n; k++) u[k] = -u[k];
}

km_status km_eigen(size_t n, double *a, double *values, double *vectors, double *work,
                   size_t lwork, int *iwork, size_t liwork, int *info) {
  *info = syevr(n, a, values, vectors, work, (int) lwork, iwork, (int) (liwork - 2 * n),
                iwork + liwork - 2 * n);
  if (*info != 0) return KM_NO_CONVERGENCE;
  reverse(n, values);
  for (size_t j = 0; j < n / 2; j++) {
    double *left = vectors + j * n, *right = vectors + (n - 1 - j) * n;
    for (size_t i = 0; i < n; i++) {
      const double keep = left[i];
      left[i] = right[i];
      right[i] = keep;
    }
  }
  for (size_t j = 0; j < n; j++) fix_sign(n, vectors + j * n);
  return KM_OK;
}

km_status km_cholesky(size_t n, double *a, double shift, int *info) {
  const int order = (int) n;
  for (size_t i = 0; i < n; i++) a[i + i * n] += shift;
  F77_CALL(dpotrf)("U", &order, a, &order, info FCONE);
  for (size_t j = 0; j < n; j++)
    for (size_t i = j + 1; i < n; i++) a[i + j * n] = 0;
  return *info == 0 ? KM_OK : KM_NOT_POSITIVE;
}

void km_cholesky_solve(size_t n, const double *r, double *x, size_t p) {
  const int order = (int) n, count = (int) p;
  int info = 0;
  F77_CALL(dpotrs)("U", &order, &count, r, &order, x, &order, &info FCONE);
}
