#include "core/profiles.h"
#include "core/eigen.h"
#include "core/products.h"
#include "core/scratch.h"
#include "core/tridiag.h"

#include <string.h>

/*
 * For each subset: its block of the Gram matrix, centered and divided by m (or the covariance of
 * its features), is reduced to tridiagonal form (tridiag.c), whose eigenvalues are found: 4 m^3 / 3
 * flops (and 2 m r^2 for features, of which there are r in place of m) and O(m^2). Subsets are
 * dealt to workers, each of which has m^2 + 390 m doubles; the reductions inside are of one thread
 * then. Where one of them is large or takes long, they follow each other, of all threads, and poll.
 * A spectrum depends on its own subset alone.
 */

enum { FEWEST = 4, MOST = 32, WORD = 64 }; /* workers; bits of a word */
enum { STRIP = 1024 };                     /* members whose features are gathered at once */

static const double panel_flops = 8e9; /* between two polls */

typedef struct {
  size_t workers, slice; /* workers: 1 where subsets must follow each other */
  double *slices;
} spectra_room;

typedef struct {
  int *members;
  double *block, *wide;                    /* the matrix; features of a strip, row-major */
  double *mean, *diag, *off, *tau, *found; /* one for each of its rows */
  double *stage;                           /* scratch of the reduction, then of its values */
} subset_room;

/* Rows of the largest matrix. */
static size_t largest(km_point_rows points, size_t most) {
  return points.r < points.n ? points.r : most;
}

static size_t lay_out_subset(subset_room *s, km_point_rows points, size_t most, double *work) {
  km_scratch scratch = {work, 0};
  const int features = points.r < points.n;
  const size_t rows = largest(points, most), padded = round_up(rows, KM_BAND);
  s->block = take_aligned(&scratch, features ? padded * padded : rows * rows);
  s->wide = take_aligned(&scratch, features ? smaller(most, STRIP) * padded : 0);
  s->mean = take(&scratch, padded);
  s->diag = take(&scratch, rows);
  s->off = take(&scratch, rows);
  s->tau = take(&scratch, rows);
  s->found = take(&scratch, rows);
  s->members = (int *) take(&scratch, most);
  s->stage = take(&scratch, larger(km_tridiag_work(rows), km_tridiag_spectrum_work(rows)));
  return scratch.used;
}

static double flops_of(km_point_rows points, size_t most) {
  const double m = (double) largest(points, most), more = points.r < points.n ? 2 : 0;
  return m * m * (4 * m / 3 + 128 + more * (double) most);
}

static size_t lay_out(spectra_room *s, km_point_rows points, size_t most, double *work) {
  subset_room one;
  km_scratch scratch = {work, 0};
  s->slice = lay_out_subset(&one, points, most, NULL);
  const int apart = FEWEST * s->slice <= KM_MOST_SCRATCH;
  s->workers = apart ? workers_that_fit(FEWEST, MOST, s->slice) : 1;
  s->slices = take(&scratch, apart ? room_that_fits(FEWEST, MOST, s->slice)
                                   : larger(s->slice, KM_MOST_SCRATCH));
  return scratch.used;
}

size_t km_subset_spectra_work(km_point_rows points, size_t most) {
  spectra_room s;
  return lay_out(&s, points, most, NULL);
}

static size_t find_members(size_t n, km_point_subsets of, size_t c, int *members) {
  size_t m = 0;
  for (size_t i = 0; i < n; i++) {
    const size_t u = of.unit ? (size_t) of.unit[i] - 1 : i;
    const int inside = (int) (of.words[u / WORD * of.count + c] >> u % WORD & 1);
    if (inside != of.outside) members[m++] = (int) i;
  }
  return m;
}

/* The block of K of m members, less the means of its rows and columns, divided by m. */
static void centered_block(km_point_rows points, size_t m, const subset_room *s) {
  const double share = 1 / (double) m;
  for (size_t j = 0; j < m; j++) {
    const double *column = points.rows + (size_t) s->members[j] * points.n;
    double *to = s->block + j * m;
    for (size_t i = 0; i < m; i++) to[i] = column[s->members[i]];
    s->mean[j] = share * km_total(m, to);
  }
  const double all = share * km_total(m, s->mean);
  for (size_t j = 0; j < m; j++)
    for (size_t i = 0; i < m; i++) {
      double *at = s->block + i + j * m;
      *at = share * (*at - (s->mean[i] + s->mean[j]) + all);
    }
}

/* The covariance of the features of m members. */
static void covariance(km_point_rows points, size_t m, const subset_room *s, km_poll poll) {
  const size_t r = points.r, padded = round_up(r, KM_BAND);
  const double share = 1 / (double) m;
  memset(s->block, 0, padded * padded * sizeof *s->block);
  memset(s->wide, 0, smaller(m, STRIP) * padded * sizeof *s->wide);
  for (size_t j = 0; j < r; j++) {
    double sum = 0;
    for (size_t i = 0; i < m; i++) sum += points.rows[(size_t) s->members[i] + j * points.n];
    s->mean[j] = share * sum;
  }
  for (size_t first = 0; first < m; first += STRIP) {
    const size_t count = smaller(STRIP, m - first);
    const int *members = s->members + first;
    for (size_t j = 0; j < r; j++) {
      const double *column = points.rows + j * points.n;
      for (size_t i = 0; i < count; i++)
        s->wide[i * padded + j] = column[members[i]] - s->mean[j];
    }
    const factor turned = {s->wide, padded, 1};
    km_multiply(padded, padded, count, turned, s->wide, padded, s->block, padded);
    if (poll) poll();
  }
  for (size_t j = 0; j < r; j++)
    for (size_t i = 0; i < r; i++) s->block[i + j * r] = share * s->block[i + j * padded];
}

static km_status spectrum_of(km_point_rows points, km_point_subsets of, size_t c, size_t kept,
                             double least, double *values, double *slice, km_poll poll) {
  subset_room s;
  lay_out_subset(&s, points, of.most, slice);
  const size_t m = find_members(points.n, of, c, s.members);
  const size_t rows = largest(points, m);
  if (points.r < points.n)
    covariance(points, m, &s, poll);
  else
    centered_block(points, m, &s);
  km_tridiag(rows, s.block, s.diag, s.off, s.tau, s.stage, poll);
  const km_status status = km_tridiag_spectrum(rows, s.diag, s.off, s.found, NULL, s.stage);
  for (size_t i = 0; i < kept; i++) values[i] = i < rows && s.found[i] >= least ? s.found[i] : 0;
  return status;
}

/* A worker's share of the subsets from `first` to `last`. */
static km_status add_spectra(km_point_rows points, km_point_subsets of, size_t kept, double least,
                             const spectra_room *room, size_t worker, size_t first, size_t last,
                             double *values) {
  const size_t count = last - first;
  const size_t from = first + share_start(count, room->workers, worker);
  const size_t to = first + share_start(count, room->workers, worker + 1);
  km_status status = KM_OK;
  for (size_t c = from; c < to && status == KM_OK; c++)
    status = spectrum_of(points, of, c, kept, least, values + c * kept,
                         room->slices + worker * room->slice, NULL);
  return status;
}

km_status km_subset_spectra(km_point_rows points, km_point_subsets of, size_t kept, double least,
                            double *values, double *work, km_poll poll) {
  spectra_room room;
  lay_out(&room, points, of.most, work);
  const double flops = flops_of(points, of.most);
  if (room.workers == 1 || flops > panel_flops) {
    km_status status = KM_OK;
    for (size_t c = 0; c < of.count && status == KM_OK; c++)
      status = spectrum_of(points, of, c, kept, least, values + c * kept, room.slices, poll);
    return status;
  }
  const size_t threads = smaller(room.workers, (size_t) km_threads(flops * (double) of.count));
  const size_t step = threads * (1 + (size_t) (panel_flops / flops / (double) threads));
  km_status found[MOST];
  for (size_t first = 0; first < of.count; first += step) {
    const size_t last = smaller(of.count, first + step);
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(points, of, kept, least, room, first, values, found) \
    firstprivate(last) schedule(dynamic, 1) num_threads(km_threads(flops * (double) (last - first)))
#endif
    for (size_t worker = 0; worker < room.workers; worker++)
      found[worker] = add_spectra(points, of, kept, least, &room, worker, first, last, values);
    for (size_t worker = 0; worker < room.workers; worker++)
      if (found[worker] != KM_OK) return found[worker];
    if (poll) poll();
  }
  return KM_OK;
}
