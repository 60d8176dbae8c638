#include "apps/hsic.h"
#include "core/arithmetic.h"
#include "core/products.h"
#include "core/isa.h"
#include "core/parts.h"
#include "core/scratch.h"

#include <string.h>

#ifdef X86
#include <immintrin.h>
#endif

/*
 * T(c) = sum_ij k_ij l_{c(i) c(j)} for B permutations c. From the matrices: with r = c(i), the rows
 * r of l outside (one row stays in the cache), blocks of permutations inside, and the part j < i of
 * row i of k against a gather from row r: B n^2 / 2 gathers. For each pair of several k and l, the
 * values of all l at a place stand together, and one load serves the pairs of up to five k: a third
 * of the time of five gathers for 25 pairs. From factors: |A'P_c B|^2, products of
 * narrow matrices, 2 B n rank_a rank_b flops. Each sum is added up in an order that depends on n
 * alone, so that the bits depend neither on the threads nor on the other permutations.
 */

enum {
  BLOCK = 64,   /* permutations that share a row of l */
  SLOTS = 8,    /* shares of the rows, each with sums of its own */
  WORKERS = 16, /* shares of the permutations, each with scratch of its own */
  CHUNK = 512   /* products of more than two factors held at a time */
};

static const double poll_flops = 268435456; /* of products, between two polls */
static const size_t poll_gathers = 524288; /* of a permutation, between two polls */
static const size_t gathered_doubles = 32768;   /* of gathered rows: 256 kB */

/* sum over j < m of k_j row_{order(j)}; next: the row of k that is wanted after it. */
typedef double (*gather)(const double *k, const double *row, const int *order, size_t m,
                         const double *next);

static double gather_baseline(const double *k, const double *row, const int *order, size_t m,
                              const double *next) {
  double s[4] = {0, 0, 0, 0};
  size_t j = 0;
  (void) next;
  for (; j + 4 <= m; j += 4)
    for (size_t l = 0; l < 4; l++) s[l] += k[j + l] * row[order[j + l]];
  for (; j < m; j++) s[0] += k[j] * row[order[j]];
  return (s[0] + s[1]) + (s[2] + s[3]);
}

#ifdef X86
/* Single loads are faster than the gather instructions (0.35 against 0.6 ns a value on Zen 5), and
   a row of k that is asked for while the last one is used is there in time (0.75 to 0.4 ns at n =
   2000, where k is larger than the cache). */

#define AT(l) row[order[j + l]]
AVX512 static double gather_avx512(const double *k, const double *row, const int *order, size_t m,
                                   const double *next) {
  __m512d s0 = _mm512_setzero_pd(), s1 = s0;
  size_t j = 0;
  for (; j + 16 <= m; j += 16) {
    __builtin_prefetch(next + j);
    __builtin_prefetch(next + j + 8);
    const __m512d r0 = _mm512_set_pd(AT(7), AT(6), AT(5), AT(4), AT(3), AT(2), AT(1), AT(0));
    const __m512d r1 = _mm512_set_pd(AT(15), AT(14), AT(13), AT(12), AT(11), AT(10), AT(9), AT(8));
    s0 = _mm512_fmadd_pd(_mm512_loadu_pd(k + j), r0, s0);
    s1 = _mm512_fmadd_pd(_mm512_loadu_pd(k + j + 8), r1, s1);
  }
  double sum = _mm512_reduce_add_pd(_mm512_add_pd(s0, s1));
  for (; j < m; j++) sum += k[j] * row[order[j]];
  return sum;
}

AVX2 static double gather_avx2(const double *k, const double *row, const int *order, size_t m,
                               const double *next) {
  __m256d s0 = _mm256_setzero_pd(), s1 = s0;
  size_t j = 0;
  for (; j + 8 <= m; j += 8) {
    __builtin_prefetch(next + j);
    const __m256d r0 = _mm256_set_pd(AT(3), AT(2), AT(1), AT(0));
    const __m256d r1 = _mm256_set_pd(AT(7), AT(6), AT(5), AT(4));
    s0 = _mm256_fmadd_pd(_mm256_loadu_pd(k + j), r0, s0);
    s1 = _mm256_fmadd_pd(_mm256_loadu_pd(k + j + 4), r1, s1);
  }
  double s[4];
  _mm256_storeu_pd(s, _mm256_add_pd(s0, s1));
  for (; j < m; j++) s[0] += k[j] * row[order[j]];
  return (s[0] + s[1]) + (s[2] + s[3]);
}
#undef AT
#endif

static gather best_gather(void) {
#ifdef X86
  if (km_isa_level() == KM_AVX512) return gather_avx512;
  if (km_isa_level() == KM_AVX2) return gather_avx2;
#endif
  return gather_baseline;
}

/* Rows between two polls, by n alone. */
static size_t rows_at_once(size_t n) {
  return larger(SLOTS, poll_gathers / n);
}

/* Adds rows from .. to-1 of l to the sums of a block of permutations. */
static void add_rows(gather inner, const double *k, const double *l, const km_permutations *all,
                     size_t block, size_t from, size_t to, double *sums) {
  const size_t n = all->n, first = block * BLOCK;
  const size_t last = smaller(all->count, first + BLOCK);
  for (size_t r = from; r < to; r++)
    for (size_t c = first; c < last; c++) {
      const size_t i = (size_t) all->inverse[r + c * n];
      const size_t next = (size_t) all->inverse[r + (c + 1 < last ? c + 1 : first) * n];
      const double half = inner(k + i * n, l + r * n, all->order + c * n, i, k + next * n);
      sums[c] += 2 * half + k[i + i * n] * l[r + r * n];
    }
}

size_t km_permuted_forms_work(size_t count) { return SLOTS * count; }

/* forms[c]: the sums of all slots in their order. */
static void add_slots(const double *sums, size_t count, double *forms) {
  for (size_t c = 0; c < count; c++) {
    forms[c] = 0;
    for (size_t slot = 0; slot < SLOTS; slot++) forms[c] += sums[c + slot * count];
  }
}

void km_permuted_forms(const double *k, const double *l, const km_permutations *permutations,
                       double *forms, double *work, km_poll poll) {
  const size_t n = permutations->n, count = permutations->count;
  const size_t tasks = pieces(count, BLOCK) * SLOTS;
  const size_t step = rows_at_once(n);
  const gather inner = best_gather();
  memset(work, 0, km_permuted_forms_work(count) * sizeof *work);
  for (size_t first = 0; first < n; first += step) {
    const size_t rows = smaller(step, n - first);
#ifdef _OPENMP
#pragma omp parallel for default(none) schedule(dynamic) shared(first, k, l, permutations, work) \
    firstprivate(n, count, tasks, rows, inner) \
    num_threads(km_threads((double) (rows * n * count)))
#endif
    for (size_t task = 0; task < tasks; task++) {
      const size_t slot = task % SLOTS;
      add_rows(inner, k, l, permutations, task / SLOTS, first + rows * slot / SLOTS,
               first + rows * (slot + 1) / SLOTS, work + slot * count);
    }
    if (poll) poll();
  }
  add_slots(work, count, forms);
}

enum {
  GRID = KM_GRID_ROWS * KM_GRID_COLUMNS,
  DOWN = 16,
  GRID_CACHE = 131072 /* doubles of the rows of l, and of k, that are used together: 1 MB */
};

typedef struct {
  size_t down, across; /* rows of l, and of k, at a time */
  double *rows;        /* of all l: down x n x KM_GRID_COLUMNS */
  double *sums;        /* count x GRID */
  int *hits;           /* permutations */
} grid_room;

static size_t lay_out_grid(grid_room *s, size_t n, size_t count, double *work) {
  km_scratch scratch = {work, 0};
  s->down = larger(1, smaller(DOWN, GRID_CACHE / KM_GRID_COLUMNS / n));
  s->across = larger(1, smaller(16, GRID_CACHE / KM_GRID_ROWS / n));
  /* No less for more points. */
  const size_t row = n * KM_GRID_COLUMNS;
  s->rows = take_aligned(&scratch, smaller(DOWN * row, larger(GRID_CACHE, row)));
  s->sums = take(&scratch, count * GRID);
  s->hits = (int *) take(&scratch, count);
  return scratch.used;
}

static void take_slot(grid_room *s, size_t n, size_t count, size_t slot, double *work) {
  lay_out_grid(s, n, count, work + slot * lay_out_grid(s, n, count, NULL));
}

/* Room for a slot, times the slots. */
size_t km_permuted_grid_work(size_t n, size_t count) {
  grid_room s;
  return SLOTS * lay_out_grid(&s, n, count, NULL);
}

/* Up to KM_GRID_ROWS matrices k and KM_GRID_COLUMNS matrices l of a grid. */
typedef struct {
  const double *const *k, *const *l;
  size_t ks, ls;
} grid;

/* Row i of each k; the first stands in for those that are not there. */
static void rows_of_k(const grid *g, size_t at, const double **rows) {
  for (size_t a = 0; a < KM_GRID_ROWS; a++) rows[a] = g->k[a < g->ks ? a : 0] + at;
}

/* Adds half of row r of the l to the sums of those permutations that take a row of k from `low` on
   there: the part before the diagonal, and half of that. row: that row, l_rr halved. */
static void add_grid_row(const grid *g, const km_permutations *all, size_t r, size_t low,
                         const double *row, const grid_room *s) {
  const size_t n = all->n;
  const int *inverse = all->inverse + r;
  const double *k[KM_GRID_ROWS], *next[KM_GRID_ROWS];
  size_t hits = 0;
  for (size_t c = 0; c < all->count; c++)
    if ((size_t) inverse[c * n] - low < s->across) s->hits[hits++] = (int) c;
  for (size_t h = 0; h < hits; h++) {
    const size_t c = (size_t) s->hits[h], i = (size_t) inverse[c * n];
    const size_t after = (size_t) s->hits[h + 1 < hits ? h + 1 : h];
    rows_of_k(g, i * n, k);
    rows_of_k(g, (size_t) inverse[after * n] * n, next);
    km_simd()->grid_forms(k, next, row, all->order + c * n, i + 1, s->sums + c * GRID);
  }
}

/* The same of rows from .. to-1: so many of the l, and of the k, that caches hold both. */
static void add_grid_rows(const grid *g, const km_permutations *all, size_t from, size_t to,
                          const grid_room *s) {
  const size_t n = all->n, size = n * KM_GRID_COLUMNS;
  for (size_t first = from; first < to; first += s->down) {
    const size_t some = smaller(s->down, to - first);
    for (size_t t = 0; t < some; t++)
      for (size_t b = 0; b < g->ls; b++) {
        for (size_t j = 0; j < n; j++)
          s->rows[t * size + j * KM_GRID_COLUMNS + b] = g->l[b][(first + t) * n + j];
        s->rows[t * size + (first + t) * KM_GRID_COLUMNS + b] *= 0.5;
      }
    for (size_t low = 0; low < n; low += s->across)
      for (size_t t = 0; t < some; t++)
        add_grid_row(g, all, first + t, low, s->rows + t * size, s);
  }
}

/* forms_abc, a of `across` and the first of g->ks, for one panel of the grid. */
static void form_panel(const grid *g, const km_permutations *all, size_t across, double *forms,
                       double *work, km_poll poll) {
  const size_t n = all->n, count = all->count, step = rows_at_once(n);
  memset(work, 0, km_permuted_grid_work(n, count) * sizeof *work);
  for (size_t first = 0; first < n; first += step) {
    const size_t rows = smaller(step, n - first);
#ifdef _OPENMP
#pragma omp parallel for default(none) schedule(dynamic) shared(first, g, all, work) \
    firstprivate(n, count, rows) num_threads(km_threads(4 * (double) (rows * n * count)))
#endif
    for (size_t slot = 0; slot < SLOTS; slot++) {
      grid_room s;
      take_slot(&s, n, count, slot, work);
      add_grid_rows(g, all, first + rows * slot / SLOTS, first + rows * (slot + 1) / SLOTS, &s);
    }
    if (poll) poll();
  }
  for (size_t slot = 0; slot < SLOTS; slot++) {
    grid_room s;
    take_slot(&s, n, count, slot, work);
    for (size_t a = 0; a < g->ks; a++)
      for (size_t b = 0; b < g->ls; b++)
        for (size_t c = 0; c < count; c++) {
          double *to = forms + (a + b * across) * count + c;
          *to = (slot ? *to : 0) + 2 * s.sums[c * GRID + a * KM_GRID_COLUMNS + b];
        }
  }
}

void km_permuted_grid(const double *const *k, size_t ks, const double *const *l, size_t ls,
                      const km_permutations *permutations, double *forms, double *work,
                      km_poll poll) {
  for (size_t b = 0; b < ls; b += KM_GRID_COLUMNS)
    for (size_t a = 0; a < ks; a += KM_GRID_ROWS) {
      const grid panel = {k + a, l + b, smaller(KM_GRID_ROWS, ks - a),
                          smaller(KM_GRID_COLUMNS, ls - b)};
      form_panel(&panel, permutations, ks, forms + (a + b * ks) * permutations->count, work, poll);
    }
}

/* Rows of b gathered at a time: as many as the cache holds. */
static size_t gathered_rows(size_t columns) {
  const size_t rows = gathered_doubles / columns;
  return smaller(256, larger(8, rows));
}

/* A worker's product and gathered rows. */
static size_t product_size(size_t rows, size_t columns) {
  return (rows + gathered_rows(columns)) * columns;
}

static void pad(const double *a, size_t n, size_t rank, size_t width, double *out) {
  memset(out, 0, n * width * sizeof *out);
  for (size_t i = 0; i < n; i++) memcpy(out + i * width, a + i * rank, rank * sizeof *out);
}

/* |A'P B|^2 for one permutation. a: n x rows, b: n x columns, row-major, padded. */
static double product_form(const double *a, size_t rows, const double *b, size_t columns, size_t n,
                           const int *order, double *product) {
  const size_t depth = gathered_rows(columns), cells = rows * columns;
  double *gathered = product + cells;
  memset(product, 0, cells * sizeof *product);
  for (size_t first = 0; first < n; first += depth) {
    const size_t some = smaller(depth, n - first);
    for (size_t t = 0; t < some; t++)
      memcpy(gathered + t * columns, b + (size_t) order[first + t] * columns,
             columns * sizeof *gathered);
    const factor part = {a + first * rows, rows, 1};
    km_multiply(rows, columns, some, part, gathered, columns, product, columns);
  }
  for (size_t e = 0; e < cells; e++) product[e] *= product[e];
  return km_total(cells, product);
}

typedef struct {
  size_t rows, columns; /* of the product: the ranks, padded */
  double *left, *right; /* the padded factors */
  double *products;     /* WORKERS x product_size */
} products;

/* A factor of rank 0 has a column of zeros. */
static size_t lay_out(products *s, size_t n, size_t rank_a, size_t rank_b, double *work) {
  km_scratch scratch = {work, 0};
  s->rows = round_up(larger(1, rank_a), 8);
  s->columns = round_up(larger(1, rank_b), KM_BAND);
  s->left = take(&scratch, n * s->rows);
  s->right = take(&scratch, n * s->columns);
  s->products = take(&scratch, WORKERS * product_size(s->rows, s->columns));
  return scratch.used;
}

size_t km_permuted_products_work(size_t n, size_t rank_a, size_t rank_b) {
  products s;
  return lay_out(&s, n, rank_a, rank_b, NULL);
}

void km_permuted_products(const double *a, size_t rank_a, const double *b, size_t rank_b,
                          const km_permutations *permutations, double *forms, double *work,
                          km_poll poll) {
  const size_t n = permutations->n, count = permutations->count;
  products s;
  lay_out(&s, n, rank_a, rank_b, work);
  const size_t size = product_size(s.rows, s.columns);
  pad(a, n, rank_a, s.rows, s.left);
  pad(b, n, rank_b, s.columns, s.right);
  const double each = 2 * (double) n * (double) s.rows * (double) s.columns;
  const double fit = poll_flops / each / WORKERS;
  const size_t runs = fit < 1 ? 1 : (size_t) fit;
  for (size_t first = 0; first < count; first += runs * WORKERS) {
    const size_t last = smaller(count, first + runs * WORKERS);
#ifdef _OPENMP
#pragma omp parallel for default(none) schedule(dynamic) shared(first, s, permutations, forms) \
    firstprivate(n, last, each, size) num_threads(km_threads(each * (double) (last - first)))
#endif
    for (size_t w = 0; w < WORKERS; w++)
      for (size_t c = first + w; c < last; c += WORKERS)
        forms[c] = product_form(s.left, s.rows, s.right, s.columns, n,
                                permutations->order + c * n, s.products + w * size);
    if (poll) poll();
  }
}

void km_permuted_sums(const double *a, const double *b, const km_permutations *permutations,
                      double *sums) {
  const size_t n = permutations->n, count = permutations->count;
  const gather inner = best_gather();
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(a, b, permutations, sums) \
    firstprivate(n, count, inner) schedule(dynamic, 16) \
    num_threads(km_threads((double) (n * count)))
#endif
  for (size_t c = 0; c < count; c++) sums[c] = inner(a, b, permutations->order + c * n, n, a);
}

/* Sum over j < m of the product of first_j and row `at` of the other matrices, permuted. order: n
   for each of them. */
static double tensor_row(gather inner, size_t variables, const double *first,
                         const double *const *k, size_t n, const int *order, size_t at, size_t m) {
  double held[CHUNK], sum = 0;
  for (size_t start = 0; start < m; start += CHUNK) {
    const size_t some = smaller(CHUNK, m - start);
    memcpy(held, first + start, some * sizeof *held);
    for (size_t l = 1; l < variables; l++) {
      const int *map = order + (l - 1) * n;
      const double *row = k[l] + (size_t) map[at] * n;
      if (l + 1 == variables)
        sum += inner(held, row, map + start, some, held);
      else
        for (size_t j = 0; j < some; j++) held[j] *= row[map[start + j]];
    }
  }
  return sum;
}

/* Rows from .. to-1, each with what is left of the diagonal counted twice. */
static double tensor_rows(gather inner, size_t variables, const double *const *k, size_t n,
                          const int *order, size_t from, size_t to) {
  double sum = 0;
  for (size_t i = from; i < to; i++) {
    double own = k[0][i + i * n];
    for (size_t l = 1; l < variables; l++) {
      const size_t at = (size_t) order[i + (l - 1) * n];
      own *= k[l][at + at * n];
    }
    sum += own + 2 * tensor_row(inner, variables, k[0] + i * n, k, n, order, i, i);
  }
  return sum;
}

static double tensor_sum(size_t variables, const double *const *rows, size_t n, const int *order) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    double value = rows[0][i];
    for (size_t l = 1; l < variables; l++) value *= rows[l][order[i + (l - 1) * n]];
    sum += value;
  }
  return sum;
}

size_t km_permuted_tensor_work(size_t count) { return SLOTS * count; }

void km_permuted_tensor(size_t variables, const double *const *k, const double *const *rows,
                        const km_permutations *permutations, double *forms, double *sums,
                        double *work, km_poll poll) {
  const size_t n = permutations->n, moved = variables - 1, count = permutations->count / moved;
  const size_t tasks = count * SLOTS, step = rows_at_once(n);
  const gather inner = best_gather();
  memset(work, 0, km_permuted_tensor_work(count) * sizeof *work);
  for (size_t first = 0; first < n; first += step) {
    const size_t some = smaller(step, n - first);
#ifdef _OPENMP
#pragma omp parallel for default(none) schedule(dynamic) \
    shared(first, variables, k, permutations, work) \
    firstprivate(n, moved, count, tasks, some, inner) \
    num_threads(km_threads((double) (some * n * count)))
#endif
    for (size_t task = 0; task < tasks; task++) {
      const size_t slot = task / count, c = task % count;
      work[task] += tensor_rows(inner, variables, k, n, permutations->order + c * moved * n,
                                first + some * slot / SLOTS, first + some * (slot + 1) / SLOTS);
    }
    if (poll) poll();
  }
  for (size_t c = 0; c < count; c++)
    sums[c] = tensor_sum(variables, rows, n, permutations->order + c * moved * n);
  add_slots(work, count, forms);
}
