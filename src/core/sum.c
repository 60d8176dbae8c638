#include "core/sum.h"
#include "core/parts.h"

#include <string.h>

/*
 * k(x, y) = sum_t c_t prod_p k_p(x, y), where each part k_p is of some neighboring features of its
 * own: a feature that several parts see is packed for each of them. The parts of a tile are
 * evaluated one after the other while it is in cache, a flop or two a value beside their own.
 */

enum { PACK = KM_PACK, TILE = KM_TILE_ROWS * KM_TILE_COLS };

static const double largest_half_norm = 32;

/* The sum itself, a product and a factor of it. */
size_t km_tile_room(const km_kernel *kernel) { return kernel->family == KM_SUM ? 3 * TILE : TILE; }

size_t km_norms(const km_kernel *kernel) { return kernel->family == KM_SUM ? kernel->count : 1; }

double km_value_cost(const km_kernel *kernel, size_t d) {
  return (double) d + KM_EXP_COST * (double) km_norms(kernel);
}

int km_takes_norms(const km_kernel *kernel) {
  return kernel->family == KM_RBF || kernel->family == KM_SUM;
}

void km_half_norms(const km_kernel *kernel, const double *points, size_t count, size_t d,
                   size_t apart, double *half_norms) {
  const km_arithmetic *simd = km_simd();
  if (kernel->family == KM_RBF) simd->half_norms(points, count, d, half_norms);
  if (kernel->family != KM_SUM) return;
  for (size_t p = 0; p < kernel->count; p++) {
    const km_part *part = kernel->parts + p;
    double *norms = half_norms + p * apart;
    if (part->kernel.family == KM_RBF)
      for (size_t i = 0; i < count; i += PACK)
        simd->half_norms(points + i * d + part->first * PACK, PACK, part->d, norms + i);
    else
      memset(norms, 0, count * sizeof *norms);
  }
}

int km_near_center(const km_kernel *kernel, const km_point_set *set) {
  if (!set->half_norms) return 0;
  for (size_t p = 0; p < km_norms(kernel); p++)
    for (size_t i = 0; i < set->count; i++)
      if (!(set->half_norms[p * set->apart + i] <= largest_half_norm)) return 0;
  return 1;
}

static km_point_set set_of_part(const km_kernel *kernel, size_t p, km_point_set set) {
  set.points += kernel->parts[p].first * PACK;
  if (set.half_norms) set.half_norms += p * set.apart;
  return set;
}

static void evaluate_part(const km_kernel *kernel, size_t p, const km_tile_job *job, double *k) {
  const km_part *part = kernel->parts + p;
  const km_tile_job own = {set_of_part(kernel, p, job->x), set_of_part(kernel, p, job->y),
                           part->d, job->wide, k};
  km_simd()->tile(&part->kernel, &own);
}

void km_tile_values(const km_kernel *kernel, const km_tile_job *job) {
  const km_arithmetic *simd = km_simd();
  if (kernel->family != KM_SUM) {
    simd->tile(kernel, job);
    return;
  }
  const size_t size = job->x.count * KM_TILE_COLS;
  double *factor = job->k + 2 * TILE;
  for (size_t p = 0; p < kernel->count;) {
    const double times = kernel->parts[p].times;
    /* The first product may be where the sum is to be. */
    const int in_place = p == 0 && times == 1;
    double *product = in_place ? job->k : job->k + TILE;
    if (p == 0 && !in_place) memset(job->k, 0, size * sizeof *job->k);
    evaluate_part(kernel, p++, job, product);
    for (; p < kernel->count && !(kernel->parts[p].times > 0); p++) {
      evaluate_part(kernel, p, job, factor);
      simd->multiply_all(factor, size, product);
    }
    if (!in_place) simd->add_all(times, product, size, job->k);
  }
}

/* count <= PACK */
static void family_diagonal(const km_source *source, size_t first, size_t count, double *values) {
  if (source->kernel.family == KM_POLY) {
    km_simd()->diagonal(source, first, count, values);
  } else {
    const double value = km_facts(source->kernel.family)->at_zero;
    for (size_t i = 0; i < count; i++) values[i] = value;
  }
}

static void part_diagonal(const km_source *source, size_t p, size_t first, size_t count,
                          double *values) {
  const km_part *part = source->kernel.parts + p;
  const km_source own = {.kernel = part->kernel,
                         .center = source->center + part->first,
                         .scale = source->scale + part->first,
                         .x = source->x + part->first * source->n,
                         .n = source->n,
                         .d = part->d};
  family_diagonal(&own, first, count, values);
}

/* In the order of km_tile_values(). */
static void sum_diagonal(const km_source *source, size_t first, size_t count, double *values) {
  const km_arithmetic *simd = km_simd();
  const km_kernel *kernel = &source->kernel;
  double sum[PACK] = {0}, product[PACK] = {0}, factor[PACK] = {0};
  for (size_t p = 0; p < kernel->count;) {
    const double times = kernel->parts[p].times;
    part_diagonal(source, p++, first, count, product);
    for (; p < kernel->count && !(kernel->parts[p].times > 0); p++) {
      part_diagonal(source, p, first, count, factor);
      simd->multiply_all(factor, PACK, product);
    }
    simd->add_all(times, product, PACK, sum);
  }
  memcpy(values, sum, count * sizeof *values);
}

void km_diagonal(const km_source *source, double *diagonal) {
  const size_t n = source->n;
  for (size_t i = 0; i < n; i += PACK) {
    const size_t count = smaller(PACK, n - i);
    if (source->k)
      for (size_t j = i; j < i + count; j++) diagonal[j] = source->k[j + j * n];
    else if (source->kernel.family == KM_SUM)
      sum_diagonal(source, i, count, diagonal + i);
    else
      family_diagonal(source, i, count, diagonal + i);
  }
}
