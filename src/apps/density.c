#include "apps/density.h"
#include "core/arithmetic.h"
#include "core/isa.h"
#include "core/products.h"
#include "core/rows.h"
#include "core/scratch.h"
#include "core/threads.h"

#include <math.h>
#include <string.h>

/*
 * Kernel mean matching (Song et al. 2008): for Q = sum_j pi_j N(mean_j, v_j I) and an estimate f,
 * |f - mu_Q|^2 = |f|^2 + J, J = pi'G pi - 2 pi'g, g_j = <f, mu_j>, G_jk = <mu_j, mu_k>
 * in closed form. RBF, with theta_l the bandwidths and e_l the noise:
 *   g_j = sum_i w_i prod_l theta_l / sqrt(t_l) exp(-sum_l (x_il - mean_jl)^2 / (2 t_l)),
 *   t_l = theta_l^2 + v_j + e_l; G_jk is the same of one point, mean_k, with v_k for e_l.
 * Polynomials (x'y + b)^p, p <= 3, from the moments of the normal distribution.
 * The gradient takes one more pass over the points: 6 nmd flops in all (9 where the t_l differ) and
 * nm exponentials, and 3 m^2 d for G. Doubles: m (d + 2) for each of 32 workers at most.
 */

/* What a worker adds up for a component: value, to_variance, then d of to_mean. */
enum { VALUE, TO_VARIANCE, TO_MEAN };

enum { CHUNK = KM_ROW_CHUNK };

/* The terms of g_j and of its derivatives at the points of a chunk. */
typedef struct {
  double value[CHUNK], to_variance[CHUNK], to_mean[CHUNK];
} terms;

/* RBF, t_l the same for all l: from squared distances to exponents, and to_variance. */
INLINE void exponents_body(size_t count, double log_height, double rate, double *restrict value,
                           double *restrict to_variance) {
  SIMD
  for (size_t i = 0; i < count; i++) {
    const double scaled = value[i] * rate;
    value[i] = log_height - scaled / 2;
    to_variance[i] = scaled * rate;
  }
}

/* The terms times weights w; those of RBF are products with its values in to_mean. */
INLINE void weigh_body(size_t count, const double *restrict w, int rbf, double *restrict value,
                       double *restrict to_variance, double *restrict to_mean) {
  if (rbf)
    SIMD
    for (size_t i = 0; i < count; i++) {
      to_mean[i] *= w[i];
      value[i] = to_mean[i];
      to_variance[i] *= to_mean[i];
    }
  else
    SIMD
    for (size_t i = 0; i < count; i++) {
      value[i] *= w[i];
      to_variance[i] *= w[i];
      to_mean[i] *= w[i];
    }
}

/* sums += the terms of `count` points; the means' ones times x_il - shift_l. */
INLINE void add_body(size_t count, size_t n, size_t d, const double *restrict x,
                     const double *shift, const terms *t, double *sums) {
  double value = 0, to_variance = 0;
  SIMD_SUMS(value, to_variance)
  for (size_t i = 0; i < count; i++) {
    value += t->value[i];
    to_variance += t->to_variance[i];
  }
  sums[VALUE] += value;
  sums[TO_VARIANCE] += to_variance;
  for (size_t l = 0; l < d; l++) {
    double sum = 0;
    SIMD_SUMS(sum)
    for (size_t i = 0; i < count; i++) sum += t->to_mean[i] * (x[i + l * n] - shift[l]);
    sums[TO_MEAN + l] += sum;
  }
}

VERSIONS(exponents,
         (size_t count, double log_height, double rate, double *value, double *to_variance),
         (count, log_height, rate, value, to_variance),
         (count, log_height, rate, value, to_variance),
         (count, log_height, rate, value, to_variance))

VERSIONS(weigh,
         (size_t count, const double *w, int rbf, double *value, double *to_variance,
          double *to_mean),
         (count, w, rbf, value, to_variance, to_mean),
         (count, w, rbf, value, to_variance, to_mean),
         (count, w, rbf, value, to_variance, to_mean))

VERSIONS(add,
         (size_t count, size_t n, size_t d, const double *x, const double *shift, const terms *t,
          double *sums),
         (count, n, d, x, shift, t, sums), (count, n, d, x, shift, t, sums),
         (count, n, d, x, shift, t, sums))

/* The loops for the instructions in use. */
typedef struct {
  km_row_loops rows;
  exponents_loop *exponents;
  weigh_loop *weigh;
  add_loop *add;
  const km_arithmetic *arithmetic;
} loops;

static loops choose_loops(void) {
  return (loops){km_rows(), exponents_version(), weigh_version(), add_version(), km_simd()};
}

/* E k(x, Y) = value for a polynomial kernel, Y from N(mean, variance I), a = x'mean + b and s =
   |x|^2; to_mean is the factor of x in the derivative. */
static void poly_terms(int degree, double a, double s, double variance, double *value,
                       double *to_mean, double *to_variance) {
  switch (degree) {
  case 1:
    *value = a;
    *to_mean = 1;
    *to_variance = 0;
    break;
  case 2:
    *value = a * a + variance * s;
    *to_mean = 2 * a;
    *to_variance = s;
    break;
  default:
    *value = a * (a * a + 3 * variance * s);
    *to_mean = 3 * (a * a + variance * s);
    *to_variance = 3 * a * s;
  }
}

/* Scratch of km_match. Of the components d numbers of one after the other, or one of each. */
typedef struct {
  int even;                 /* RBF: t_l is the same for all l */
  const double *shift;      /* what is taken off x_i in to_mean: the means, or zeros */
  double *sums;             /* of add_points */
  double *means, *to_means; /* d: as in the mixture, and the derivatives by them */
  double *zeros;            /* d */
  double *rate, *rate2;     /* RBF, d: 1 / t_l and its square */
  double *total;            /* RBF, one: the sum of 1 / t_l */
  double *log_height;       /* RBF, one: log prod_l theta_l / sqrt(t_l) */
  double *norms;            /* polynomials, n: |x_i|^2 */
  double *pair;             /* 3 d: of add_pairs */
} match;

/* The terms of component j at points i, ..., i + count - 1. */
static void point_terms(const loops *loop, const km_estimate *e, const km_mixture *q,
                        const match *s, size_t j, size_t i, size_t count, terms *t) {
  const size_t n = e->source->n, d = q->d;
  const km_kernel *kernel = &e->source->kernel;
  const int rbf = kernel->family == KM_RBF;
  const double *x = e->source->x + i, *mean = s->means + j * d;
  const double *rate = s->rate + j * d, *rate2 = s->rate2 + j * d;
  if (rbf && s->even) {
    loop->rows.distances(count, n, d, x, mean, t->value);
    loop->exponents(count, s->log_height[j], rate[0], t->value, t->to_variance);
  } else if (rbf) {
    loop->rows.squares(count, n, d, x, mean, rate, rate2, t->value, t->to_variance);
    for (size_t r = 0; r < count; r++) t->value[r] = s->log_height[j] - t->value[r] / 2;
  } else {
    loop->rows.inner(count, n, d, x, mean, kernel->offset, t->value);
    for (size_t r = 0; r < count; r++)
      poly_terms(kernel->degree, t->value[r], s->norms[i + r], q->variances[j], &t->value[r],
                 &t->to_mean[r], &t->to_variance[r]);
  }
  if (rbf) loop->arithmetic->exp_all(t->value, count, t->to_mean);
  loop->weigh(count, e->weights + i, rbf, t->value, t->to_variance, t->to_mean);
}

/* The sums over points of each component, for each worker: workers x m x (d + 2), by rows. */
static void add_points(const km_estimate *e, const km_mixture *q, const match *s) {
  const size_t n = e->source->n, m = q->m, d = q->d, size = d + TO_MEAN;
  const size_t workers = row_workers(n);
  const loops loop = choose_loops();
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(e, q, s) firstprivate(n, m, d, size, workers, loop) \
    schedule(dynamic) num_threads(km_threads(row_operations(n, m, d)))
#endif
  for (size_t worker = 0; worker < workers; worker++) {
    const size_t end = first_chunk(n, workers, worker + 1);
    double *own = s->sums + worker * m * size;
    memset(own, 0, m * size * sizeof *own);
    for (size_t chunk = first_chunk(n, workers, worker); chunk < end; chunk++) {
      const size_t i = chunk * CHUNK, count = smaller(CHUNK, n - i);
      terms t;
      for (size_t j = 0; j < m; j++) {
        point_terms(&loop, e, q, s, j, i, count, &t);
        loop.add(count, n, d, e->source->x + i, s->shift + j * d, &t, own + j * size);
      }
    }
  }
}

/* Is t_l the same for all l? */
static int is_even(const km_source *source, const double *e) {
  const double *scale = source->scale;
  int even = 1;
  for (size_t l = 1; l < source->d; l++)
    even = even && scale[l] == scale[0] && (!e || e[l] == e[0]);
  return even;
}

/* 1 / t_l and its square for t_l = theta_l^2 + v + e_l (e NULL: 0), their sum in *total; returns
   log prod_l theta_l / sqrt(t_l). theta_l = 1 / scale_l. */
static double rates(const km_source *source, int even, double v, const double *e,
                    double *restrict rate, double *restrict rate2, double *total) {
  const size_t d = source->d;
  const double *scale = source->scale;
  double sum = 0, log_ratio = 0;
  for (size_t l = 0; l < (even ? 1 : d); l++) {
    const double theta2 = 1 / (scale[l] * scale[l]), extra = v + (e ? e[l] : 0);
    rate[l] = 1 / (theta2 + extra);
    rate2[l] = rate[l] * rate[l];
    sum += rate[l];
    log_ratio += log1p(extra / theta2);
  }
  if (even)
    for (size_t l = 1; l < d; l++) {
      rate[l] = rate[0];
      rate2[l] = rate2[0];
    }
  const double times = even ? (double) d : 1;
  *total = times * sum;
  return -times * log_ratio / 2;
}

/* Two components: means of d numbers, and variances. */
typedef struct {
  size_t d;
  const double *a, *b;
  double v, u;
} pair;

/* Their inner product, and its derivatives by a (to_mean: d) and v; those by b and u are -to_mean
   and to_variance. rate, rate2: d. */
static double rbf_pair(const km_source *source, int even, const pair *p, double *restrict rate,
                       double *restrict rate2, double *restrict to_mean, double *to_variance) {
  const double *a = p->a, *b = p->b;
  double total, square = 0, other = 0;
  const double log_height = rates(source, even, p->v + p->u, NULL, rate, rate2, &total);
  SIMD_SUMS(square, other)
  for (size_t l = 0; l < p->d; l++) {
    const double difference = a[l] - b[l], moved = difference * rate[l];
    square += difference * moved;
    other += moved * moved;
    to_mean[l] = -moved;
  }
  const double value = exp(log_height - square / 2);
  for (size_t l = 0; l < p->d; l++) to_mean[l] *= value;
  *to_variance = value * (other - total) / 2;
  return value;
}

/* The same by a and v only: M = a'b + offset, S = u |a|^2 + v |b|^2 + d u v; degree 2 is M^2 + S,
   degree 3 is M^3 + 3 M S + 6 u v a'b. */
static double poly_pair(const km_kernel *kernel, const pair *p, double *to_mean,
                        double *to_variance) {
  const double *a = p->a, *b = p->b, u = p->u, v = p->v;
  double inner = 0, own = 0, theirs = 0;
  for (size_t l = 0; l < p->d; l++) {
    inner += a[l] * b[l];
    own += a[l] * a[l];
    theirs += b[l] * b[l];
  }
  const double mean = inner + kernel->offset, by_v = theirs + (double) p->d * u;
  const double spread = u * own + v * by_v;
  double value, to_a, to_b; /* derivative by a: to_a a + to_b b */
  switch (kernel->degree) {
  case 1:
    value = mean;
    to_a = 0;
    to_b = 1;
    *to_variance = 0;
    break;
  case 2:
    value = mean * mean + spread;
    to_a = 2 * u;
    to_b = 2 * mean;
    *to_variance = by_v;
    break;
  default:
    value = mean * (mean * mean + 3 * spread) + 6 * u * v * inner;
    to_a = 6 * mean * u;
    to_b = 3 * (mean * mean + spread) + 6 * u * v;
    *to_variance = 3 * mean * by_v + 6 * u * inner;
  }
  for (size_t l = 0; l < p->d; l++) to_mean[l] = to_a * a[l] + to_b * b[l];
  return value;
}

/* Adds 2 G pi to the derivatives by the weights, those of pi'G pi to the others (to_means: d
   numbers of one component after the other, as `means`); returns pi'G pi. scratch: 3 d. */
static double add_pairs(const km_source *source, const km_mixture *q, const double *means,
                        const km_matching *out, double *to_means, double *scratch) {
  const size_t m = q->m, d = q->d;
  const double *weights = q->weights;
  const km_kernel *kernel = &source->kernel;
  const int rbf = kernel->family == KM_RBF, even = rbf && is_even(source, NULL);
  double *to_mean = scratch, *rate = scratch + d, *rate2 = scratch + 2 * d, form = 0;
  for (size_t j = 0; j < m; j++)
    for (size_t k = 0; k <= j; k++) {
      const double twice = 2 * weights[j] * weights[k];
      const pair p = {d, means + j * d, means + k * d, q->variances[j], q->variances[k]};
      double value, to_variance;
      if (rbf)
        value = rbf_pair(source, even, &p, rate, rate2, to_mean, &to_variance);
      else
        value = poly_pair(kernel, &p, to_mean, &to_variance);
      subtract(d, -twice, to_mean, to_means + j * d);
      out->to_variances[j] += twice * to_variance;
      out->gram[j + k * m] = out->gram[k + j * m] = value;
      out->to_weights[j] += 2 * weights[k] * value;
      form += twice / (j == k ? 2 : 1) * value;
      if (j == k) continue;
      const pair other = {d, p.b, p.a, p.u, p.v};
      if (!rbf) poly_pair(kernel, &other, to_mean, &to_variance);
      subtract(d, rbf ? twice : -twice, to_mean, to_means + k * d);
      out->to_variances[k] += twice * to_variance;
      out->to_weights[k] += 2 * weights[j] * value;
    }
  return form;
}

static size_t lay_out_match(match *s, size_t m, size_t d, size_t n, double *work) {
  km_scratch scratch = {work, 0};
  s->sums = take(&scratch, row_workers(n) * m * (d + TO_MEAN));
  s->means = take(&scratch, m * d);
  s->zeros = take(&scratch, m * d);
  s->rate = take(&scratch, m * d);
  s->rate2 = take(&scratch, m * d);
  s->to_means = take(&scratch, m * d);
  s->log_height = take(&scratch, m);
  s->total = take(&scratch, m);
  s->norms = take(&scratch, n);
  s->pair = take(&scratch, 3 * d);
  return scratch.used;
}

size_t km_match_work(const km_mixture *mixture, const km_estimate *estimate) {
  match s;
  return lay_out_match(&s, mixture->m, mixture->d, estimate->source->n, NULL);
}

/* What the loop over points takes. */
static void prepare(const km_estimate *e, const km_mixture *q, match *s) {
  const km_source *source = e->source;
  const size_t m = q->m, d = q->d, n = source->n;
  for (size_t j = 0; j < m; j++)
    for (size_t l = 0; l < d; l++) s->means[l + j * d] = q->means[j + l * m];
  if (source->kernel.family == KM_RBF) {
    s->shift = s->means;
    s->even = is_even(source, e->noise);
    for (size_t j = 0; j < m; j++)
      s->log_height[j] = rates(source, s->even, q->variances[j], e->noise, s->rate + j * d,
                               s->rate2 + j * d, s->total + j);
    return;
  }
  s->shift = s->zeros;
  memset(s->zeros, 0, m * d * sizeof *s->zeros);
  memset(s->norms, 0, n * sizeof *s->norms);
  for (size_t l = 0; l < d; l++)
    for (size_t i = 0; i < n; i++) s->norms[i] += source->x[i + l * n] * source->x[i + l * n];
}

/* g and what it adds to the derivatives, from the sums over points; returns pi'g. */
static double take_cross(const km_mixture *q, int rbf, const match *s, const km_matching *out) {
  const size_t d = q->d;
  double cross = 0;
  for (size_t j = 0; j < q->m; j++) {
    const double *sum = s->sums + j * (d + TO_MEAN), weight = q->weights[j];
    const double by_rate = rbf ? sum[VALUE] * s->total[j] : 0;
    out->g[j] = sum[VALUE];
    cross += weight * sum[VALUE];
    out->to_weights[j] = -2 * sum[VALUE];
    out->to_variances[j] = -2 * weight * (sum[TO_VARIANCE] - by_rate) / (rbf ? 2 : 1);
    for (size_t l = 0; l < d; l++)
      s->to_means[l + j * d] = -2 * weight * sum[TO_MEAN + l] * (rbf ? s->rate[l + j * d] : 1);
  }
  return cross;
}

double km_match(const km_estimate *estimate, const km_mixture *mixture, const km_matching *out,
                double *work) {
  const size_t m = mixture->m, d = mixture->d, n = estimate->source->n, size = d + TO_MEAN;
  match s = {.even = 0};
  lay_out_match(&s, m, d, n, work);
  prepare(estimate, mixture, &s);
  add_points(estimate, mixture, &s);
  for (size_t worker = 1; worker < row_workers(n); worker++)
    subtract(m * size, -1, s.sums + worker * m * size, s.sums);
  const int rbf = estimate->source->kernel.family == KM_RBF;
  const double cross = take_cross(mixture, rbf, &s, out);
  double form = 0;
  if (estimate->terms == KM_ALL_TERMS)
    form = add_pairs(estimate->source, mixture, s.means, out, s.to_means, s.pair);
  for (size_t j = 0; j < m; j++)
    for (size_t l = 0; l < d; l++) out->to_means[j + l * m] = s.to_means[l + j * d];
  return form - 2 * cross;
}

/*
 * u: m numbers eta with pi = exp(eta) / sum exp(eta), the m x d means, m log variances. By the
 * chain rule the derivative by eta_j is pi_j (D_j - pi'D), D that by pi; by log v_j it is v_j times
 * that by v_j.
 */
typedef struct {
  double *gram, *g, *weights, *variances; /* m x m, then m each */
  double *match;
} free_match;

static size_t lay_out_free(free_match *s, const km_mixture *shape, const km_estimate *estimate,
                           double *work) {
  km_scratch scratch = {work, 0};
  const size_t m = shape->m;
  s->gram = take(&scratch, m * m);
  s->g = take(&scratch, m);
  s->weights = take(&scratch, m);
  s->variances = take(&scratch, m);
  s->match = take(&scratch, km_match_work(shape, estimate));
  return scratch.used;
}

size_t km_match_free_work(const km_mixture *shape, const km_estimate *estimate) {
  free_match s;
  return lay_out_free(&s, shape, estimate, NULL);
}

double km_match_free(const km_estimate *estimate, const km_mixture *shape, const double *u,
                     double *gradient, double *work) {
  const size_t m = shape->m, d = shape->d;
  free_match s;
  lay_out_free(&s, shape, estimate, work);
  double largest = u[0], sum = 0, mean = 0;
  for (size_t j = 1; j < m; j++) largest = u[j] > largest ? u[j] : largest;
  for (size_t j = 0; j < m; j++) sum += s.weights[j] = exp(u[j] - largest);
  for (size_t j = 0; j < m; j++) {
    s.weights[j] /= sum;
    s.variances[j] = exp(u[m + m * d + j]);
  }
  const km_mixture mixture = {m, d, s.weights, u + m, s.variances};
  const km_matching out = {s.g, s.gram, gradient, gradient + m, gradient + m + m * d};
  const double objective = km_match(estimate, &mixture, &out, s.match);
  for (size_t j = 0; j < m; j++) mean += s.weights[j] * gradient[j];
  for (size_t j = 0; j < m; j++) {
    gradient[j] = s.weights[j] * (gradient[j] - mean);
    gradient[m + m * d + j] *= s.variances[j];
  }
  return objective;
}
