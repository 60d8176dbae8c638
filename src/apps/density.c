#include "apps/density.h"
#include "core/arithmetic.h"
#include "core/simd.h"
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
 * The gradient takes one more pass over the points: 8 nmd flops in all and nm exponentials, and
 * 3 m^2 d for G. Doubles: m (d + 2) for each of 32 workers at most.
 */

enum { CHUNK = 64, WORKERS = 32 };

static const double LOG_TWO_PI = 1.8378770664093454836;

/* What a worker adds up for a component: value, to_variance, then d of to_mean. */
enum { VALUE, TO_VARIANCE, TO_MEAN };

/* Chunks of one component and 64 points: the terms of g_j and of its derivatives at each point. */
typedef struct {
  double value[CHUNK], to_variance[CHUNK], to_mean[CHUNK];
} terms;

/* The components as the loop over points takes them, each d numbers of one after the other. */
typedef struct {
  const double *means, *shift; /* shift: what is taken off x_i in to_mean: the means, or zeros */
  const double *rate, *rate2;  /* RBF: 1 / t_l and its square */
  const double *log_height;    /* RBF, m: log prod_l theta_l / sqrt(t_l) */
  const double *norms;         /* polynomials, n: |x_i|^2 */
} layout;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static size_t worker_count(size_t n) { return least((n + CHUNK - 1) / CHUNK, WORKERS); }

/* First chunk of a worker's share. */
static size_t share_start(size_t n, size_t workers, size_t worker) {
  return (n + CHUNK - 1) / CHUNK * worker / workers;
}

/* For km_threads: a second thread is worth waking from 0.1 ms on. */
static double operations(size_t n, size_t m, size_t d) {
  return (double) n * (double) m * (double) (d + 8) / 4;
}

/* a_i = start + sum_l x_il y_l for some rows of a matrix of n */
INLINE void inner_body(size_t count, size_t n, size_t d, const double *restrict x, const double *y,
                       double start, double *restrict a) {
  for (size_t i = 0; i < count; i++) a[i] = start;
  for (size_t l = 0; l < d; l++)
    SIMD
    for (size_t i = 0; i < count; i++) a[i] += x[i + l * n] * y[l];
}

/* squares_i = sum_l (x_il - y_l)^2 a_l, and the same with b_l for `others` */
INLINE void squares_body(size_t count, size_t n, size_t d, const double *restrict x,
                         const double *y, const double *a, const double *b,
                         double *restrict squares, double *restrict others) {
  for (size_t i = 0; i < count; i++) squares[i] = others[i] = 0;
  for (size_t l = 0; l < d; l++)
    SIMD
    for (size_t i = 0; i < count; i++) {
      const double u = x[i + l * n] - y[l], u2 = u * u;
      squares[i] += u2 * a[l];
      others[i] += u2 * b[l];
    }
}

/* sums += the terms of `count` points; the means' ones times x_il - shift_l. */
INLINE void add_body(size_t count, size_t n, size_t d, const double *restrict x,
                     const double *shift, const terms *t, double *sums) {
  double value = 0, to_variance = 0;
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
         (count, n, d, x, y, start, a), (count, n, d, x, y, start, a),
         (count, n, d, x, y, start, a))

VERSIONS(squares,
         (size_t count, size_t n, size_t d, const double *x, const double *y, const double *a,
          const double *b, double *squares, double *others),
         (count, n, d, x, y, a, b, squares, others), (count, n, d, x, y, a, b, squares, others),
         (count, n, d, x, y, a, b, squares, others))

VERSIONS(add,
         (size_t count, size_t n, size_t d, const double *x, const double *shift, const terms *t,
          double *sums),
         (count, n, d, x, shift, t, sums), (count, n, d, x, shift, t, sums),
         (count, n, d, x, shift, t, sums))

/* The loops for the instructions in use. */
typedef struct {
  inner_loop *inner;
  squares_loop *squares;
  add_loop *add;
  const km_arithmetic *arithmetic;
} loops;

static loops choose_loops(void) {
  return (loops){inner_version(), squares_version(), add_version(), km_simd()};
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
static void point_terms(const km_kernel *kernel, const loops *loop, const km_estimate *e,
                        const km_mixture *q, const layout *at, size_t j, size_t i, size_t count,
                        terms *t) {
  const size_t d = q->d;
  const double *x = e->x + i, *w = e->weights + i, *mean = at->means + j * d;
  if (kernel->family == KM_RBF) {
    loop->squares(count, e->n, d, x, mean, at->rate + j * d, at->rate2 + j * d, t->value,
                  t->to_variance);
    for (size_t r = 0; r < count; r++) t->value[r] = at->log_height[j] - t->value[r] / 2;
    loop->arithmetic->exp_all(t->value, count, t->to_mean);
    for (size_t r = 0; r < count; r++) {
      t->to_mean[r] *= w[r];
      t->value[r] = t->to_mean[r];
      t->to_variance[r] *= t->to_mean[r];
    }
  } else {
    loop->inner(count, e->n, d, x, mean, kernel->offset, t->value);
    for (size_t r = 0; r < count; r++) {
      poly_terms(kernel->degree, t->value[r], at->norms[i + r], q->variances[j], &t->value[r],
                 &t->to_mean[r], &t->to_variance[r]);
      t->value[r] *= w[r];
      t->to_mean[r] *= w[r];
      t->to_variance[r] *= w[r];
    }
  }
}

/* The sums over points of each component, for each worker: workers x m x (d + 2), by rows. */
static void add_points(const km_kernel *kernel, const km_estimate *e, const km_mixture *q,
                       const layout *at, double *sums) {
  const size_t n = e->n, m = q->m, d = q->d, size = d + TO_MEAN, workers = worker_count(n);
  const loops loop = choose_loops();
#ifdef _OPENMP
#pragma omp parallel for default(none) \
    shared(kernel, e, q, at, sums, n, m, d, size, workers, loop) schedule(static) \
    num_threads(km_threads(operations(n, m, d)))
#endif
  for (size_t worker = 0; worker < workers; worker++) {
    const size_t end = share_start(n, workers, worker + 1);
    double *own = sums + worker * m * size;
    memset(own, 0, m * size * sizeof *own);
    for (size_t chunk = share_start(n, workers, worker); chunk < end; chunk++) {
      const size_t i = chunk * CHUNK, count = least(CHUNK, n - i);
      terms t;
      for (size_t j = 0; j < m; j++) {
        point_terms(kernel, &loop, e, q, at, j, i, count, &t);
        loop.add(count, n, d, e->x + i, at->shift + j * d, &t, own + j * size);
      }
    }
  }
}

/* 1 / t_l and its square for t_l = theta_l^2 + v + e_l (e NULL: 0), their sum in *total; returns
   log prod_l theta_l / sqrt(t_l). theta_l = 1 / scale_l. */
static double rates(const km_kernel *kernel, size_t d, double v, const double *e, double *rate,
                    double *rate2, double *total) {
  const double *scale = kernel->scale;
  double log_height = 0, ratio = 0;
  *total = 0;
  for (size_t l = 0; l < d; l++) {
    if (l > 0 && scale[l] == scale[l - 1] && (!e || e[l] == e[l - 1])) {
      rate[l] = rate[l - 1];
      rate2[l] = rate2[l - 1];
    } else {
      const double theta2 = 1 / (scale[l] * scale[l]), extra = v + (e ? e[l] : 0);
      rate[l] = 1 / (theta2 + extra);
      rate2[l] = rate[l] * rate[l];
      ratio = log1p(extra / theta2);
    }
    log_height -= ratio / 2;
    *total += rate[l];
  }
  return log_height;
}

/* Inner product of components j and k (the rows of means, m x d), and its derivatives by those of
   j. rate, rate2, to_mean: d. */
static double rbf_pair(const km_kernel *kernel, const km_mixture *q, size_t j, size_t k,
                       double *rate, double *rate2, double *to_mean, double *to_variance) {
  const size_t m = q->m, d = q->d;
  double total, square = 0, other = 0;
  const double v = q->variances[j] + q->variances[k];
  const double log_height = rates(kernel, d, v, NULL, rate, rate2, &total);
  for (size_t l = 0; l < d; l++) {
    const double u = q->means[j + l * m] - q->means[k + l * m];
    square += u * u * rate[l];
    other += u * u * rate2[l];
    to_mean[l] = -u * rate[l];
  }
  const double value = exp(log_height - square / 2);
  for (size_t l = 0; l < d; l++) to_mean[l] *= value;
  *to_variance = value * (other - total) / 2;
  return value;
}

/* The same: M = mean_j'mean_k + b, S = v_k |mean_j|^2 + v_j |mean_k|^2 + d v_j v_k; degree 2 is
   M^2 + S, degree 3 is M^3 + 3 M S + 6 v_j v_k mean_j'mean_k. */
static double poly_pair(const km_kernel *kernel, const km_mixture *q, size_t j, size_t k,
                        double *to_mean, double *to_variance) {
  const size_t m = q->m, d = q->d;
  const double *a = q->means + j, *b = q->means + k;
  const double v = q->variances[j], u = q->variances[k];
  double inner = 0, own = 0, theirs = 0;
  for (size_t l = 0; l < d; l++) {
    inner += a[l * m] * b[l * m];
    own += a[l * m] * a[l * m];
    theirs += b[l * m] * b[l * m];
  }
  const double mean = inner + kernel->offset, by_v = theirs + (double) d * u;
  const double spread = u * own + v * by_v;
  double value, to_a, to_b; /* derivative by mean_j: to_a mean_j + to_b mean_k */
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
  for (size_t l = 0; l < d; l++) to_mean[l] = to_a * a[l * m] + to_b * b[l * m];
  return value;
}

/* Adds pi'G pi to J and to its derivatives; to_weights gets 2 G pi. scratch: 3 d. */
static double add_pairs(const km_kernel *kernel, const km_mixture *q, const km_matching *out,
                        double *scratch) {
  const size_t m = q->m, d = q->d;
  double *to_mean = scratch, *rate = scratch + d, *rate2 = scratch + 2 * d;
  double form = 0;
  for (size_t j = 0; j < m; j++) {
    double row = 0;
    for (size_t k = 0; k < m; k++) {
      double to_variance;
      const double value =
        kernel->family == KM_RBF ? rbf_pair(kernel, q, j, k, rate, rate2, to_mean, &to_variance)
                                 : poly_pair(kernel, q, j, k, to_mean, &to_variance);
      const double twice = 2 * q->weights[j] * q->weights[k];
      out->gram[j + k * m] = value;
      row += value * q->weights[k];
      out->to_variances[j] += twice * to_variance;
      for (size_t l = 0; l < d; l++) out->to_means[j + l * m] += twice * to_mean[l];
    }
    out->to_weights[j] += 2 * row;
    form += q->weights[j] * row;
  }
  return form;
}

size_t km_match_work(const km_mixture *mixture, const km_estimate *estimate) {
  const size_t m = mixture->m, d = mixture->d, n = estimate->n;
  return worker_count(n) * m * (d + TO_MEAN) + m * (4 * d + 2) + n + 3 * d;
}

double km_match(const km_kernel *kernel, const km_estimate *estimate, const km_mixture *mixture,
                const km_matching *out, double *work) {
  const size_t m = mixture->m, d = mixture->d, n = estimate->n, size = d + TO_MEAN;
  const int rbf = kernel->family == KM_RBF;
  double *sums = work, *means = sums + worker_count(n) * m * size, *zeros = means + m * d;
  double *rate = zeros + m * d, *rate2 = rate + m * d, *log_height = rate2 + m * d;
  double *total = log_height + m, *norms = total + m, *scratch = norms + n;
  for (size_t j = 0; j < m; j++)
    for (size_t l = 0; l < d; l++) means[l + j * d] = mixture->means[j + l * m];
  if (rbf) {
    for (size_t j = 0; j < m; j++)
      log_height[j] = rates(kernel, d, mixture->variances[j], estimate->noise, rate + j * d,
                            rate2 + j * d, total + j);
  } else {
    memset(zeros, 0, m * d * sizeof *zeros);
    memset(norms, 0, n * sizeof *norms);
    for (size_t l = 0; l < d; l++)
      for (size_t i = 0; i < n; i++) norms[i] += estimate->x[i + l * n] * estimate->x[i + l * n];
  }
  const layout at = {means, rbf ? means : zeros, rate, rate2, log_height, norms};
  add_points(kernel, estimate, mixture, &at, sums);
  for (size_t worker = 1; worker < worker_count(n); worker++)
    for (size_t i = 0; i < m * size; i++) sums[i] += sums[worker * m * size + i];

  double cross = 0;
  for (size_t j = 0; j < m; j++) {
    const double *s = sums + j * size, weight = mixture->weights[j];
    const double to_variance = rbf ? (s[TO_VARIANCE] - s[VALUE] * total[j]) / 2 : s[TO_VARIANCE];
    out->g[j] = s[VALUE];
    cross += weight * s[VALUE];
    out->to_weights[j] = -2 * s[VALUE];
    out->to_variances[j] = -2 * weight * to_variance;
    for (size_t l = 0; l < d; l++)
      out->to_means[j + l * m] = -2 * weight * s[TO_MEAN + l] * (rbf ? rate[l + j * d] : 1);
  }
  return add_pairs(kernel, mixture, out, scratch) - 2 * cross;
}

/* Scratch: m x CHUNK for each worker, and two constants of each component. */
size_t km_log_density_work(const km_mixture *mixture, size_t n) {
  const size_t m = mixture->m, d = mixture->d;
  return worker_count(n) * m * CHUNK + m * (d + 2) + d;
}

/* By log sum exp over the components of positive weight. */
void km_log_density(const km_mixture *mixture, const double *x, size_t n, double *log_density,
                    double *work) {
  const size_t m = mixture->m, d = mixture->d, workers = worker_count(n);
  double *terms_of = work, *means = terms_of + workers * m * CHUNK, *log_height = means + m * d;
  double *rate = log_height + m, *ones = rate + m;
  size_t used = 0;
  for (size_t l = 0; l < d; l++) ones[l] = 1;
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
    shared(x, n, d, m, log_density, terms_of, means, log_height, rate, ones, used, workers, loop) \
    schedule(static) num_threads(km_threads(operations(n, m, d)))
#endif
  for (size_t worker = 0; worker < workers; worker++) {
    const size_t end = share_start(n, workers, worker + 1);
    double *each = terms_of + worker * m * CHUNK;
    for (size_t chunk = share_start(n, workers, worker); chunk < end; chunk++) {
      const size_t i = chunk * CHUNK, count = least(CHUNK, n - i);
      double top[CHUNK], sum[CHUNK], unused[CHUNK];
      for (size_t r = 0; r < count; r++) {
        top[r] = -INFINITY;
        sum[r] = 0;
      }
      for (size_t j = 0; j < used; j++) {
        double *own = each + j * CHUNK;
        loop.squares(count, n, d, x + i, means + j * d, ones, ones, own, unused);
        for (size_t r = 0; r < count; r++) {
          own[r] = log_height[j] - own[r] / 2 * rate[j];
          if (own[r] > top[r]) top[r] = own[r];
        }
      }
      for (size_t j = 0; j < used; j++) {
        double *own = each + j * CHUNK;
        for (size_t r = 0; r < count; r++) own[r] -= top[r];
        loop.arithmetic->exp_all(own, count, unused);
        for (size_t r = 0; r < count; r++) sum[r] += unused[r];
      }
      /* A point beyond all reach (top = -Inf) has terms that are no numbers, and density 0. */
      for (size_t r = 0; r < count; r++)
        log_density[i + r] = top[r] > -INFINITY ? top[r] + log(sum[r]) : -INFINITY;
    }
  }
}
