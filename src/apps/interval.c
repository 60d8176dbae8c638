#include "apps/interval.h"
#include "core/isa.h"
#include "core/parts.h"

#include <math.h>

/*
 * Waudby-Smith and Ramdas (2024): who bets the share f of what he has on each value makes of 1
 * prod_i (1 - f + f x_i/m). Its mean is 1 if m is that of the values: it is 2/rest or more with
 * probability rest/2 at most. Five bet, from shares w_j of the 1, with a = 2^j sqrt(2 log(2/(w_j
 * rest))/n) the shares f_j = min(1, a sqrt(m/(1 - m))): the first is best for values near 0 and 1,
 * the others where they vary less. As f_j rises with m and (1 - m) f_j/m falls, what they make
 * falls: the end is found by bisection, from below. 24 steps of 5 n products.
 */

enum {
  BETS = 5,
  STEPS = 24,
  LANES = 32
};

static const double shares[BETS] = {0.5, 0.25, 0.125, 0.0625, 0.0625};
static const double least = 1e-12;   /* a mean below has the end 0 */
static const double most_log = 600;  /* of a product of many factors */
static const double poll_work = 1e9; /* operations between two polls */

/* A column: its values before and after the one that is left out. */
typedef struct {
  const double *values[2];
  size_t counts[2];
} column;

/* products_j = prod_i (stay_j + per_j x_i) */
INLINE void multiply_body(size_t n, const double *x, const double *stay, const double *per,
                          double *products) {
  for (size_t j = 0; j < BETS; j++) {
    double lanes[LANES];
    for (size_t l = 0; l < LANES; l++) lanes[l] = 1;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
      SIMD
      for (size_t l = 0; l < LANES; l++) lanes[l] *= stay[j] + per[j] * x[i + l];
    }
    for (; i < n; i++) lanes[0] *= stay[j] + per[j] * x[i];
    products[j] = lanes[0];
    for (size_t l = 1; l < LANES; l++) products[j] *= lanes[l];
  }
}

VERSIONS(multiply,
         (size_t n, const double *x, const double *stay, const double *per, double *products),
         (n, x, stay, per, products), (n, x, stay, per, products), (n, x, stay, per, products))

/* The logarithm of what all have made, by bets of stake_j sqrt(m/(1 - m)). */
static double log_capital(const column *c, const double *stakes, double m) {
  const double odds = sqrt(m / (1 - m));
  double stay[BETS], per[BETS], logs[BETS], products[BETS], size = 0, most = -INFINITY, sum = 0;
  for (size_t j = 0; j < BETS; j++) {
    const double f = fmin(1, stakes[j] * odds);
    stay[j] = 1 - f;
    per[j] = f / m;
    logs[j] = log(shares[j]);
    size = fmax(size, fmax(log(stay[j] + per[j]), f < 1 ? -log(stay[j]) : 0));
  }
  multiply_loop *multiply = multiply_version();
  const double run = fmin(most_log / size, (double) (c->counts[0] + c->counts[1]));
  for (size_t k = 0; k < 2; k++)
    for (size_t i = 0; i < c->counts[k]; i += (size_t) run) {
      multiply(smaller((size_t) run, c->counts[k] - i), c->values[k] + i, stay, per, products);
      for (size_t j = 0; j < BETS; j++) logs[j] += log(products[j]);
    }
  for (size_t j = 0; j < BETS; j++) most = fmax(most, logs[j]);
  if (most == -INFINITY) return most;
  for (size_t j = 0; j < BETS; j++) sum += exp(logs[j] - most);
  return most + log(sum);
}

static double lower_end(size_t n, const double *values, size_t left_out, const double *stakes,
                        double limit) {
  const size_t before = left_out ? left_out - 1 : n;
  const size_t after = n - smaller(n, before + 1);
  const column c = {.values = {values, values + n - after}, .counts = {before, after}};
  double sum = 0;
  for (size_t k = 0; k < 2; k++)
    for (size_t i = 0; i < c.counts[k]; i++) sum += c.values[k][i];
  double low = 0, high = sum / (double) (before + after);
  if (!(high > least)) return 0;
  for (size_t step = 0; step < STEPS; step++) {
    const double m = (low + high) / 2;
    if (log_capital(&c, stakes, m) < limit) high = m;
    else low = m;
  }
  return low;
}

void km_lower_ends(size_t n, size_t m, const double *values, const int *left_out, double rest,
                   double *ends, km_poll poll) {
  const double each = BETS * STEPS * (double) (n + 1);
  const size_t panel = larger(1, (size_t) (poll_work / each));
  double stakes[BETS];
  for (size_t j = 0; j < BETS; j++)
    stakes[j] = ldexp(sqrt(2 * log(2 / (shares[j] * rest)) / (double) n), (int) j);
  for (size_t first = 0; first < m; first += panel) {
    const size_t last = smaller(m, first + panel);
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(values, left_out, ends, stakes) \
    firstprivate(n, first, last, rest) schedule(static) \
    num_threads(km_threads(each * (double) (last - first)))
#endif
    for (size_t j = first; j < last; j++)
      ends[j] = lower_end(n, values + n * j, (size_t) left_out[j], stakes, log(2 / rest));
    poll();
  }
}
