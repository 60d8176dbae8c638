#include "apps/smooth.h"
#include "core/axes.h"
#include "core/isa.h"
#include "core/panel.h"
#include "core/parts.h"
#include "core/scratch.h"
#include "core/tile.h"

#include <float.h>
#include <math.h>
#include <string.h>

/*
 * mu_h is the mean over i of E k(p_i + e, .), e normal of covariance hS, p_i = m + sqrt(1 - h) z_i,
 * S the covariance of Ledoit and Wolf (2004). In the axes of S, from the mean, inner products are
 * RBF kernels again: mu_h and mu_g have exp(-(sqrt(1 - h) y_il - sqrt(1 - g) y_jl)^2 / 2 r_l) over
 * prod sqrt(r_l), r_l = 1 + (h + g) s_l, and g = 0 are its values at points. So a fold takes its
 * axes once (n p^2 + 10 p^3 flops), then for each h or pair of them a walk over its points.
 * Doubles: n (p + 1) for each of 32 folds at most, 64 MB unless a single one takes more.
 */

enum {
  WORKERS = 32,
  PACK = KM_PACK,
  PANEL = KM_TILE_COLS
};

static const double poll_work = 1e9;         /* operations between two polls */
static const double worker_work = 5e5;       /* operations that a worker's scratch is worth */
static const km_kernel rbf = {.family = KM_RBF};

/* A fold: packed points from the mean in the axes of S. */
typedef struct {
  size_t fold, kept, left;      /* points it keeps, points that are left out */
  double *kept_points, *points; /* p a point, in whole packs; points: left out */
  double *s;                    /* p: variances along the axes */
  double unseen, unseen_s;      /* how many directions have no coordinate, their variance */
  double *a, *vectors, *stage;  /* p x p twice; scratch of the axes */
} subset;

/* The scratch of a worker. */
typedef struct {
  double *rows, *columns, *tile, *row_scale, *column_scale;
  double *values; /* at the points left out or, where there are other candidates, kept */
} room;

typedef struct {
  const km_smooth_job *job;
  const km_smooth_sums *out;
  size_t most_kept, most_left;
  size_t group, items, workers; /* folds at once, walks of a fold, workers */
  double each, axes;            /* operations of a walk, of the axes of a fold, about */
  subset subsets[WORKERS];
  room rooms[WORKERS];
  int statuses[WORKERS];
} folds;

/* --- The axes of a fold ------------------------------------------------------ */

static size_t lay_out_subset(subset *s, const folds *f, double *work) {
  const size_t p = f->job->p;
  km_scratch scratch = {work, 0};
  s->kept_points = take_aligned(&scratch, round_up(f->most_kept, PACK) * p);
  s->points = take_aligned(&scratch, round_up(f->most_left, PACK) * p);
  s->stage = take_aligned(&scratch, larger(larger(km_axes_work(p), PACK * p),
                                         round_up(f->most_kept, PACK)));
  s->s = take(&scratch, p);
  s->a = take(&scratch, p * p);
  s->vectors = take(&scratch, p * p);
  return scratch.used;
}

/* Has column l no variance of its own without the fold? */
static int is_lost(const km_smooth_job *job, const subset *s, size_t l) {
  return job->lost[l] == (int) s->fold + 1;
}

/* The mean of column l over the points kept; exact where they all are equal. */
static double column_mean(const km_smooth_job *job, const subset *s, size_t l) {
  const double *x = job->x + l * job->n;
  const int out = (int) s->fold + 1;
  size_t first = 0;
  while (job->fold[first] == out) first++;
  double sum = 0;
  for (size_t i = first; i < job->n; i++)
    if (job->fold[i] != out) sum += x[i] - x[first];
  return x[first] + sum / (double) s->kept;
}

/* Points from their mean into packs, zeros after the last. */
static void pack_centered(const km_smooth_job *job, const subset *s) {
  const size_t n = job->n, p = job->p;
  const int out = (int) s->fold + 1;
  for (size_t l = 0; l < p; l++) {
    const double mean = column_mean(job, s, l), *x = job->x + l * n;
    const int lost = is_lost(job, s, l);
    size_t kept = 0, left = 0;
    for (size_t i = 0; i < n; i++) {
      const int inside = job->fold[i] != out;
      const size_t at = inside ? kept++ : left++;
      double *to = inside ? s->kept_points : s->points;
      to[at / PACK * PACK * p + l * PACK + at % PACK] = inside && lost ? 0 : x[i] - mean;
    }
    for (; kept % PACK; kept++) s->kept_points[kept / PACK * PACK * p + l * PACK + kept % PACK] = 0;
    for (; left % PACK; left++) s->points[left / PACK * PACK * p + l * PACK + left % PACK] = 0;
  }
}

/* The sum over the points of packs of coordinate k times coordinate l. */
INLINE double product_body(size_t packs, size_t p, const double *points, size_t k, size_t l) {
  double sum = 0;
  for (size_t pack = 0; pack < packs; pack++) {
    const double *a = points + (pack * p + k) * PACK, *b = points + (pack * p + l) * PACK;
    SIMD_SUMS(sum)
    for (size_t i = 0; i < PACK; i++) sum += a[i] * b[i];
  }
  return sum;
}

/* a (p x p) <- sum_i z_i z_i' / count */
INLINE void covariance_body(size_t packs, size_t p, const double *points, double count, double *a) {
  for (size_t l = 0; l < p; l++)
    for (size_t k = 0; k <= l; k++)
      a[k + l * p] = a[l + k * p] = product_body(packs, p, points, k, l) / count;
}

VERSIONS(covariance, (size_t packs, size_t p, const double *points, double count, double *a),
         (packs, p, points, count, a), (packs, p, points, count, a), (packs, p, points, count, a))

/* A pack of points <- its coordinates along the axes. turned: room for it. */
INLINE void turn_body(size_t p, const double *axes, double *points, double *turned) {
  for (size_t j = 0; j < p; j++) {
    double *restrict to = turned + j * PACK;
    for (size_t i = 0; i < PACK; i++) to[i] = 0;
    for (size_t l = 0; l < p; l++) {
      const double *from = points + l * PACK, by = axes[l + j * p];
      SIMD
      for (size_t i = 0; i < PACK; i++) to[i] += by * from[i];
    }
  }
  memcpy(points, turned, PACK * p * sizeof *points);
}

VERSIONS(turn, (size_t p, const double *axes, double *points, double *turned),
         (p, axes, points, turned), (p, axes, points, turned), (p, axes, points, turned))

/*
 * a <- share t I + (1 - share) a, share = b^2 / delta^2, where t is the mean variance, delta^2 =
 * |a - tI|^2 and b^2 = min(delta^2, sum_i |z_i z_i' - a|^2 / n^2); directions that have no
 * coordinate count as those that have one do, columns that are lost do not.
 */
static void shrink(const km_smooth_job *job, subset *s) {
  const size_t p = job->p;
  const double kept = (double) s->kept;
  double *a = s->a, d = s->unseen, trace = 0, squares = 0, fourth = 0;
  for (size_t l = 0; l < p; l++) {
    d += !is_lost(job, s, l);
    trace += a[l + l * p];
  }
  const double t = d > 0 ? trace / d : 0;
  double delta2 = s->unseen * t * t;
  for (size_t l = 0; l < p; l++) {
    for (size_t k = 0; k < p; k++) squares += a[k + l * p] * a[k + l * p];
    for (size_t k = 0; k < l; k++) delta2 += 2 * a[k + l * p] * a[k + l * p];
    if (!is_lost(job, s, l)) delta2 += (a[l + l * p] - t) * (a[l + l * p] - t);
  }
  km_simd()->half_norms(s->kept_points, round_up(s->kept, PACK), p, s->stage);
  for (size_t i = 0; i < s->kept; i++) fourth += 4 * s->stage[i] * s->stage[i];
  const double b2 = fmax(0, fourth / kept - squares) / kept;
  const double share = delta2 > 0 ? fmin(1, b2 / delta2) : 0;
  for (size_t l = 0; l < p; l++) {
    for (size_t k = 0; k < p; k++) a[k + l * p] *= 1 - share;
    if (!is_lost(job, s, l)) a[l + l * p] += share * t;
  }
  s->unseen_s = share * t;
}

static km_status take_axes(const folds *f, subset *s) {
  const km_smooth_job *job = f->job;
  const size_t n = job->n, p = job->p;
  s->kept = 0;
  for (size_t i = 0; i < n; i++) s->kept += job->fold[i] != (int) s->fold + 1;
  s->left = n - s->kept;
  s->unseen = (double) job->unseen[0];
  for (size_t g = 0; g < job->folds; g++)
    if (g != s->fold) s->unseen += (double) job->unseen[1 + g];
  pack_centered(job, s);
  covariance_version()(pieces(s->kept, PACK), p, s->kept_points, (double) s->kept, s->a);
  shrink(job, s);
  double trace = 0;
  for (size_t l = 0; l < p; l++) trace += s->a[l + l * p];
  if (!(trace > 0 && trace <= DBL_MAX)) { /* nothing varies, or beyond all numbers */
    for (size_t l = 0; l < p; l++) s->s[l] = trace == 0 ? 0 : DBL_MAX;
    return KM_OK;
  }
  const km_status status = km_axes(p, s->a, s->s, s->vectors, s->stage);
  if (status != KM_OK) return status;
  for (size_t l = 0; l < p; l++) s->s[l] = fmax(0, s->s[l]);
  turn_loop *turn = turn_version();
  for (size_t i = 0; i < s->kept; i += PACK) turn(p, s->vectors, s->kept_points + i * p, s->stage);
  for (size_t i = 0; i < s->left; i += PACK) turn(p, s->vectors, s->points + i * p, s->stage);
  return KM_OK;
}

/* --- Walks over the points of a fold ----------------------------------------- */

/* Points times `times`. */
typedef struct {
  const double *points;
  size_t count;
  double times;
} side;

/* The points p_i of mu_h from the mean: at h = 1 they are one. */
static side smoothed(const subset *s, double h) {
  return (side){s->kept_points, h < 1 ? s->kept : 1, sqrt(fmax(0, 1 - h))};
}

/* Scales for noise of covariance c S, and the factor that goes with it. */
static double set_scales(const subset *s, size_t p, double c, const side *rows,
                         const side *columns, const room *own) {
  const double large = 1e100;
  double logs = s->unseen > 0 ? s->unseen * log1p(c * s->unseen_s) : 0, product = 1;
  for (size_t l = 0; l < p; l++) {
    const double r = 1 + c * s->s[l], root = 1 / sqrt(r);
    own->row_scale[l] = rows->times * root;
    own->column_scale[l] = columns->times * root;
    product *= r;
    if (product > large) { /* one logarithm for many factors, none of them lost */
      logs += log(product);
      product = 1;
    }
  }
  return exp(-(logs + log(product)) / 2);
}

static km_point_set panel_of(const side *from, size_t p, size_t first, const double *scale,
                             double *scaled) {
  return km_panel_scale(p, from->points + first * p, smaller(PANEL, from->count - first), scale,
                        scaled);
}

static double total(const double *columns) {
  double sum = 0;
  for (size_t j = 0; j < PANEL; j++) sum += columns[j];
  return sum;
}

/* The sum of the kernel between rows and columns, and unless `values` is NULL its sums over the
   rows, a column each. */
static double sum_between(size_t p, const side *rows, const side *columns, const room *own,
                          double *values) {
  double sum = 0;
  for (size_t j = 0; j < columns->count; j += PANEL) {
    const km_point_set y = panel_of(columns, p, j, own->column_scale, own->columns);
    double sums[PANEL] = {0};
    for (size_t i = 0; i < rows->count; i += PANEL)
      km_panel_columns(&rbf, p, panel_of(rows, p, i, own->row_scale, own->rows), y, NULL,
                       own->tile, sums);
    if (values) memcpy(values + j, sums, y.count * sizeof *values);
    sum += total(sums);
  }
  return sum;
}

/* The same within one set. */
static double sum_within(size_t p, const side *all, const room *own) {
  double sum = 0;
  for (size_t j = 0; j < all->count; j += PANEL) {
    const km_point_set y = panel_of(all, p, j, own->column_scale, own->columns);
    double before[PANEL] = {0}, within[PANEL] = {0};
    for (size_t i = 0; i < j; i += PANEL)
      km_panel_columns(&rbf, p, panel_of(all, p, i, own->row_scale, own->rows), y, NULL,
                       own->tile, before);
    km_panel_columns(&rbf, p, y, y, NULL, own->tile, within);
    sum += 2 * total(before) + total(within);
  }
  return sum;
}

/* at_hi and cross_hqf of number a of the grid. */
static void set_values(const folds *f, const subset *s, size_t a, const room *own) {
  const km_smooth_job *job = f->job;
  const size_t p = job->p, n = job->n, q = job->others;
  const side rows = smoothed(s, job->h[a]), left = {s->points, s->left, 1};
  const double height = set_scales(s, p, job->h[a], &rows, &left, own) / (double) rows.count;
  sum_between(p, &rows, &left, own, own->values);
  for (size_t i = 0, at = 0; i < n; i++)
    if (job->fold[i] == (int) s->fold + 1)
      f->out->at[a + i * job->h_count] = height * own->values[at++];
  if (!job->weights) return;
  const side kept = {s->kept_points, s->kept, 1};
  sum_between(p, &rows, &kept, own, own->values);
  for (size_t c = 0; c < q; c++) {
    const double *weights = job->weights + (c + s->fold * q) * n;
    double sum = 0;
    for (size_t i = 0, at = 0; i < n; i++)
      if (job->fold[i] != (int) s->fold + 1) sum += weights[i] * own->values[at++];
    f->out->cross[a + (c + s->fold * q) * job->h_count] = height * sum;
  }
}

/* The inner product of numbers a and b of the grid. */
static double inner_product(const folds *f, const subset *s, size_t a, size_t b, const room *own) {
  const km_smooth_job *job = f->job;
  const side rows = smoothed(s, job->h[a]), columns = smoothed(s, job->h[b]);
  const double height = set_scales(s, job->p, job->h[a] + job->h[b], &rows, &columns, own);
  const double sum = a == b ? sum_within(job->p, &rows, own)
                            : sum_between(job->p, &rows, &columns, own, NULL);
  return height * sum / ((double) rows.count * (double) columns.count);
}

/* Walk number `item` of a fold: a value of h, or a pair a <= b of them, counted by a. */
static void run_item(const folds *f, const subset *s, size_t item, const room *own) {
  const size_t count = f->job->h_count;
  size_t a = 0, b = item;
  if (!f->job->pairs) {
    set_values(f, s, item, own);
    f->out->norms[item + s->fold * count] = inner_product(f, s, item, item, own);
    return;
  }
  for (; b >= count - a; a++) b -= count - a;
  b += a;
  double *norms = f->out->norms + s->fold * count * count;
  if (a == b) set_values(f, s, a, own);
  norms[a + b * count] = norms[b + a * count] = inner_product(f, s, a, b, own);
}

/* --- All folds ---------------------------------------------------------------- */

static void count_points(folds *f) {
  const km_smooth_job *job = f->job;
  size_t least = job->n;
  f->most_left = 0;
  for (size_t g = 0; g < job->folds; g++) {
    size_t left = 0;
    for (size_t i = 0; i < job->n; i++) left += job->fold[i] == (int) g + 1;
    f->most_left = larger(f->most_left, left);
    least = smaller(least, left);
  }
  f->most_kept = job->n - least;
}

static size_t lay_out_room(room *own, const folds *f, double *work) {
  const size_t p = f->job->p;
  km_scratch scratch = {work, 0};
  own->rows = take_aligned(&scratch, km_panel_size(p));
  own->columns = take_aligned(&scratch, km_panel_size(p));
  own->tile = take_aligned(&scratch, KM_PANEL_TILE);
  own->row_scale = take(&scratch, p);
  own->column_scale = take(&scratch, p);
  own->values = take(&scratch, larger(f->most_left, f->job->weights ? f->most_kept : 0));
  return scratch.used;
}

static size_t lay_out(folds *f, double *work) {
  const km_smooth_job *job = f->job;
  const double n = (double) job->n, p = (double) job->p, value = p + KM_EXP_COST;
  count_points(f);
  f->items = job->pairs ? job->h_count * (job->h_count + 1) / 2 : job->h_count;
  f->each = n * (n + PANEL) * value * (job->pairs || job->weights ? 1 : 0.5);
  f->axes = p * (n * (p + 8) / 4 + 10 * p * p);
  const double all = f->each * (double) f->items * (double) job->folds;
  f->workers = (size_t) fmin(WORKERS, 1 + all / worker_work);
  subset probe;
  const size_t size = lay_out_subset(&probe, f, NULL), most = smaller(WORKERS, job->folds);
  const double few = fmax(4, poll_work / f->axes); /* folds between two polls */
  f->group = (size_t) fmin(few, (double) workers_that_fit(1, most, size));
  km_scratch scratch = {work, 0};
  double *slices = take(&scratch, room_that_fits(1, most, size));
  for (size_t g = 0; work && g < f->group; g++)
    lay_out_subset(&f->subsets[g], f, slices + g * size);
  const size_t desk = lay_out_room(&f->rooms[0], f, NULL);
  for (size_t worker = 0; worker < f->workers; worker++) {
    double *own = take(&scratch, desk);
    if (work) lay_out_room(&f->rooms[worker], f, own);
  }
  return scratch.used;
}

size_t km_smooth_folds_work(const km_smooth_job *job) {
  folds f = {.job = job};
  return lay_out(&f, NULL);
}

/* The axes of `count` folds. */
static km_status take_all_axes(folds *f, size_t count) {
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(f, count) schedule(dynamic) \
    num_threads(km_threads((double) count * f->axes))
#endif
  for (size_t g = 0; g < count; g++) f->statuses[g] = (int) take_axes(f, &f->subsets[g]);
  for (size_t g = 0; g < count; g++)
    if (f->statuses[g] != KM_OK) return (km_status) f->statuses[g];
  return KM_OK;
}

/* Walks first .. last - 1 of the folds at hand, in equal shares. */
static void run_items(const folds *f, size_t first, size_t last) {
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(f, first, last) schedule(dynamic) \
    num_threads(km_threads((double) (last - first) * f->each))
#endif
  for (size_t worker = 0; worker < f->workers; worker++) {
    const size_t end = first + share_start(last - first, f->workers, worker + 1);
    for (size_t i = first + share_start(last - first, f->workers, worker); i < end; i++)
      run_item(f, &f->subsets[i / f->items], i % f->items, &f->rooms[worker]);
  }
}

km_status km_smooth_folds(const km_smooth_job *job, const km_smooth_sums *out, double *work,
                          km_poll poll) {
  folds f = {.job = job, .out = out};
  lay_out(&f, work);
  const size_t at_once = larger(f.workers, (size_t) (poll_work / f.each));
  for (size_t fold = 0; fold < job->folds; fold += f.group) {
    const size_t count = smaller(f.group, job->folds - fold);
    for (size_t g = 0; g < count; g++) f.subsets[g].fold = fold + g;
    const km_status status = take_all_axes(&f, count);
    if (status != KM_OK) return status;
    if (poll) poll();
    for (size_t first = 0; first < count * f.items; first += at_once) {
      run_items(&f, first, smaller(count * f.items, first + at_once));
      if (poll) poll();
    }
  }
  return KM_OK;
}
