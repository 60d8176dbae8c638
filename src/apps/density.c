#include "apps/density.h"
#include "core/arithmetic.h"
#include "core/products.h"
#include "core/isa.h"
#include "core/parts.h"
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

enum { CHUNK = 128, WORKERS = 32 };

static const double LOG_TWO_PI = 1.8378770664093454836;

/* What a worker adds up for a component: value, to_variance, then d of to_mean. */
enum { VALUE, TO_VARIANCE, TO_MEAN };

/* The terms of g_j and of its derivatives at the points of a chunk. */
typedef struct {
  double value[CHUNK], to_variance[CHUNK], to_mean[CHUNK];
} terms;

/* The components as the loop over points takes them, each d numbers of one after the other. */
typedef struct {
  const double *means, *shift; /* shift: what is taken off x_i in to_mean: the means, or zeros */
  const double *rate, *rate2;  /* RBF: 1 / t_l and its square */
  const double *log_height;    /* RBF, m: log prod_l theta_l / sqrt(t_l) */
  const double *norms;         /* polynomials, n: |x_i|^2 */
  int even;                    /* RBF: t_l is the same for all l */
} layout;

static size_t worker_count(size_t n) { return smaller(WORKERS, pieces(n, CHUNK)); }

/* First chunk of a worker's share. */
static size_t first_chunk(size_t n, size_t workers, size_t worker) {
  return share_start(pieces(n, CHUNK), workers, worker);
}

/* For km_threads: a second thread is worth waking from 0.1 ms on. */
static inline double operations(size_t n, size_t m, size_t d) {
  return (double) n * (double) m * (double) (d + 8) / 4;
}

/* The sums of `vectors` vectors of rows stay in registers over the loop along the columns. */
INLINE void inner_strip(const size_t lanes, const size_t vectors, size_t n, size_t d,
                        const double *restrict x, const double *y, double start,
                        double *restrict a) {
  double s[4][8];
  UNROLL
  for (size_t v = 0; v < vectors; v++)
    SIMD
    for (size_t e = 0; e < lanes; e++) s[v][e] = start;
  for (size_t l = 0; l < d; l++)
    UNROLL
    for (size_t v = 0; v < vectors; v++)
      SIMD
      for (size_t e = 0; e < lanes; e++) s[v][e] += x[v * lanes + e + l * n] * y[l];
  UNROLL
  for (size_t v = 0; v < vectors; v++)
    SIMD
    for (size_t e = 0; e < lanes; e++) a[v * lanes + e] = s[v][e];
}

/* a_i = start + sum_l x_il y_l for some rows of a matrix of n */
INLINE void inner_body(const size_t lanes, size_t count, size_t n, size_t d, const double *x,
                       const double *y, double start, double *a) {
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes)
    inner_strip(lanes, 4, n, d, x + i, y, start, a + i);
  for (; i + lanes <= count; i += lanes) inner_strip(lanes, 1, n, d, x + i, y, start, a + i);
  for (; i < count; i++) inner_strip(1, 1, n, d, x + i, y, start, a + i);
}

/* With b the sums of (x_il - y_l)^2 a_l and of (x_il - y_l)^2 b_l, without of (x_il - y_l)^2. */
INLINE void squares_strip(const size_t lanes, const size_t vectors, const int weighted, size_t n,
                          size_t d, const double *restrict x, const double *y, const double *a,
                          const double *b, double *restrict squares, double *restrict others) {
  double s[4][8], o[4][8];
  UNROLL
  for (size_t v = 0; v < vectors; v++)
    SIMD
    for (size_t e = 0; e < lanes; e++) s[v][e] = o[v][e] = 0;
  for (size_t l = 0; l < d; l++)
    UNROLL
    for (size_t v = 0; v < vectors; v++)
      SIMD
      for (size_t e = 0; e < lanes; e++) {
        const double u = x[v * lanes + e + l * n] - y[l];
        s[v][e] += weighted ? u * u * a[l] : u * u;
        if (weighted) o[v][e] += u * u * b[l];
      }
  UNROLL
  for (size_t v = 0; v < vectors; v++)
    SIMD
    for (size_t e = 0; e < lanes; e++) {
      squares[v * lanes + e] = s[v][e];
      if (weighted) others[v * lanes + e] = o[v][e];
    }
}

INLINE void squares_rows(const size_t lanes, const int weighted, size_t count, size_t n, size_t d,
                         const double *x, const double *y, const double *a, const double *b,
                         double *squares, double *others) {
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes)
    squares_strip(lanes, 4, weighted, n, d, x + i, y, a, b, squares + i, others + i);
  for (; i + lanes <= count; i += lanes)
    squares_strip(lanes, 1, weighted, n, d, x + i, y, a, b, squares + i, others + i);
  for (; i < count; i++)
    squares_strip(1, 1, weighted, n, d, x + i, y, a, b, squares + i, others + i);
}

/* squares_i = sum_l (x_il - y_l)^2 for some rows of a matrix of n */
INLINE void distances_body(const size_t lanes, size_t count, size_t n, size_t d, const double *x,
                           const double *y, double *squares) {
  squares_rows(lanes, 0, count, n, d, x, y, y, y, squares, squares);
}

/* squares_i = sum_l (x_il - y_l)^2 a_l, and the same with b_l for `others` */
INLINE void squares_body(const size_t lanes, size_t count, size_t n, size_t d, const double *x,
                         const double *y, const double *a, const double *b, double *squares,
                         double *others) {
  squares_rows(lanes, 1, count, n, d, x, y, a, b, squares, others);
}

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
#ifdef _OPENMP
#pragma omp simd reduction(+ : value, to_variance)
#endif
  for (size_t i = 0; i < count; i++) {
    value += t->value[i];
    to_variance += t->to_variance[i];
  }
  sums[VALUE] += value;
  sums[TO_VARIANCE] += to_variance;
  for (size_t l = 0; l < d; l++) {
    double sum = 0;
#ifdef _OPENMP
#pragma omp simd reduction(+ : sum)
#endif
    for (size_t i = 0; i < count; i++) sum += t->to_mean[i] * (x[i + l * n] - shift[l]);
    sums[TO_MEAN + l] += sum;
  }
}

VERSIONS(inner,
         (size_t count, size_t n, size_t d, const double *x, const double *y, double start,
          double *a),
         (8, count, n, d, x, y, start, a), (4, count, n, d, x, y, start, a),
         (2, count, n, d, x, y, start, a))

VERSIONS(distances,
         (size_t count, size_t n, size_t d, const double *x, const double *y, double *squares),
         (8, count, n, d, x, y, squares), (4, count, n, d, x, y, squares),
         (2, count, n, d, x, y, squares))

VERSIONS(squares,
         (size_t count, size_t n, size_t d, const double *x, const double *y, const double *a,
          const double *b, double *squares, double *others),
         (8, count, n, d, x, y, a, b, squares, others),
         (4, count, n, d, x, y, a, b, squares, others),
         (2, count, n, d, x, y, a, b, squares, others))

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
  inner_loop *inner;
  distances_loop *distances;
  squares_loop *squares;
  exponents_loop *exponents;
  weigh_loop *weigh;
  add_loop *add;
  const km_arithmetic *arithmetic;
} loops;

static loops choose_loops(void) {
  return (loops){inner_version(), distances_version(), squares_version(), exponents_version(),
                 weigh_version(), add_version(), km_simd()};
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

/* The terms of component j at points i, ..., i + count - 1. */
static void point_terms(const loops *loop, const km_estimate *e, const km_mixture *q,
                        const layout *at, size_t j, size_t i, size_t count, terms *t) {
  const size_t n = e->source->n, d = q->d;
  const km_kernel *kernel = &e->source->kernel;
  const int rbf = kernel->family == KM_RBF;
  const double *x = e->source->x + i, *mean = at->means + j * d;
  const double *rate = at->rate + j * d, *rate2 = at->rate2 + j * d;
  if (rbf && at->even) {
    loop->distances(count, n, d, x, mean, t->value);
    loop->exponents(count, at->log_height[j], rate[0], t->value, t->to_variance);
  } else if (rbf) {
    loop->squares(count, n, d, x, mean, rate, rate2, t->value, t->to_variance);
    for (size_t r = 0; r < count; r++) t->value[r] = at->log_height[j] - t->value[r] / 2;
  } else {
    loop->inner(count, n, d, x, mean, kernel->offset, t->value);
    for (size_t r = 0; r < count; r++)
      poly_terms(kernel->degree, t->value[r], at->norms[i + r], q->variances[j], &t->value[r],
                 &t->to_mean[r], &t->to_variance[r]);
  }
  if (rbf) loop->arithmetic->exp_all(t->value, count, t->to_mean);
  loop->weigh(count, e->weights + i, rbf, t->value, t->to_variance, t->to_mean);
}

/* The sums over points of each component, for each worker: workers x m x (d + 2), by rows. */
static void add_points(const km_estimate *e, const km_mixture *q, const layout *at, double *sums) {
  const size_t n = e->source->n, m = q->m, d = q->d, size = d + TO_MEAN;
  const size_t workers = worker_count(n);
  const loops loop = choose_loops();
#ifdef _OPENMP
#pragma omp parallel for default(none) \
    shared(e, q, at, sums, n, m, d, size, workers, loop) schedule(static) \
    num_threads(km_threads(operations(n, m, d)))
#endif
  for (size_t worker = 0; worker < workers; worker++) {
    const size_t end = first_chunk(n, workers, worker + 1);
    double *own = sums + worker * m * size;
    memset(own, 0, m * size * sizeof *own);
    for (size_t chunk = first_chunk(n, workers, worker); chunk < end; chunk++) {
      const size_t i = chunk * CHUNK, count = smaller(CHUNK, n - i);
      terms t;
      for (size_t j = 0; j < m; j++) {
        point_terms(&loop, e, q, at, j, i, count, &t);
        loop.add(count, n, d, e->source->x + i, at->shift + j * d, &t, own + j * size);
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
#ifdef _OPENMP
#pragma omp simd reduction(+ : square, other)
#endif
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

size_t km_match_work(const km_mixture *mixture, const km_estimate *estimate) {
  const size_t m = mixture->m, d = mixture->d, n = estimate->source->n;
  return worker_count(n) * m * (d + TO_MEAN) + m * (5 * d + 2) + n + 3 * d;
}

double km_match(const km_estimate *estimate, const km_mixture *mixture, const km_matching *out,
                double *work) {
  const size_t m = mixture->m, d = mixture->d, n = estimate->source->n, size = d + TO_MEAN;
  const km_source *source = estimate->source;
  const int rbf = source->kernel.family == KM_RBF, even = rbf && is_even(source, estimate->noise);
  double *sums = work, *means = sums + worker_count(n) * m * size, *zeros = means + m * d;
  double *rate = zeros + m * d, *rate2 = rate + m * d, *to_means = rate2 + m * d;
  double *log_height = to_means + m * d, *total = log_height + m, *norms = total + m;
  double *scratch = norms + n;
  for (size_t j = 0; j < m; j++)
    for (size_t l = 0; l < d; l++) means[l + j * d] = mixture->means[j + l * m];
  if (rbf) {
    for (size_t j = 0; j < m; j++)
      log_height[j] = rates(source, even, mixture->variances[j], estimate->noise, rate + j * d,
                            rate2 + j * d, total + j);
  } else {
    memset(zeros, 0, m * d * sizeof *zeros);
    memset(norms, 0, n * sizeof *norms);
    for (size_t l = 0; l < d; l++)
      for (size_t i = 0; i < n; i++) norms[i] += source->x[i + l * n] * source->x[i + l * n];
  }
  const layout at = {means, rbf ? means : zeros, rate, rate2, log_height, norms, even};
  add_points(estimate, mixture, &at, sums);
  for (size_t worker = 1; worker < worker_count(n); worker++)
    subtract(m * size, -1, sums + worker * m * size, sums);

  double cross = 0;
  for (size_t j = 0; j < m; j++) {
    const double *s = sums + j * size, weight = mixture->weights[j];
    const double to_variance = rbf ? (s[TO_VARIANCE] - s[VALUE] * total[j]) / 2 : s[TO_VARIANCE];
    out->g[j] = s[VALUE];
    cross += weight * s[VALUE];
    out->to_weights[j] = -2 * s[VALUE];
    out->to_variances[j] = -2 * weight * to_variance;
    for (size_t l = 0; l < d; l++)
      to_means[l + j * d] = -2 * weight * s[TO_MEAN + l] * (rbf ? rate[l + j * d] : 1);
  }
  const double form = add_pairs(source, mixture, means, out, to_means, scratch);
  for (size_t j = 0; j < m; j++)
    for (size_t l = 0; l < d; l++) out->to_means[j + l * m] = to_means[l + j * d];
  return form - 2 * cross;
}

/*
 * u: m numbers eta with pi = exp(eta) / sum exp(eta), the m x d means, m log variances. By the
 * chain rule the derivative by eta_j is pi_j (D_j - pi'D), D that by pi; by log v_j it is v_j times
 * that by v_j.
 */
size_t km_match_free_work(const km_mixture *shape, const km_estimate *estimate) {
  const size_t m = shape->m;
  return km_match_work(shape, estimate) + m * m + 3 * m;
}

double km_match_free(const km_estimate *estimate, const km_mixture *shape, const double *u,
                     double *gradient, double *work) {
  const size_t m = shape->m, d = shape->d;
  double *gram = work, *g = gram + m * m, *weights = g + m, *variances = weights + m;
  double largest = u[0], sum = 0, mean = 0;
  for (size_t j = 1; j < m; j++) largest = u[j] > largest ? u[j] : largest;
  for (size_t j = 0; j < m; j++) sum += weights[j] = exp(u[j] - largest);
  for (size_t j = 0; j < m; j++) {
    weights[j] /= sum;
    variances[j] = exp(u[m + m * d + j]);
  }
  const km_mixture mixture = {m, d, weights, u + m, variances};
  const km_matching out = {g, gram, gradient, gradient + m, gradient + m + m * d};
  const double objective = km_match(estimate, &mixture, &out, variances + m);
  for (size_t j = 0; j < m; j++) mean += weights[j] * gradient[j];
  for (size_t j = 0; j < m; j++) {
    gradient[j] = weights[j] * (gradient[j] - mean);
    gradient[m + m * d + j] *= variances[j];
  }
  return objective;
}

/* Scratch: m x CHUNK for each worker, and two constants of each component. */
size_t km_log_density_work(const km_mixture *mixture, size_t n) {
  const size_t m = mixture->m, d = mixture->d;
  return worker_count(n) * m * CHUNK + m * (d + 2);
}

/* By log sum exp over the components of positive weight. */
void km_log_density(const km_mixture *mixture, const double *x, size_t n, double *log_density,
                    double *work) {
  const size_t m = mixture->m, d = mixture->d, workers = worker_count(n);
  double *terms_of = work, *means = terms_of + workers * m * CHUNK, *log_height = means + m * d;
  double *rate = log_height + m;
  size_t used = 0;
  for (size_t j = 0; j < m; j++) {
    const double v = mixture->variances[j];
    if (mixture->weights[j] == 0) continue;
    for (size_t l = 0; l < d; l++) means[l + used * d] = mixture->means[j + l * m];
    rate[used] = 1 / v;
    log_height[used++] = log(mixture->weights[j]) - (double) d / 2 * (log(v) + LOG_TWO_PI);
  }
  const loops loop = choose_loops();
#ifdef _OPENMP
#pragma omp parallel for default(none) \
    shared(x, n, d, m, log_density, terms_of, means, log_height, rate, used, workers, loop) \
    schedule(static) num_threads(km_threads(operations(n, m, d)))
#endif
  for (size_t worker = 0; worker < workers; worker++) {
    const size_t end = first_chunk(n, workers, worker + 1);
    double *each = terms_of + worker * m * CHUNK;
    for (size_t chunk = first_chunk(n, workers, worker); chunk < end; chunk++) {
      const size_t i = chunk * CHUNK, count = smaller(CHUNK, n - i);
      double top[CHUNK], sum[CHUNK], value[CHUNK];
      for (size_t r = 0; r < count; r++) {
        top[r] = -INFINITY;
        sum[r] = 0;
      }
      for (size_t j = 0; j < used; j++) {
        double *own = each + j * CHUNK;
        loop.distances(count, n, d, x + i, means + j * d, own);
        for (size_t r = 0; r < count; r++) {
          own[r] = log_height[j] - own[r] / 2 * rate[j];
          if (own[r] > top[r]) top[r] = own[r];
        }
      }
      for (size_t j = 0; j < used; j++) {
        double *own = each + j * CHUNK;
        for (size_t r = 0; r < count; r++) own[r] -= top[r];
        loop.arithmetic->exp_all(own, count, value);
        for (size_t r = 0; r < count; r++) sum[r] += value[r];
      }
      /* A point beyond all reach (top = -Inf) has terms that are no numbers, and density 0. */
      for (size_t r = 0; r < count; r++)
        log_density[i + r] = top[r] > -INFINITY ? top[r] + log(sum[r]) : -INFINITY;
    }
  }
}
