#include "core/mixture.h"
#include "core/arithmetic.h"
#include "core/isa.h"
#include "core/rows.h"
#include "core/scratch.h"
#include "core/threads.h"

#include <math.h>

/* Densities by log sum exp over the components: 2 nmd flops and nm exponentials. Doubles: 128 m for
   each of 32 workers at most. */

enum { CHUNK = KM_ROW_CHUNK };

static const double LOG_TWO_PI = 1.8378770664093454836;

typedef struct {
  double *terms;                     /* m x CHUNK for each worker */
  double *means, *log_height, *rate; /* of the components used: d numbers, one, one */
} log_terms;

static size_t lay_out(log_terms *s, const km_mixture *mixture, size_t n, double *work) {
  km_scratch scratch = {work, 0};
  s->terms = take(&scratch, row_workers(n) * mixture->m * CHUNK);
  s->means = take(&scratch, mixture->m * mixture->d);
  s->log_height = take(&scratch, mixture->m);
  s->rate = take(&scratch, mixture->m);
  return scratch.used;
}

size_t km_log_density_work(const km_mixture *mixture, size_t n) {
  log_terms s;
  return lay_out(&s, mixture, n, NULL);
}

/* The components of positive weight; their number. */
static size_t take_used(const km_mixture *mixture, const log_terms *s) {
  const size_t m = mixture->m, d = mixture->d;
  size_t used = 0;
  for (size_t j = 0; j < m; j++) {
    const double v = mixture->variances[j];
    if (mixture->weights[j] == 0) continue;
    for (size_t l = 0; l < d; l++) s->means[l + used * d] = mixture->means[j + l * m];
    s->rate[used] = 1 / v;
    s->log_height[used++] = log(mixture->weights[j]) - (double) d / 2 * (log(v) + LOG_TWO_PI);
  }
  return used;
}

/* The density at `count` rows of a matrix of n; each: m x CHUNK. */
static void chunk_density(const log_terms *s, size_t used, const double *x, size_t n, size_t d,
                          size_t count, double *each, double *log_density) {
  const km_row_loops rows = km_rows();
  double top[CHUNK], sum[CHUNK], value[CHUNK];
  SIMD
  for (size_t r = 0; r < count; r++) {
    top[r] = -INFINITY;
    sum[r] = 0;
  }
  for (size_t j = 0; j < used; j++) {
    double *own = each + j * CHUNK;
    rows.distances(count, n, d, x, s->means + j * d, own);
    const double height = s->log_height[j], rate = s->rate[j];
    SIMD
    for (size_t r = 0; r < count; r++) {
      own[r] = height - own[r] / 2 * rate;
      top[r] = own[r] > top[r] ? own[r] : top[r];
    }
  }
  for (size_t j = 0; j < used; j++) {
    double *own = each + j * CHUNK;
    SIMD
    for (size_t r = 0; r < count; r++) own[r] -= top[r];
    km_simd()->exp_all(own, count, value);
    SIMD
    for (size_t r = 0; r < count; r++) sum[r] += value[r];
  }
  /* A point beyond all reach (top = -Inf) has terms that are no numbers, and density 0. */
  for (size_t r = 0; r < count; r++)
    log_density[r] = top[r] > -INFINITY ? top[r] + log(sum[r]) : -INFINITY;
}

void km_log_density(const km_mixture *mixture, const double *x, size_t n, double *log_density,
                    double *work) {
  const size_t m = mixture->m, d = mixture->d, workers = row_workers(n);
  log_terms s;
  lay_out(&s, mixture, n, work);
  const size_t used = take_used(mixture, &s);
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(x, n, log_density, s) \
    firstprivate(d, m, used, workers) schedule(dynamic) \
    num_threads(km_threads(row_operations(n, m, d)))
#endif
  for (size_t worker = 0; worker < workers; worker++) {
    const size_t end = first_chunk(n, workers, worker + 1);
    for (size_t chunk = first_chunk(n, workers, worker); chunk < end; chunk++) {
      const size_t i = chunk * CHUNK;
      chunk_density(&s, used, x + i, n, d, smaller(CHUNK, n - i), s.terms + worker * m * CHUNK,
                    log_density + i);
    }
  }
}
