#include "core/median.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/*
 * The median of the n (n - 1) / 2 distances of n points, which are never stored. A sample of pairs
 * gives a bracket [low, high] that very likely holds the middle. A fold counts the distances below
 * it and a histogram of those within, by the bits of the numbers (which order as non-negative
 * numbers do); the bracket shrinks to the bucket of the middle. When at most GATHERED distances are
 * left, another fold gathers them. A bracket that missed starts again from all numbers, so the
 * result is exact whatever the sample was. Cost: two to three folds; 32 BUCKETS + GATHERED doubles.
 */

enum { BUCKETS = 4096, GATHERED = 65536, SAMPLED = 16384 };

typedef struct {
  double low, high;
  unsigned shift;        /* bucket of v: (bits(v) - bits(low)) >> shift */
  uint64_t *counts;      /* KM_WORKERS x (BUCKETS + 1); the last one counts what is below */
  double *gathered;      /* GATHERED */
  size_t *filled;        /* KM_WORKERS: where a worker writes next */
  double *least;         /* KM_WORKERS: smallest distance > 0 */
} selection;

static uint64_t bits(double v) {
  uint64_t b;
  memcpy(&b, &v, sizeof b);
  return b;
}

static double number(uint64_t b) {
  double v;
  memcpy(&v, &b, sizeof v);
  return v;
}

static void set_bracket(selection *s, double low, double high) {
  const uint64_t width = bits(high) - bits(low);
  s->low = low;
  s->high = high;
  s->shift = 0;
  while (width >> s->shift >= BUCKETS) s->shift++;
}

/* The columns of row i that are pairs: all, or those right of the diagonal. */
static size_t first_pair(const km_tile *tile, size_t i) { return tile->mirrored ? 0 : i + 1; }

static void count_tile(const km_tile *tile, void *to, size_t worker) {
  const selection *s = to;
  uint64_t *counts = s->counts + worker * (BUCKETS + 1);
  const uint64_t base = bits(s->low);
  const double low = s->low, high = s->high;
  uint64_t below = 0;
  for (size_t i = 0; i < tile->ni; i++) {
    const double *row = tile->k + i * KM_TILE_COLS;
    for (size_t j = first_pair(tile, i); j < tile->nj; j++) {
      below += row[j] < low;
      if (row[j] >= low && row[j] <= high) counts[(bits(row[j]) - base) >> s->shift]++;
    }
  }
  counts[BUCKETS] += below;
}

/* A worker's stretch of `gathered` is as long as what it counted there. */
static void gather_tile(const km_tile *tile, void *to, size_t worker) {
  const selection *s = to;
  size_t next = s->filled[worker];
  for (size_t i = 0; i < tile->ni; i++) {
    const double *row = tile->k + i * KM_TILE_COLS;
    for (size_t j = first_pair(tile, i); j < tile->nj; j++)
      if (row[j] >= s->low && row[j] <= s->high) s->gathered[next++] = row[j];
  }
  s->filled[worker] = next;
}

static void least_tile(const km_tile *tile, void *to, size_t worker) {
  const selection *s = to;
  double least = s->least[worker];
  for (size_t i = 0; i < tile->ni; i++) {
    const double *row = tile->k + i * KM_TILE_COLS;
    for (size_t j = first_pair(tile, i); j < tile->nj; j++)
      if (row[j] > 0 && row[j] < least) least = row[j];
  }
  s->least[worker] = least;
}

static void swap(double *a, double *b) {
  const double kept = *a;
  *a = *b;
  *b = kept;
}

/* The value of this rank (from 0); smaller ones end before it, larger ones behind. */
static double select_rank(double *x, size_t count, size_t rank) {
  size_t left = 0, right = count - 1;
  while (left < right) {
    const size_t middle = left + (right - left) / 2;
    if (x[middle] < x[left]) swap(x + middle, x + left);
    if (x[right] < x[left]) swap(x + right, x + left);
    if (x[right] < x[middle]) swap(x + right, x + middle);
    const double pivot = x[middle];
    size_t i = left, j = right;
    while (i <= j) {
      while (x[i] < pivot) i++;
      while (x[j] > pivot) j--;
      if (i <= j) {
        swap(x + i, x + j);
        i++;
        if (j == 0) break;
        j--;
      }
    }
    if (rank <= j && j < right) {
      right = j;
    } else if (rank >= i) {
      left = i;
    } else {
      return x[rank];
    }
  }
  return x[rank];
}

static double mean_of_two(double a, double b) { return a == b ? a : a + (b - a) / 2; }

km_median km_median_of(double *values, size_t count) {
  km_median found = {0, 0};
  for (size_t i = 0; i < count; i++)
    if (values[i] > 0 && (found.min_positive == 0 || values[i] < found.min_positive))
      found.min_positive = values[i];
  found.median = select_rank(values, count, (count - 1) / 2);
  if (count % 2 == 0)
    found.median = mean_of_two(found.median, select_rank(values, count, count / 2));
  return found;
}

static double pair_distance(const km_kernel *kernel, const km_pair *points, size_t i, size_t j) {
  const size_t n = points->n;
  double sum = 0;
  for (size_t l = 0; l < points->d; l++) {
    const double u = (points->x[i + l * n] - points->x[j + l * n]) * kernel->scale[l];
    sum += kernel->family == KM_L1DIST ? (u < 0 ? -u : u) : u * u;
  }
  return sum;
}

void km_pair_distances(const km_kernel *kernel, const km_pair *points, const int *first,
                       const int *second, size_t count, double *out) {
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(kernel, points, first, second, count, out) \
    schedule(static) num_threads(km_threads((double) count * (double) points->d))
#endif
  for (size_t c = 0; c < count; c++)
    out[c] = pair_distance(kernel, points, (size_t) first[c], (size_t) second[c]);
}

/* A bracket round the middle from pairs drawn by a fixed sequence (Steele et al. 2014: splitmix). */
static void sample_bracket(const km_kernel *kernel, const km_pair *points, selection *s) {
  uint64_t state = 0;
  for (size_t c = 0; c < SAMPLED; c++) {
    size_t pair[2];
    for (size_t k = 0; k < 2; k++) {
      uint64_t z = state += 0x9e3779b97f4a7c15;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      pair[k] = (size_t) ((z ^ (z >> 31)) % (points->n - k));
    }
    pair[1] += pair[1] >= pair[0];
    s->gathered[c] = pair_distance(kernel, points, pair[0], pair[1]);
  }
  /* Five standard deviations of a sample's rank, sqrt(SAMPLED)/2, on either side. */
  const size_t away = 5 * 64;
  const double low = select_rank(s->gathered, SAMPLED, SAMPLED / 2 - away);
  set_bracket(s, low, select_rank(s->gathered, SAMPLED, SAMPLED / 2 + away));
}

/* Counts by worker, for the bracket. Returns how many distances are below it. */
static uint64_t count_pass(const km_kernel *kernel, const km_pair *points, selection *s,
                           double *work, km_poll poll) {
  uint64_t below = 0;
  memset(s->counts, 0, KM_WORKERS * (BUCKETS + 1) * sizeof *s->counts);
  km_walk(kernel, points, count_tile, s, work, poll);
  for (size_t worker = 0; worker < KM_WORKERS; worker++)
    below += s->counts[worker * (BUCKETS + 1) + BUCKETS];
  return below;
}

/* Lets `filled` hold where each worker's part of a bucket starts. Returns the bucket's count. */
static uint64_t lay_out(selection *s, size_t bucket) {
  uint64_t inside = 0;
  for (size_t worker = 0; worker < KM_WORKERS; worker++) {
    s->filled[worker] = (size_t) inside;
    inside += s->counts[worker * (BUCKETS + 1) + bucket];
  }
  return inside;
}

static void shrink_to(selection *s, size_t bucket) {
  const uint64_t base = bits(s->low) + ((uint64_t) bucket << s->shift);
  const uint64_t end = base + (((uint64_t) 1 << s->shift) - 1);
  set_bracket(s, number(base), end < bits(s->high) ? number(end) : s->high);
}

/*
 * Shrinks the bracket until it holds the distance of this rank and at most GATHERED in all, which
 * are gathered, or one value only. Returns how many distances are below it; their count in *inside.
 */
static uint64_t narrow(const km_kernel *kernel, const km_pair *points, selection *s, uint64_t rank,
                       uint64_t *inside, double *work, km_poll poll) {
  for (;;) {
    uint64_t below = count_pass(kernel, points, s, work, poll);
    size_t bucket = 0;
    *inside = 0;
    if (rank >= below) {
      for (; bucket < BUCKETS; bucket++) {
        *inside = lay_out(s, bucket);
        if (rank < below + *inside) break;
        below += *inside;
      }
    }
    if (rank < below || bucket == BUCKETS) {
      set_bracket(s, 0, INFINITY); /* the sample's bracket missed */
      continue;
    }
    shrink_to(s, bucket);
    if (bits(s->low) == bits(s->high)) return below;
    if (*inside <= GATHERED) {
      km_walk(kernel, points, gather_tile, s, work, poll);
      return below;
    }
  }
}

static double smallest_positive(const km_kernel *kernel, const km_pair *points, selection *s,
                                double *work, km_poll poll) {
  double least = INFINITY;
  for (size_t worker = 0; worker < KM_WORKERS; worker++) s->least[worker] = INFINITY;
  km_walk(kernel, points, least_tile, s, work, poll);
  for (size_t worker = 0; worker < KM_WORKERS; worker++)
    if (s->least[worker] < least) least = s->least[worker];
  return least < INFINITY ? least : 0;
}

size_t km_median_work(const km_pair *points) {
  return km_walk_work(points) + KM_WORKERS * (BUCKETS + 1 + 2) + GATHERED;
}

km_median km_pairwise_median(const km_kernel *kernel, const km_pair *points, double *work,
                             km_poll poll) {
  const uint64_t pairs = (uint64_t) points->n * (points->n - 1) / 2;
  double *scratch = work + km_walk_work(points);
  selection s = {.gathered = scratch, .least = scratch + GATHERED};
  s.filled = (size_t *) (void *) (s.least + KM_WORKERS);
  s.counts = (uint64_t *) (void *) (s.least + 2 * KM_WORKERS);
  set_bracket(&s, 0, INFINITY);
  if (pairs > GATHERED) sample_bracket(kernel, points, &s);
  double middle[2];
  uint64_t below = 0, inside = 0;
  for (uint64_t k = 0; k < 2; k++) {
    const uint64_t rank = k == 0 ? (pairs - 1) / 2 : pairs / 2;
    if (rank >= below + inside) {
      if (k == 1) set_bracket(&s, s.low, INFINITY);
      below = narrow(kernel, points, &s, rank, &inside, work, poll);
    }
    middle[k] = s.low;
    if (bits(s.low) < bits(s.high))
      middle[k] = select_rank(s.gathered, (size_t) inside, (size_t) (rank - below));
  }
  km_median found = {mean_of_two(middle[0], middle[1]), 0};
  if (found.median == 0) found.min_positive = smallest_positive(kernel, points, &s, work, poll);
  return found;
}
