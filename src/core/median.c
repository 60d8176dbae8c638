#include "core/median.h"
#include "core/order.h"
#include "core/parts.h"
#include "core/scratch.h"
#include "core/sequence.h"
#include "core/walk.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/*
 * The median of all N = n(n-1)/2 distances without storing them. A sample of pairs (from a fixed
 * sequence) gives a bracket that holds the middle but for bad luck. A pass over the tiles counts
 * what lies below the bracket, tabulates what lies in it by the leading bits (non-negative doubles
 * are ordered as their bits are) and keeps the values while there is room. If all found room, the
 * middle is selected among them; else the table shows a bracket 1/BINS as wide for the next pass.
 * One pass up to some 10^7 pairs, two beyond that, at most six (the bits of a double over those of
 * BINS) whatever the ties. Where the middle is 0 a pass counts the positive distances, and the
 * search begins again for the middle of these. Cost: per pass 3 d + 5 flops a pair; memory of the
 * walk and (ROOM + BINS) doubles for each worker.
 */

enum {
  BINS = 2048,
  ROOM = 16384, /* values a worker keeps, at most */
  SAMPLE = 16384,
  MARGIN = 224, /* ranks from the sample's middle to the bracket's ends: 3.5 standard deviations */
  CHUNK = 4096,
  AT_ONCE = 65536 /* pairs drawn between two polls */
};

static const double count_cost = 8; /* operations on a distance */

typedef struct {
  uint64_t low, high; /* bits of the first and the last value inside */
  int shift;          /* a value's bin is (bits - low) >> shift */
} bracket;

typedef struct {
  size_t below, inside;
} tally;

typedef struct {
  bracket range;
  size_t workers;
  size_t room;  /* values a worker keeps */
  size_t slice; /* and room for one tile more */
  tally tallies[KM_WORKERS];
  double *kept;     /* a slice a worker */
  uint64_t *counts; /* BINS a worker */
  double *walk;
} pass;

static size_t count_pairs(const km_source *source) { return source->n * (source->n - 1) / 2; }

static size_t lay_out(pass *p, const km_source *source, double *work) {
  km_scratch scratch = {work, 0};
  p->workers = km_walk_workers(source);
  p->room = smaller(ROOM, count_pairs(source));
  p->slice = p->room + KM_TILE_ROWS * KM_TILE_COLS;
  p->walk = take(&scratch, km_walk_work(source));
  p->kept = take(&scratch, p->workers * p->slice);
  p->counts = (uint64_t *) take(&scratch, p->workers * BINS);
  return scratch.used;
}

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static double value_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static bracket make_bracket(uint64_t low, uint64_t high) {
  bracket range = {low, high, 0};
  while ((high - low) >> range.shift >= BINS) range.shift++;
  return range;
}

static void count_tile(const km_tile *tile, void *to, size_t worker) {
  pass *p = to;
  const bracket range = p->range;
  tally *sum = p->tallies + worker;
  uint64_t *counts = p->counts + worker * BINS;
  double *inside = p->kept + worker * p->slice + smaller(sum->inside, p->room);
  const size_t count = km_simd()->between(tile, value_of(range.low), value_of(range.high), inside,
                                       &sum->below);
  for (size_t j = 0; j < count; j++)
    counts[(bits_of(inside[j]) - range.low) >> range.shift]++;
  sum->inside += count;
}

/* One pass. Afterwards the first tally and the first worker's counts are those of all. */
static int count_all(const km_source *source, bracket range, pass *p, km_poll poll) {
  p->range = range;
  memset(p->counts, 0, p->workers * BINS * sizeof *p->counts);
  for (size_t worker = 0; worker < p->workers; worker++)
    p->tallies[worker] = (tally){0, 0};
  km_walk(source, p->workers, count_cost, count_tile, p, p->walk, poll);
  tally *all = p->tallies;
  int complete = all->inside <= p->room;
  for (size_t worker = 1; worker < p->workers; worker++) {
    const tally sum = p->tallies[worker];
    complete = complete && sum.inside <= p->room;
    if (complete)
      memmove(p->kept + all->inside, p->kept + worker * p->slice, sum.inside * sizeof *p->kept);
    all->below += sum.below;
    all->inside += sum.inside;
    for (size_t bin = 0; bin < BINS; bin++) p->counts[bin] += p->counts[worker * BINS + bin];
  }
  return complete;
}

/* The bin of the pass that holds rank `rank` of what lies inside. */
static bracket narrow(const pass *p, size_t rank) {
  const bracket range = p->range;
  uint64_t bin = 0;
  for (; rank >= p->counts[bin]; bin++) rank -= p->counts[bin];
  const uint64_t low = range.low + (bin << range.shift);
  const uint64_t last = low + (((uint64_t) 1 << range.shift) - 1);
  return make_bracket(low, last < range.high ? last : range.high);
}

/*
 * The distance of rank `rank`, starting from a bracket; *next: that of the next rank, or -1 if the
 * passes did not show it.
 */
static double distance_of_rank(const km_source *source, size_t rank, bracket range, double *next,
                               pass *p, km_poll poll) {
  uint64_t lowest = 0, highest = bits_of(INFINITY);
  *next = -1;
  for (;;) {
    const int complete = count_all(source, range, p, poll);
    const size_t below = p->tallies->below, inside = p->tallies->inside;
    if (rank < below) {
      highest = range.low - 1;
      range = make_bracket(lowest, highest);
    } else if (rank - below >= inside) {
      if (range.high >= highest) return NAN; /* a distance is not a number */
      lowest = range.high + 1;
      range = make_bracket(lowest, highest);
    } else if (complete) {
      const size_t place = rank - below;
      const double value = km_select(inside, p->kept, place);
      if (place + 1 < inside) *next = km_least(inside - place - 1, p->kept + place + 1);
      return value;
    } else if (range.low == range.high) {
      if (rank - below + 1 < inside) *next = value_of(range.low);
      return value_of(range.low);
    } else {
      range = narrow(p, rank - below);
    }
  }
}

/* A feature at a time so that its column stays in cache. */
static void some_distances(const km_source *source, const int *first, const int *second,
                           size_t count, double *out) {
  for (size_t pair = 0; pair < count; pair++) out[pair] = 0;
  const int l1 = source->kernel.family == KM_L1DIST;
  for (size_t l = 0; l < source->d; l++) {
    const double *x = source->x + l * source->n, scale = source->scale[l];
    for (size_t pair = 0; pair < count; pair++) {
      const double u = (x[first[pair]] - x[second[pair]]) * scale;
      out[pair] += l1 ? fabs(u) : u * u;
    }
  }
}

/* Distances of given pairs. first, second: 0-based, count of each; out: count. */
static void pair_distances(const km_source *source, const int *first, const int *second,
                           size_t count, double *out) {
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(source, first, second, count, out) \
    schedule(dynamic) num_threads(km_threads((double) count * (double) source->d))
#endif
  for (size_t pair = 0; pair < count; pair += CHUNK)
    some_distances(source, first + pair, second + pair,
                   smaller(CHUNK, count - pair), out + pair);
}

/* A bracket that holds the middle with high probability, from a sample of pairs. */
static bracket sample_bracket(const km_source *source, double *work) {
  const uint64_t n = source->n;
  if (count_pairs(source) <= KM_WORKERS * ROOM / 4) return make_bracket(0, bits_of(INFINITY));
  int *first = (int *) work, *second = first + SAMPLE;
  double *values = work + SAMPLE;
  uint64_t state = 0;
  for (size_t pair = 0; pair < SAMPLE; pair++) {
    const uint64_t i = next_number(&state) % n, step = 1 + next_number(&state) % (n - 1);
    first[pair] = (int) i;
    second[pair] = (int) ((i + step) % n);
  }
  pair_distances(source, first, second, SAMPLE, values);
  const double low = km_select(SAMPLE, values, SAMPLE / 2 - MARGIN);
  const double high = km_select(SAMPLE, values, SAMPLE / 2 + MARGIN);
  return make_bracket(bits_of(low), bits_of(high));
}

size_t km_median_work(const km_source *source) {
  pass p;
  return lay_out(&p, source, NULL);
}

/* The median of the `count` largest of all pairs, starting from a bracket. */
static double median_of_largest(const km_source *source, size_t count, bracket range, pass *p,
                                km_poll poll) {
  const size_t lower = count_pairs(source) - count + (count - 1) / 2;
  double next;
  double median = distance_of_rank(source, lower, range, &next, p, poll);
  if (count % 2 == 0) {
    if (next < 0) {
      double ignored;
      range = make_bracket(bits_of(median) + 1, bits_of(INFINITY));
      next = distance_of_rank(source, lower + 1, range, &ignored, p, poll);
    }
    median = (median + next) / 2;
  }
  return median;
}

km_median km_pairwise_median(const km_source *source, double *work, km_poll poll) {
  pass p;
  lay_out(&p, source, work);
  const double median =
      median_of_largest(source, count_pairs(source), sample_bracket(source, p.kept), &p, poll);
  if (median != 0) return (km_median){median, median};
  const bracket positive = make_bracket(1, bits_of(INFINITY));
  count_all(source, positive, &p, poll);
  const size_t count = p.tallies->inside;
  return (km_median){
      0, count == 0 ? 0 : median_of_largest(source, count, positive, &p, poll)};
}

size_t km_sampled_median_work(size_t pairs) { return pairs; }

typedef struct {
  int *first, *second; /* the points of the pairs drawn at once */
} drawn;

static size_t lay_out_drawn(drawn *s, size_t pairs, int *iwork) {
  km_int_scratch scratch = {iwork, 0};
  s->first = take_ints(&scratch, smaller(AT_ONCE, pairs));
  s->second = take_ints(&scratch, smaller(AT_ONCE, pairs));
  return scratch.used;
}

size_t km_sampled_median_iwork(size_t pairs) {
  drawn s;
  return lay_out_drawn(&s, pairs, NULL);
}

km_median km_sampled_median(const km_source *source, size_t pairs, km_draw draw, double *work,
                            int *iwork, km_poll poll) {
  drawn s;
  lay_out_drawn(&s, pairs, iwork);
  int *first = s.first, *second = s.second;
  for (size_t done = 0; done < pairs; done += AT_ONCE) {
    const size_t count = smaller(AT_ONCE, pairs - done);
    for (size_t c = 0; c < count; c++) {
      first[c] = (int) draw(source->n);
      second[c] = (int) draw(source->n - 1);
      second[c] += second[c] >= first[c];
    }
    pair_distances(source, first, second, count, work + done);
    if (poll) poll();
  }
  const double median = km_middle(pairs, work);
  if (median != 0) return (km_median){median, median};
  size_t count = 0;
  for (size_t pair = 0; pair < pairs; pair++)
    if (work[pair] > 0) work[count++] = work[pair];
  return (km_median){0, count == 0 ? 0 : km_middle(count, work)};
}
