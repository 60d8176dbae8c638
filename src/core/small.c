#include "core/small.h"
#include "core/parts.h"
#include "core/scratch.h"

#include <string.h>

/*
 * All points are centered, scaled and laid out one after the other, once: n d doubles. The members
 * of a subset are gathered from there into packs, and the lower half of their Gram matrix is
 * evaluated tile by tile: count m^2 (d + 24) / 2 operations, a slice of m (d + 1) doubles and a
 * tile for each worker. A form depends on its own subset alone.
 */

enum {
  PACK = KM_PACK,
  AHEAD = 8, /* members that are fetched before they are gathered */
  LINE = 8   /* doubles of a cache line */
};

static const double poll_work = 134217728; /* operations a lane between two polls */

typedef struct {
  const km_source *source;
  const km_arithmetic *simd;
  const int *members;
  size_t m;
  km_point_set all;   /* the points one after the other, d numbers each */
  double *points, *half_norms;
  double *slices;     /* KM_WORKERS x slice: a tile, packs of m points, their half norms */
  size_t slice, room; /* room: of a tile */
} small_forms;

static size_t lay_out(small_forms *s, const km_source *source, size_t m, double *work) {
  km_scratch scratch = {work, 0};
  if (source->k) return 0;
  const size_t d = source->d, padded = round_up(source->n, PACK);
  const size_t norms = km_norms(&source->kernel);
  s->points = take_aligned(&scratch, padded * d);
  s->half_norms = take_aligned(&scratch, padded * norms);
  s->room = km_tile_room(&source->kernel);
  s->slice = s->room + round_up(larger(m, 1), PACK) * (d + norms);
  s->slices = take_aligned(&scratch, KM_WORKERS * s->slice);
  return scratch.used;
}

size_t km_small_forms_work(const km_source *source, size_t m) {
  small_forms s;
  return lay_out(&s, source, m, NULL);
}

/* A worker's share of all points. */
static void lay_points(const small_forms *s, size_t worker) {
  const km_source *source = s->source;
  const size_t n = source->n, d = source->d, packs = pieces(n, PACK);
  double *pack = s->slices + worker * s->slice + s->room;
  for (size_t p = share_start(packs, KM_WORKERS, worker);
       p < share_start(packs, KM_WORKERS, worker + 1); p++) {
    double *points = s->points + p * PACK * d;
    km_pack_points(source, source->x, n, p * PACK, pack);
    km_half_norms(&source->kernel, pack, PACK, d, packs * PACK, s->half_norms + p * PACK);
    for (size_t i = 0; i < PACK; i++)
      for (size_t l = 0; l < d; l++) points[i * d + l] = pack[l * PACK + i];
  }
}

/* A point will be wanted: it may be far away in memory. */
static void fetch(const small_forms *s, size_t point) {
  const size_t d = s->source->d;
  for (size_t l = 0; l < d; l += LINE) __builtin_prefetch(s->all.points + point * d + l);
}

/* The members of a subset as packs, and their half norms. */
static void gather(const small_forms *s, const int *members, double *packs, double *half_norms) {
  const size_t d = s->source->d, norms = km_norms(&s->source->kernel);
  const size_t apart = round_up(s->m, PACK);
  for (size_t i = 0; i < s->m; i++) {
    const size_t point = (size_t) members[i] - 1;
    if (i + AHEAD < s->m) fetch(s, (size_t) members[i + AHEAD] - 1);
    const double *from = s->all.points + point * d;
    double *to = packs + i / PACK * PACK * d + i % PACK;
    for (size_t l = 0; l < d; l++) to[l * PACK] = from[l];
    if (s->all.half_norms)
      for (size_t p = 0; p < norms; p++)
        half_norms[p * apart + i] = s->all.half_norms[p * s->all.apart + point];
  }
}

/*
 * A row of tiles goes from the first member to its own last: columns before its first row count
 * twice, those from there on, where it meets the diagonal, once. slice: the worker's, with zeros
 * beyond the members.
 */
static double form_of_points(const small_forms *s, const int *members, const double *times,
                             double *slice) {
  const size_t m = s->m, d = s->source->d;
  const size_t apart = round_up(m, PACK);
  double *packs = slice + s->room, *norms = packs + apart * d, form = 0;
  gather(s, members, packs, norms);
  if (!s->all.half_norms) norms = NULL;
  for (size_t i = 0; i < m; i += KM_TILE_ROWS) {
    const size_t last = smaller(m, i + KM_TILE_ROWS);
    for (size_t j = 0; j < last; j += KM_TILE_COLS) {
      const km_tile_job job = {
        .x = {packs + i * d, norms ? norms + i : NULL, last - i, apart},
        .y = {packs + j * d, norms ? norms + j : NULL, smaller(KM_TILE_COLS, last - j), apart},
        .d = d,
        .wide = d,
        .k = slice};
      km_tile_values(&s->source->kernel, &job);
      const size_t twice = i > j ? smaller(KM_TILE_COLS, i - j) : 0;
      form += s->simd->form(slice, last - i, times + KM_TILE_COLS, times + KM_TILE_COLS - twice);
    }
  }
  return form;
}

static double form_of_matrix(const small_forms *s, const int *members) {
  const size_t n = s->source->n;
  double above = 0, diagonal = 0;
  for (size_t j = 0; j < s->m; j++) {
    const double *column = s->source->k + (size_t) (members[j] - 1) * n;
    for (size_t i = 0; i < j; i++) above += column[members[i] - 1];
    diagonal += column[members[j] - 1];
  }
  return diagonal + 2 * above;
}

/* A worker's share of the subsets from `first` to `last`. */
static void add_forms(const small_forms *s, size_t worker, size_t first, size_t last,
                      double *forms) {
  const size_t d = s->source->d, count = last - first;
  double *slice = s->source->k ? NULL : s->slices + worker * s->slice;
  double times[2 * KM_TILE_COLS];
  for (size_t j = 0; j < KM_TILE_COLS; j++) {
    times[j] = 2;
    times[KM_TILE_COLS + j] = 1;
  }
  if (slice) memset(slice + s->room, 0, round_up(s->m, PACK) * d * sizeof *slice);
  for (size_t c = first + share_start(count, KM_WORKERS, worker);
       c < first + share_start(count, KM_WORKERS, worker + 1); c++) {
    const int *members = s->members + c * s->m;
    forms[c] = slice ? form_of_points(s, members, times, slice) : form_of_matrix(s, members);
  }
}

static void prepare(small_forms *s) {
  const km_source *source = s->source;
  s->simd = km_simd();
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(s, source) schedule(dynamic) \
    num_threads(km_threads((double) source->n * (double) source->d))
#endif
  for (size_t worker = 0; worker < KM_WORKERS; worker++) lay_points(s, worker);
  const int norms = km_takes_norms(&source->kernel);
  s->all = (km_point_set){s->points, norms ? s->half_norms : NULL, source->n,
                          round_up(source->n, PACK)};
  if (!km_near_center(&source->kernel, &s->all)) s->all.half_norms = NULL;
}

void km_small_forms(const km_source *source, const int *members, size_t m, size_t count,
                    double *forms, double *work, km_poll poll) {
  small_forms s = {.source = source, .members = members, .m = m};
  const double values = (double) m * (double) m / 2;
  const double each = values * km_value_cost(&source->kernel, source->d) + 1;
  const size_t most = KM_WORKERS + (size_t) (poll_work / each);
  lay_out(&s, source, m, work);
  if (!source->k) prepare(&s);
  for (size_t first = 0; first < count; first += most) {
    const size_t last = smaller(count, first + most);
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(s, first, forms) firstprivate(last, each) \
    schedule(dynamic) num_threads(km_threads((double) (last - first) * each))
#endif
    for (size_t worker = 0; worker < KM_WORKERS; worker++)
      add_forms(&s, worker, first, last, forms);
    if (poll) poll();
  }
}
