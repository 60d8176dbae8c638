#include "apps/bags.h"
#include "core/eigen.h"
#include "core/fold.h"
#include "core/isa.h"
#include "core/minimize.h"
#include "core/panel.h"
#include "core/parts.h"
#include "core/scores.h"
#include "core/scratch.h"

#include <float.h>
#include <math.h>
#include <string.h>

/*
 * F-KMSE, beta = (K + lambda I)^{-1} K 1_n: for each bag its matrix, all eigenpairs, the exact
 * leave-one-out score (core/scores.h) on a grid of lambda, five to a decade from 1e-10 to 1e4 times
 * the largest eigenvalue, and Brent's method in the two cells around the best: some 10 n^3 flops,
 * and 10 n^2 for each of about 90 values of lambda. A bag is one thread's, from its points to its
 * weights.
 *
 * Marginalized means: each pair of bags has bandwidths of its own, so the points of both are scaled
 * anew, a panel of them at a time: 6 flops a coordinate, against a tile's 64 kernel values for each
 * point.
 */

enum {
  WORKERS = 32,
  FEWEST = 8, /* workers at least, however large their scratch */
  GRID = 71,
  PANEL = KM_TILE_COLS
};

static const double poll_work = 1e9;         /* operations between two polls */
static const double lowest = 1e-10, highest = 1e4; /* lambda, by the largest eigenvalue */
static const double tolerance = 1e-5;        /* of log lambda */

/* ---- one bag ---- */

typedef struct {
  const km_source *source;
  const km_runs *bags;
  const double *lambda;
  const km_flexible *out;
  size_t largest, workers, size, ints; /* size, ints: the scratch of a worker */
  double cost;                         /* operations of the largest bag */
  double *slices;
  int *int_slices, *statuses; /* statuses: bags */
} flexible;

typedef struct {
  double *points;          /* n x d */
  double *k, *vectors;     /* n x n */
  double *gamma, *along;   /* n: eigenvalues, U'e */
  double *diagonal, *turn; /* n; turn: the weights in the axes of U */
  double *grid, *scores;   /* GRID */
  double *stage;           /* scratch of the steps, which come one after the other */
} slice;

/* The source of a bag of n points. */
static km_source bag_source(const km_source *all, size_t n, const double *points,
                            const double *k) {
  km_source own = *all;
  own.n = own.m = n;
  own.x = all->x ? points : NULL;
  own.k = all->k ? k : NULL;
  return own;
}

static size_t lay_out_slice(slice *s, const km_source *source, size_t n, double *work) {
  km_scratch scratch = {work, 0};
  const km_source own = bag_source(source, n, source->x, source->k);
  const size_t solver = larger(km_eigen_work(n, n, 0), km_eigen_work(n, n, 1));
  const size_t first = source->k ? 0 : km_fold_store_work(&own);
  s->points = take(&scratch, n * source->d);
  s->k = take(&scratch, n * n);
  s->vectors = take(&scratch, n * n);
  s->gamma = take(&scratch, n);
  s->along = take(&scratch, n);
  s->diagonal = take(&scratch, n);
  s->turn = take(&scratch, n);
  s->grid = take(&scratch, GRID);
  s->scores = take(&scratch, GRID);
  s->stage = take_aligned(&scratch, larger(larger(first, solver), km_score_loocv_work(n, GRID)));
  return scratch.used;
}

/* The matrix of points first .. first + n - 1. */
static void form_matrix(const km_source *source, size_t first, size_t n, const slice *s) {
  if (source->k) {
    for (size_t j = 0; j < n; j++)
      memcpy(s->k + j * n, source->k + first + (first + j) * source->n, n * sizeof *s->k);
    return;
  }
  for (size_t l = 0; l < source->d; l++)
    memcpy(s->points + l * n, source->x + first + l * source->n, n * sizeof *s->points);
  const km_source own = bag_source(source, n, s->points, NULL);
  km_fold_store(&own, s->k, s->stage, NULL);
}

/* Eigenvalues below n eps gamma_1 count as 0; s->along is filled too. */
static km_status decompose(size_t n, int divide, const slice *s, int *iwork) {
  const km_status status =
    km_eigen(n, s->k, n, s->gamma, s->vectors, divide, s->stage, iwork, NULL);
  if (status != KM_OK) return status;
  const double top = s->gamma[0] > 0 ? s->gamma[0] : 0, small = (double) n * DBL_EPSILON * top;
  if (s->gamma[n - 1] < -fmax(sqrt(DBL_EPSILON) * top, small)) return KM_NOT_POSITIVE;
  for (size_t j = 0; j < n; j++) {
    if (s->gamma[j] < small) s->gamma[j] = 0;
    s->along[j] = 0;
    for (size_t i = 0; i < n; i++) s->along[j] += s->vectors[i + j * n];
  }
  return KM_OK;
}

typedef struct {
  size_t n;
  const slice *s;
} scored;

static double score_at(double log_lambda, const void *of) {
  const size_t n = ((const scored *) of)->n;
  const slice *s = ((const scored *) of)->s;
  const double lambda = exp(log_lambda);
  double score;
  km_score_loocv(n, n, s->gamma, s->vectors, s->along, s->diagonal, NULL, 0, 1, &lambda, &score,
                 s->stage, NULL);
  return score;
}

/* The smallest score on the grid and around it; no convergence where scores overflow. */
static km_status search(size_t n, const slice *s, const km_flexible *out, size_t bag) {
  const double top = s->gamma[0];
  out->lambda[bag] = out->minimum[bag] = 0;
  if (lowest * top < DBL_MIN) return KM_OK;
  const double start = log(lowest * top), end = log(highest * top);
  const double cell = (end - start) / (GRID - 1);
  for (size_t g = 0; g < GRID; g++) s->grid[g] = exp(start + cell * (double) g);
  km_score_loocv(n, n, s->gamma, s->vectors, s->along, s->diagonal, NULL, 0, GRID, s->grid,
                 s->scores, s->stage, NULL);
  size_t best = 0;
  for (size_t g = 0; g < GRID; g++) {
    if (!isfinite(s->scores[g])) return KM_NO_CONVERGENCE;
    if (s->scores[g] < s->scores[best]) best = g;
  }
  const double at = start + cell * (double) best;
  const scored bag_scores = {n, s};
  const km_minimum refined = km_minimize(score_at, &bag_scores, best > 0 ? at - cell : at,
                                         best < GRID - 1 ? at + cell : at, tolerance);
  const int finer = refined.value <= s->scores[best];
  const double chosen = finer ? refined.at : at;
  out->lambda[bag] = finer ? exp(chosen) : s->grid[best];
  out->minimum[bag] = finer ? refined.value : s->scores[best];
  out->border[bag] = fmin(fabs(chosen - start), fabs(chosen - end)) < 1e-3 * cell;
  return KM_OK;
}

/* weights (n) and their norm2 for lambda > 0, from the spectrum. */
static double set_weights(size_t n, const slice *s, double lambda, double *weights) {
  double norm2 = 0;
  for (size_t j = 0; j < n; j++) {
    const double shifted = s->gamma[j] + lambda;
    s->turn[j] = shifted > 0 ? s->gamma[j] / shifted * s->along[j] / (double) n : 0;
    norm2 += s->gamma[j] * s->turn[j] * s->turn[j];
  }
  for (size_t i = 0; i < n; i++) weights[i] = 0;
  for (size_t j = 0; j < n; j++)
    for (size_t i = 0; i < n; i++) weights[i] += s->vectors[i + j * n] * s->turn[j];
  return norm2;
}

/* The weights 1/n, and the scores that are known without a spectrum. */
static void start_bag(size_t n, const slice *s, const km_flexible *out, size_t bag,
                      double *weights) {
  const double size = (double) n, others = size - 1;
  double sum = 0, trace = 0;
  for (size_t j = 0; j < n; j++) {
    s->diagonal[j] = s->k[j + j * n];
    trace += s->diagonal[j];
    for (size_t i = 0; i < n; i++) sum += s->k[i + j * n];
    weights[j] = 1 / size;
  }
  out->lambda[bag] = 0;
  out->border[bag] = 0;
  out->norm2[bag] = sum / (size * size);
  out->minimum[bag] = out->reference[bag] = NAN;
  if (n < 2) return;
  /* Of the mean without point i: K_ii - 2 (its value there) + its squared norm, averaged. */
  out->reference[bag] = trace / size - 2 * (sum - trace) / (size * others) +
                        (size * sum - 2 * sum + trace) / (size * others * others);
}

static km_status fit_bag(const flexible *f, size_t bag, size_t worker, int divide) {
  const size_t first = km_run_start(f->bags, bag), n = km_run_size(f->bags, bag);
  const km_flexible *out = f->out;
  double *weights = out->weights + first;
  slice s;
  lay_out_slice(&s, f->source, f->largest, f->slices + worker * f->size);
  form_matrix(f->source, first, n, &s);
  start_bag(n, &s, out, bag, weights);
  if (n < 2) return KM_OK;
  if (f->lambda) out->lambda[bag] = *f->lambda;
  if (f->lambda && (*f->lambda == 0 || isinf(*f->lambda))) {
    if (*f->lambda == 0) return KM_OK;
    memset(weights, 0, n * sizeof *weights);
    out->norm2[bag] = 0;
    return KM_OK;
  }
  km_status status = decompose(n, divide, &s, f->int_slices + worker * f->ints);
  if (status == KM_OK && !f->lambda) status = search(n, &s, out, bag);
  if (status != KM_OK) return status;
  if (out->lambda[bag] > 0) out->norm2[bag] = set_weights(n, &s, out->lambda[bag], weights);
  return KM_OK;
}

/* ---- all bags ---- */

static size_t lay_out_flexible(flexible *f, double *work) {
  km_scratch scratch = {work, 0};
  slice s;
  f->largest = 1;
  for (size_t b = 0; b < f->bags->count; b++)
    f->largest = larger(f->largest, km_run_size(f->bags, b));
  const double n = (double) f->largest;
  f->cost = n * n * (10 * n + 1000);
  f->size = lay_out_slice(&s, f->source, f->largest, NULL);
  f->ints = larger(km_eigen_iwork(f->largest, 0), km_eigen_iwork(f->largest, 1));
  f->workers = workers_that_fit(FEWEST, WORKERS, f->size);
  f->slices = take(&scratch, room_that_fits(FEWEST, WORKERS, f->size));
  return scratch.used;
}

static size_t lay_out_ints(flexible *f, int *iwork) {
  km_int_scratch scratch = {iwork, 0};
  f->int_slices = take_ints(&scratch, WORKERS * f->ints);
  f->statuses = take_ints(&scratch, f->bags->count);
  return scratch.used;
}

size_t km_bag_flexible_work(const km_source *source, const km_runs *bags) {
  flexible f = {.source = source, .bags = bags};
  return lay_out_flexible(&f, NULL);
}

size_t km_bag_flexible_iwork(const km_source *source, const km_runs *bags) {
  flexible f = {.source = source, .bags = bags};
  lay_out_flexible(&f, NULL);
  return lay_out_ints(&f, NULL);
}

/* Bags first .. last - 1, in equal shares. What a bag calls may open regions of its own: inside
   this one they have one thread, as its LAPACK (dstemr) has. */
static void fit_bags(const flexible *f, size_t first, size_t last) {
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(f, first, last) schedule(dynamic) \
    num_threads(km_threads((double) (last - first) * f->cost))
#endif
  for (size_t worker = 0; worker < f->workers; worker++) {
    const size_t end = first + share_start(last - first, f->workers, worker + 1);
    for (size_t b = first + share_start(last - first, f->workers, worker); b < end; b++)
      f->statuses[b] = (int) fit_bag(f, b, worker, 0);
  }
}

km_status km_bag_flexible(const km_source *source, const km_runs *bags, const double *lambda,
                          const km_flexible *out, double *work, int *iwork, km_poll poll) {
  flexible f = {.source = source, .bags = bags, .lambda = lambda, .out = out};
  lay_out_flexible(&f, work);
  lay_out_ints(&f, iwork);
  const size_t at_once = larger(f.workers, (size_t) (poll_work / f.cost));
  for (size_t first = 0; first < bags->count; first += at_once) {
    const size_t last = smaller(bags->count, first + at_once);
    fit_bags(&f, first, last);
    for (size_t b = first; b < last; b++) {
      km_status status = (km_status) f.statuses[b];
      if (status == KM_NO_CONVERGENCE) status = fit_bag(&f, b, 0, 1);
      if (status != KM_OK) return status;
    }
    if (poll) poll();
  }
  return KM_OK;
}

/* ---- marginalized means ---- */

typedef struct {
  const km_source *source;
  const km_runs *rows, *columns;
  const double *row_noise, *column_noise;
  int symmetric;
  double *slices, *inner;
} marginal;

/* The scratch of a worker: the points of two panels and |x_i|^2 / 2, the scales, a tile. */
typedef struct {
  double *x, *y, *scale, *k;
} pair_room;

static size_t lay_out_pair(pair_room *room, size_t d, double *work) {
  km_scratch scratch = {work, 0};
  room->x = take_aligned(&scratch, km_panel_size(d));
  room->y = take_aligned(&scratch, km_panel_size(d));
  room->k = take_aligned(&scratch, KM_PANEL_TILE);
  room->scale = take(&scratch, d);
  return scratch.used;
}

size_t km_bag_marginal_work(const km_source *source) {
  pair_room room;
  return WORKERS * lay_out_pair(&room, source->d, NULL);
}

INLINE void scale_body(size_t count, double center, double scale, const double *restrict x,
                       double *restrict scaled) {
  SIMD
  for (size_t i = 0; i < count; i++) scaled[i] = (x[i] - center) * scale;
}

VERSIONS(scale, (size_t count, double center, double scale, const double *x, double *scaled),
         (count, center, scale, x, scaled), (count, center, scale, x, scaled),
         (count, center, scale, x, scaled))

/* Packs points first .. last - 1 of x (n rows), at most PANEL. */
static km_point_set pack_panel(const km_source *source, const double *x, size_t n, size_t first,
                               size_t last, const double *scale, double *points) {
  const size_t d = source->d, count = last - first;
  scale_loop *scaled = scale_version();
  for (size_t from = 0; from < count; from += KM_PACK) {
    const size_t these = smaller(KM_PACK, count - from);
    for (size_t l = 0; l < d; l++) {
      double *to = points + from * d + l * KM_PACK;
      scaled(these, source->center[l], scale[l], x + first + from + l * n, to);
      for (size_t i = these; i < KM_PACK; i++) to[i] = 0;
    }
  }
  return km_panel_set(d, points, count);
}

/* The sum over two panels. */
static double sum_panels(const km_kernel *kernel, size_t d, km_point_set x, km_point_set y,
                         double *k) {
  double columns[PANEL] = {0}, sum = 0;
  km_panel_columns(kernel, d, x, y, NULL, k, columns);
  for (size_t j = 0; j < y.count; j++) sum += columns[j];
  return sum;
}

/* The inner product of bag a of the rows and bag b of the columns. */
static double pair_inner(const marginal *m, size_t a, size_t b, double *work) {
  const km_source *source = m->source;
  const size_t d = source->d;
  const double *y = source->y ? source->y : source->x;
  const size_t start = km_run_start(m->columns, b), end = (size_t) m->columns->ends[b];
  const size_t first = km_run_start(m->rows, a), last = (size_t) m->rows->ends[a];
  const int same = m->symmetric && a == b;
  double height = 1, sum = 0;
  pair_room room;
  lay_out_pair(&room, d, work);
  for (size_t l = 0; l < d; l++) {
    const double extra = m->row_noise[l + a * d] + m->column_noise[l + b * d];
    const double shrunk = 1 / sqrt(1 + extra * source->scale[l] * source->scale[l]);
    room.scale[l] = source->scale[l] * shrunk;
    height *= shrunk;
  }
  for (size_t i = first; i < last; i += PANEL) {
    const km_point_set rows = pack_panel(source, source->x, source->n, i, smaller(last, i + PANEL),
                                         room.scale, room.x);
    for (size_t j = same ? i : start; j < end; j += PANEL) {
      const km_point_set columns =
        pack_panel(source, y, source->m, j, smaller(end, j + PANEL), room.scale, room.y);
      const double times = same && j > i ? 2 : 1;
      sum += times * sum_panels(&source->kernel, d, rows, columns, room.k);
    }
  }
  return height * sum / ((double) (last - first) * (double) (end - start));
}

/* Pairs first .. last - 1: of a symmetric walk those of a <= b, counted along the rows. */
static void run_pairs(const marginal *m, size_t first, size_t last, double *work) {
  const size_t count = m->rows->count;
  size_t a = 0, b = first;
  if (m->symmetric)
    for (; b >= count - a; a++) b -= count - a;
  for (size_t index = first; index < last; index++) {
    const size_t row = m->symmetric ? a : index % count;
    const size_t column = m->symmetric ? a + b : index / count;
    m->inner[row + column * count] = pair_inner(m, row, column, work);
    if (!m->symmetric) continue;
    m->inner[column + row * count] = m->inner[row + column * count];
    if (++b == count - a) {
      a++;
      b = 0;
    }
  }
}

void km_bag_marginal(const km_source *source, const km_runs *rows, const double *noise,
                     const km_runs *columns, const double *column_noise, double *inner,
                     double *work, km_poll poll) {
  marginal m = {.source = source, .rows = rows, .columns = columns, .row_noise = noise,
                .column_noise = column_noise, .slices = work, .inner = inner};
  if (!columns) {
    m.symmetric = 1;
    m.columns = rows;
    m.column_noise = noise;
  }
  const size_t bags = rows->count, size = km_bag_marginal_work(source) / WORKERS;
  const size_t pairs = columns ? bags * columns->count : bags * (bags + 1) / 2;
  const double values = (double) source->n * (double) source->m;
  const double each = ((double) source->d + KM_EXP_COST) * values / (double) pairs;
  const size_t at_once = larger(WORKERS, (size_t) (poll_work / each));
  for (size_t first = 0; first < pairs; first += at_once) {
    const size_t count = smaller(at_once, pairs - first);
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(m, first) firstprivate(size, count, each) \
    schedule(dynamic) num_threads(km_threads((double) count * each))
#endif
    for (size_t worker = 0; worker < WORKERS; worker++)
      run_pairs(&m, first + share_start(count, WORKERS, worker),
                first + share_start(count, WORKERS, worker + 1), m.slices + worker * size);
    if (poll) poll();
  }
}
