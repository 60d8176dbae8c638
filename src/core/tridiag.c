#include "core/tridiag.h"
#include "core/chase.h"
#include "core/parts.h"
#include "core/plain.h"
#include "core/scratch.h"

#include <math.h>
#include <string.h>

/*
 * The tridiagonal form K = QTQ' of a symmetric K (n x n, column-major, both halves filled) with
 * Q e_1 = e/sqrt(n), as F-KMSE needs it, in three steps:
 *   1. H = I - 2 vv'/v'v, v = e/sqrt(n) - e_1, maps e/sqrt(n) to plus e_1; HKH: a rank-2 update.
 *   2. HKH = Q_1 B Q_1', bandwidth b = BAND: panels of b columns, each reduced by b Householder
 *      reflectors (I - V S V'), and A <- A - VW' - WV' with Y = AVS, W = Y - V(S'V'Y)/2. The update
 *      of one panel and the product AV of the next are one pass over the lower triangle: 4n^3/3
 *      flops, but A is read and written only n/b times (LAPACK's dsytrd reads it n times).
 *   3. B = Q_2 T Q_2': column by column, each reflector chasing its bulge down the band; 6 b n^2
 *      flops within n x 3b doubles. Blocks of columns follow each other, LAG chunks of steps apart
 *      (chase.c).
 * Below PLAIN rows step 1 is followed by single reflections of whole columns (plain.c), which take
 * less time there: 50 rows 31 us for 134, 100 rows 181 for 436.
 * Q_1 and Q_2 leave e_1 alone, so Q = H Q_1 Q_2 has Q e_1 = e/sqrt(n). Reflectors of step 2 replace
 * the lower triangle of K, those of step 3 the upper one; H needs no storage. Scratch: 390 n
 * doubles. Partitions depend on n alone, so results are bit-identical for any number of threads.
 */

enum {
  BAND = KM_BAND,
  TILE = KM_BAND_TILE,
  STRIDE = KM_BAND_STRIDE,
  SLOTS = KM_BAND_SLOTS,
  PLAIN = 200
};

static size_t lay_out(reduction *s, size_t n, double *work) {
  km_scratch scratch = {work, 0};
  s->n = n;
  s->tiles = pieces(n, TILE);
  s->rows = s->tiles * TILE;
  s->wv = take_aligned(&scratch, s->rows * 2 * BAND);
  s->pack = take(&scratch, s->rows * 2 * BAND);
  s->x = take(&scratch, s->rows * BAND);
  s->sums = take(&scratch, SLOTS * s->rows * BAND);
  s->tile = take(&scratch, (size_t) SLOTS * TILE * TILE);
  s->band = take(&scratch, (n + 2 * BAND) * (STRIDE + 1));
  return scratch.used;
}

int km_tridiag_plain(size_t n) { return n < PLAIN; }

size_t km_tridiag_work(size_t n) {
  reduction s;
  return km_tridiag_plain(n) ? 2 * n : lay_out(&s, n, NULL);
}

/* H = I - 2 vv'/v'v, then the tridiagonal form of HAH. */
static void reflect_all(size_t n, double *a, double *diag, double *off, double *tau, double *work) {
  const double root = 1 / sqrt((double) n);
  double *v = work, *w = work + n;
  for (size_t i = 0; i < n; i++) v[i] = i == 0 ? root - 1 : root;
  km_plain_reflection(n, a, v, 1 / (1 - root), w);
  km_plain_tridiag(n, a, diag, off, tau, w);
}

void km_tridiag(size_t n, double *a, double *diag, double *off, double *tau, double *work,
                km_poll poll) {
  memset(tau, 0, n * sizeof *tau);
  if (n == 1) {
    diag[0] = a[0];
    return;
  }
  const int exponent = km_plain_scale(n, a);
  if (km_tridiag_plain(n)) {
    reflect_all(n, a, diag, off, tau, work);
    for (size_t k = 0; exponent != 0 && k < n; k++) diag[k] = ldexp(diag[k], exponent);
    for (size_t k = 0; exponent != 0 && k + 1 < n; k++) off[k] = ldexp(off[k], exponent);
    return;
  }
  memset(work, 0, km_tridiag_work(n) * sizeof *work);
  reduction s = {.a = a, .tau = tau};
  lay_out(&s, n, work);
  km_to_band(&s, poll);
  km_chase_band(&s, poll);
  for (size_t k = 0; k < n; k++) diag[k] = ldexp(s.band[k + STRIDE * k], exponent);
  for (size_t k = 0; k + 1 < n; k++) off[k] = ldexp(s.band[k + 1 + STRIDE * k], exponent);
}

/* y <- (I - tau vv') y, v_0 = 1. */
static void apply_kept(size_t count, const double *kept, double *y) {
  const double f = kept[0] * (y[0] + dot(count - 1, kept + 1, y + 1));
  y[0] -= f;
  subtract(count - 1, f, kept + 1, y + 1);
}

/* y <- Hy for column c of step 2, which is in tiles. */
static void apply_column(size_t n, const double *a, double tau, size_t c, double *y) {
  const size_t top = (c / BAND + 1) * BAND, j = c / TILE, tiles = pieces(n, TILE);
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
  if (km_tridiag_plain(n)) {
    km_plain_apply(n, a, tau, 1, y);
    km_first_reflector(n, y);
    return;
  }
  for (size_t k = n - 2; k-- > 0;)
    for (size_t r = k + 1, step = 0; r < n; r += BAND, step++)
      apply_kept(smaller(BAND, n - r), a + km_kept_offset(n, k, step), y + r);
  for (size_t c = n; c-- > 0;)
    if (tau[c] != 0) apply_column(n, a, tau[c], c, y);
  km_first_reflector(n, y);
}

void km_first_reflector(size_t n, double *y) {
  const double root = 1 / sqrt((double) n);
  const double f = (root * km_total(n, y) - y[0]) / (1 - root);
  for (size_t i = 0; i < n; i++) y[i] -= f * (i == 0 ? root - 1 : root);
}
