#include "core/back.h"
#include "core/chase.h"
#include "core/parts.h"
#include "core/plain.h"
#include "core/scratch.h"

#include <string.h>

/*
 * Z <- QZ for the Q = H Q_1 Q_2 of the tridiagonal reduction (tridiag.c), a product of reflectors,
 * which are applied in blocks, I - V S V', to panels of columns of Z that lie row by row.
 *   Q_2: a block holds the reflectors of BAND columns at one step down the band, each a row lower
 *   than the one before. FEW of them at a time pass over the REACH rows that they touch: their
 *   products with these stay in registers, and zeros of V cost an eighth of the flops, where one V
 *   of 2 BAND rows for all BAND would cost half of them. Block (sweep, step) touches the rows that
 *   (sweep, step - 1) and (sweep + 1, step - 2 .. step) touch, and follows these. SWEEPS of them go
 *   down a panel one behind the other, so that its rows are fetched once for all.
 *   Q_1: a block holds WIDE columns.
 * What a block needs is prepared once for SLOTS panels. A column of Z costs 5 n^2 flops. Scratch:
 * about 480 n doubles and 1.05 n for each column of Z, up to 1,600 of them. The bits of a column
 * depend neither on its panel nor on threads.
 */

enum {
  BAND = KM_BAND,
  TILE = KM_BAND_TILE,
  WIDE = 2 * TILE,
  PANEL = 8 * BAND, /* columns at most */
  SLOTS = 8,        /* panels that are worked on at a time */
  SWEEPS = 4,
  FEW = 4,
  REACH = BAND + FEW - 1,
  PART = FEW * REACH + FEW * FEW, /* V of FEW reflectors, REACH x FEW, and -S, both row-major */
  BLOCK = BAND / FEW * PART,
  WORTH = KM_BAND_WORTH
};

typedef struct {
  size_t n, rows, steps; /* rows: of a panel, zeros below the last; steps: of a sweep, at most */
  const double *a, *tau; /* as km_tridiag left them */
  double *compact;       /* -S of each block of Q_1, WIDE x WIDE, row-major */
  double *prepared;      /* rows x WIDE: V of a block of Q_1; or SWEEPS x steps blocks of Q_2 */
  double *x;             /* SLOTS panels: strips of BAND columns, rows x BAND, row-major */
  double *inner;         /* SLOTS x 2 x WIDE x width: V'x, then -SV'x */
  size_t width;          /* columns of a panel */
  double *z;             /* n x count */
  size_t count;
} backward;

static size_t lay_out(backward *s, size_t n, size_t count, double *work) {
  km_scratch scratch = {work, 0};
  s->n = n;
  s->rows = round_up(n, WIDE) + TILE;
  s->steps = pieces(n, BAND);
  s->width = round_up(pieces(count, SLOTS * pieces(count, SLOTS * PANEL)), BAND);
  /* Room for all the panels there may be: fewer columns never ask for more. */
  const size_t columns = smaller(SLOTS * PANEL, round_up(count, s->width));
  s->x = take_aligned(&scratch, s->rows * columns);
  s->inner = take_aligned(&scratch, 2 * WIDE * columns);
  s->prepared = take_aligned(&scratch, larger(s->rows * WIDE, SWEEPS * s->steps * BLOCK));
  s->compact = take_aligned(&scratch, pieces(n, WIDE) * WIDE * WIDE);
  return scratch.used;
}

size_t km_tridiag_back_work(size_t n, size_t count) {
  backward s;
  return km_tridiag_plain(n) ? 0 : lay_out(&s, n, count, NULL);
}

/* Asks for numbers that are needed some steps on: a product would wait for its operands. */
INLINE void fetch(const double *x, size_t count) {
#ifdef __GNUC__
  for (size_t i = 0; i < count; i += 8) __builtin_prefetch(x + i, 1, 2);
#endif
}

/*
 * -S of I - V S V' = H_1 .. H_b from the Gram matrix of V, both b x b and row-major: S is the
 * inverse of diag(1/tau) plus what is above the diagonal of V'V, its rows are found from the last
 * to the first.
 */
static void negative_factor(size_t b, const double *gram, const double *tau, double *compact) {
  memset(compact, 0, b * b * sizeof *compact);
  for (size_t i = b; i-- > 0;) {
    double *row = compact + i * b;
    if (tau[i] == 0) continue;
    for (size_t k = i + 1; k < b; k++)
      subtract(b - k, tau[i] * gram[i * b + k], compact + k * b + k, row + k);
    row[i] = -tau[i];
  }
}

/* Block `step` of the sweep that starts with column k0. */
static void prepare_step(const backward *s, size_t k0, size_t step, double *block) {
  const size_t n = s->n, top = k0 + 1 + step * BAND;
  memset(block, 0, BLOCK * sizeof *block);
  for (size_t c = 0; c < BAND; c += FEW) {
    double *v = block + c / FEW * PART, tau[FEW] = {0}, gram[FEW * FEW] = {0};
    for (size_t q = 0; q < FEW && top + c + q < n && k0 + c + q + 2 < n; q++) {
      const size_t count = smaller(BAND, n - top - c - q);
      const double *kept = s->a + km_kept_offset(n, k0 + c + q, step);
      tau[q] = kept[0];
      v[q * FEW + q] = 1;
      for (size_t l = 1; l < count; l++) v[(q + l) * FEW + q] = kept[l];
    }
    for (size_t l = 0; l < REACH; l++)
      for (size_t i = 0; i < FEW; i++)
        for (size_t k = 0; k < FEW; k++) gram[i * FEW + k] += v[l * FEW + i] * v[l * FEW + k];
    negative_factor(FEW, gram, tau, v + FEW * REACH);
  }
}

/* x <- (I - VSV') x for the parts of a block, the last one first. x: rows of BAND columns, lanes x
   vectors of which are treated at a time. */
INLINE void apply_step_body(const size_t lanes, const size_t vectors, const double *block,
                            double *x) {
  for (size_t c = 0; c < BAND; c += lanes * vectors)
    for (size_t part = BAND / FEW; part-- > 0;) {
      const double *v = block + part * PART, *t = v + FEW * REACH;
      double *rows = x + part * FEW * BAND + c, s0[3][8], s1[3][8], s2[3][8], s3[3][8];
      UNROLL
      for (size_t p = 0; p < vectors; p++)
        SIMD
        for (size_t e = 0; e < lanes; e++) s0[p][e] = s1[p][e] = s2[p][e] = s3[p][e] = 0;
      for (size_t l = 0; l < REACH; l++) {
        const double *f = v + l * FEW, *row = rows + l * BAND;
        UNROLL
        for (size_t p = 0; p < vectors; p++)
          SIMD
          for (size_t e = 0; e < lanes; e++) {
            const double y = row[p * lanes + e];
            s0[p][e] += f[0] * y;
            s1[p][e] += f[1] * y;
            s2[p][e] += f[2] * y;
            s3[p][e] += f[3] * y;
          }
      }
      UNROLL
      for (size_t p = 0; p < vectors; p++)
        SIMD
        for (size_t e = 0; e < lanes; e++) {
          s0[p][e] = t[0] * s0[p][e] + t[1] * s1[p][e] + t[2] * s2[p][e] + t[3] * s3[p][e];
          s1[p][e] = t[5] * s1[p][e] + t[6] * s2[p][e] + t[7] * s3[p][e];
          s2[p][e] = t[10] * s2[p][e] + t[11] * s3[p][e];
          s3[p][e] = t[15] * s3[p][e];
        }
      for (size_t l = 0; l < REACH; l++) {
        const double *f = v + l * FEW, f0 = f[0], f1 = f[1], f2 = f[2], f3 = f[3];
        double *row = rows + l * BAND;
        UNROLL
        for (size_t p = 0; p < vectors; p++)
          SIMD
          for (size_t e = 0; e < lanes; e++) {
            double y = row[p * lanes + e];
            y += f0 * s0[p][e];
            y += f1 * s1[p][e];
            y += f2 * s2[p][e];
            row[p * lanes + e] = y + f3 * s3[p][e];
          }
      }
    }
}

/* Four sums a vector, and a value of each reflector: so many have the registers of each set. */
VERSIONS(apply_step, (const double *block, double *x), (8, 3, block, x), (4, 2, block, x),
         (2, 3, block, x))

/* Sweeps `first` down to `last` of Q_2, prepared in this order. */
static void apply_sweeps(const backward *s, size_t first, size_t last, double *x) {
  for (size_t step = 0; step < s->steps; step++)
    for (size_t sweep = first + 1; sweep-- > last;) {
      const size_t top = sweep * BAND + 1 + step * BAND;
      if (top >= s->n) continue;
      const double *block = s->prepared + ((first - sweep) * s->steps + step) * BLOCK;
      const size_t strips = s->width / BAND, share = BLOCK / strips;
      for (size_t c = 0; c < strips; c++) {
        fetch(block + BLOCK + c * share, share);
        apply_step_version()(block, x + (c * s->rows + top) * BAND);
      }
    }
}

/* Rows of tile row `tile` of V, for the block of Q_1 that starts with column c0. */
static void unpack_rows(const backward *s, size_t c0, size_t tile, double *v) {
  const size_t height = extent(s->n, tile), top = tile * TILE;
  memset(v, 0, TILE * WIDE * sizeof *v);
  for (size_t b = 0; b < WIDE && c0 + b + BAND < s->n; b += BAND) {
    const size_t start = c0 + b + BAND, skip = start > top ? start - top : 0;
    const double *columns = s->a + tile_offset(s->n, tile, (c0 + b) / TILE) + b % TILE * height;
    for (size_t k = 0; k < BAND; k++)
      for (size_t i = skip; i < height; i++) v[i * WIDE + b + k] = columns[k * height + i];
  }
}

static void find_compact(const backward *s, size_t c0, double *v) {
  double gram[WIDE * WIDE] = {0}, tau[WIDE] = {0};
  const factor left = {v, WIDE, 1};
  memcpy(tau, s->tau + c0, smaller(WIDE, s->n - c0) * sizeof *tau);
  for (size_t tile = c0 / TILE; tile < pieces(s->n, TILE); tile++) {
    unpack_rows(s, c0, tile, v);
    for (size_t c = 0; c < WIDE; c += BAND)
      km_multiply(WIDE, BAND, TILE, left, v + c, WIDE, gram + c, WIDE);
  }
  negative_factor(WIDE, gram, tau, s->compact + c0 * WIDE);
}

/* x <- (I - VSV') x for the block of Q_1 that starts with column c0. */
static void apply_wide(const backward *s, size_t c0, double *x, double *inner) {
  const size_t strips = s->width / BAND, chunk = WIDE * BAND;
  double *middle = inner + strips * chunk;
  memset(inner, 0, 2 * strips * chunk * sizeof *inner);
  for (size_t i = c0; i < s->n; i += WIDE)
    for (size_t c = 0; c < strips; c++) {
      const double *here = x + (c * s->rows + i) * BAND;
      const double *next = c + 1 < strips ? here + s->rows * BAND : x + (i + WIDE) * BAND;
      for (size_t l = 0; l < WIDE; l += 8) {
        const factor v = {s->prepared + i * WIDE + l, WIDE, 1};
        fetch(next + l * BAND, 8 * BAND);
        km_multiply(8, BAND, WIDE, v, here, BAND, inner + c * chunk + l * BAND, BAND);
      }
    }
  const factor compact = {s->compact + c0 * WIDE, 1, WIDE};
  for (size_t c = 0; c < strips; c++)
    km_multiply(WIDE, BAND, WIDE, compact, inner + c * chunk, BAND, middle + c * chunk, BAND);
  for (size_t i = c0; i < s->n; i += WIDE)
    for (size_t c = 0; c < strips; c++) {
      double *here = x + (c * s->rows + i) * BAND;
      const double *next = c + 1 < strips ? here + s->rows * BAND : x + (i + WIDE) * BAND;
      for (size_t l = 0; l < WIDE; l += 8) {
        const factor v = {s->prepared + (i + l) * WIDE, 1, WIDE};
        fetch(next + l * BAND, 8 * BAND);
        km_multiply(8, BAND, WIDE, v, middle + c * chunk, BAND, here + l * BAND, BAND);
      }
    }
}

static double *panel(const backward *s, size_t slot) { return s->x + slot * s->rows * s->width; }

static void load_panel(const backward *s, size_t first, double *x) {
  const size_t n = s->n, have = smaller(s->width, s->count - first);
  memset(x, 0, s->rows * s->width * sizeof *x);
  for (size_t p = 0; p < have; p++) {
    const double *y = s->z + (first + p) * n;
    double *column = x + p / BAND * BAND * s->rows + p % BAND;
    for (size_t i = 0; i < n; i++) column[i * BAND] = y[i];
  }
}

static void store_panel(const backward *s, size_t first, const double *x) {
  const size_t n = s->n, have = smaller(s->width, s->count - first);
  for (size_t p = 0; p < have; p++) {
    double *y = s->z + (first + p) * n;
    const double *column = x + p / BAND * BAND * s->rows + p % BAND;
    for (size_t i = 0; i < n; i++) y[i] = column[i * BAND];
    km_first_reflector(n, y);
  }
}

static void back_sweeps(const backward *s, size_t first, size_t last, size_t panels) {
  const size_t blocks = (first - last + 1) * s->steps;
#ifdef _OPENMP
#pragma omp for schedule(dynamic, 8)
#endif
  for (size_t block = 0; block < blocks; block++) {
    const size_t sweep = first - block / s->steps, step = block % s->steps;
    if ((sweep + step) * BAND + 1 < s->n)
      prepare_step(s, sweep * BAND, step, s->prepared + block * BLOCK);
  }
#ifdef _OPENMP
#pragma omp for schedule(dynamic, 1)
#endif
  for (size_t slot = 0; slot < panels; slot++) apply_sweeps(s, first, last, panel(s, slot));
}

static void back_wide(const backward *s, size_t c0, size_t panels) {
  const size_t tiles = round_up(s->n, WIDE) / TILE;
#ifdef _OPENMP
#pragma omp for schedule(dynamic, 4)
#endif
  for (size_t tile = c0 / TILE; tile < tiles; tile++) {
    double *v = s->prepared + tile * TILE * WIDE;
    if (tile * TILE < s->n)
      unpack_rows(s, c0, tile, v);
    else
      memset(v, 0, TILE * WIDE * sizeof *v);
  }
#ifdef _OPENMP
#pragma omp for schedule(dynamic, 1)
#endif
  for (size_t slot = 0; slot < panels; slot++)
    apply_wide(s, c0, panel(s, slot), s->inner + slot * 2 * WIDE * s->width);
}

/* Threads for `count` reflectors on so many panels. */
static inline int threads_for(const backward *s, size_t count, size_t panels) {
  const double numbers = (double) s->n * (double) (s->width * panels);
  return km_threads(4 * (double) count * numbers / WORTH);
}

/* `panels` of them, from column `from` of Z on. */
static void back_panels(const backward *s, size_t from, size_t panels, km_poll poll) {
  const size_t n = s->n, width = s->width;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(s, from, panels) firstprivate(width) \
    schedule(dynamic, 1) num_threads(threads_for(s, WORTH / 4, panels))
#endif
  for (size_t slot = 0; slot < panels; slot++) load_panel(s, from + slot * width, panel(s, slot));
  for (size_t end = s->steps; end > 0;) {
    const size_t last = end > SWEEPS ? end - SWEEPS : 0;
    if (poll) poll();
#ifdef _OPENMP
#pragma omp parallel default(none) shared(s, end, panels) firstprivate(last) \
    num_threads(threads_for(s, SWEEPS * BAND, panels))
#endif
    back_sweeps(s, end - 1, last, panels);
    end = last;
  }
  for (size_t block = n > BAND ? pieces(n - BAND, WIDE) : 0; block-- > 0;) {
    if (poll) poll();
#ifdef _OPENMP
#pragma omp parallel default(none) shared(s, block, panels) \
  num_threads(threads_for(s, WIDE, panels))
#endif
    back_wide(s, block * WIDE, panels);
  }
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(s, from, panels) firstprivate(width) \
    schedule(dynamic, 1) num_threads(threads_for(s, WORTH / 4, panels))
#endif
  for (size_t slot = 0; slot < panels; slot++) store_panel(s, from + slot * width, panel(s, slot));
}

static void find_all_compact(const backward *s) {
  const size_t blocks = s->n > BAND ? pieces(s->n - BAND, WIDE) : 0;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(s) firstprivate(blocks) schedule(dynamic, 1) \
    num_threads(km_threads((double) s->n * (double) s->n * WIDE / WORTH))
#endif
  for (size_t block = 0; block < blocks; block++)
    find_compact(s, block * WIDE, s->prepared + block * TILE * WIDE);
}

void km_tridiag_back(size_t n, const double *a, const double *tau, size_t count, double *z,
                     double *work, km_poll poll) {
  backward s = {.a = a, .tau = tau, .z = z, .count = count};
  if (n == 1 || count == 0) return;
  if (km_tridiag_plain(n)) {
    km_plain_apply(n, a, tau, count, z);
    for (size_t j = 0; j < count; j++) km_first_reflector(n, z + j * n);
    return;
  }
  lay_out(&s, n, count, work);
  find_all_compact(&s);
  for (size_t from = 0; from < count; from += SLOTS * s.width)
    back_panels(&s, from, smaller(SLOTS, pieces(count - from, s.width)), poll);
}
