#include "core/dense.h"
#include "core/parts.h"
#include "core/scratch.h"

#include <string.h>

/*
 * C += AB in blocks that stay in the second-level cache: A is packed in panels of ROWS rows, B in
 * panels of COLUMNS columns, CHUNK deep, and a block of C is summed up in a buffer before it goes
 * to its place, so that neither borders nor far-apart columns meet the inner loop. Each block is
 * taken by whoever is free; its sums run in the order of k. 2 m n depth flops; scratch: (m + n)
 * CHUNK doubles and the buffers.
 */

enum {
  ROWS = KM_BAND, /* of a patch, as km_multiply has it: three AVX-512 vectors */
  COLUMNS = 8,
  CHUNK = 384,    /* COLUMNS of it stay in the first-level cache */
  HIGH = 96,      /* rows of a block: HIGH x CHUNK of A stay in the second-level cache */
  WIDE = 192,     /* columns of a block */
  PACKED = 96,    /* rows or columns packed by a task */
  WORKERS = 32,
  WORTH = KM_DENSE_WORTH
};

typedef struct {
  const km_product *of;
  size_t high, wide; /* blocks in a column and in a row of C */
  size_t workers;
  size_t buffer;  /* size of each */
  double *a, *b;  /* panels: of m x CHUNK, of CHUNK x n */
  double *sums;   /* workers x buffer */
} plan;

static size_t lay_out(plan *s, size_t m, size_t n, size_t depth, double *work) {
  km_scratch scratch = {work, 0};
  const size_t chunk = smaller(CHUNK, depth);
  s->high = pieces(m, HIGH);
  s->wide = pieces(n, WIDE);
  s->workers = smaller(WORKERS, s->high * s->wide);
  s->buffer = round_up(smaller(m, HIGH), ROWS) * round_up(smaller(n, WIDE), COLUMNS);
  s->a = take_aligned(&scratch, round_up(m, ROWS) * chunk);
  s->b = take_aligned(&scratch, round_up(n, COLUMNS) * chunk);
  s->sums = take_aligned(&scratch, s->workers * s->buffer);
  return scratch.used;
}

size_t km_product_work(size_t m, size_t n, size_t depth) {
  plan s;
  return lay_out(&s, m, n, depth, NULL);
}

/* to[k * width + i] = times at[i * lane + k * step], zeros from i = count on. */
static void pack(size_t width, size_t count, size_t length, double times, const double *at,
                 size_t lane, size_t step, double *restrict to) {
  for (size_t k = 0; k < length; k++, at += step, to += width) {
    if (lane == 1)
      for (size_t i = 0; i < count; i++) to[i] = times * at[i];
    else
      for (size_t i = 0; i < count; i++) to[i] = times * at[i * lane];
    for (size_t i = count; i < width; i++) to[i] = 0;
  }
}

/* Up to PACKED rows of A or columns of B, k0 .. k0 + length - 1. */
static void pack_some(const plan *s, size_t k0, size_t length, size_t piece) {
  const km_product *of = s->of;
  const size_t ahead = pieces(of->m, PACKED), width = piece < ahead ? ROWS : COLUMNS;
  const size_t all = piece < ahead ? of->m : of->n;
  const size_t from = (piece < ahead ? piece : piece - ahead) * PACKED;
  const size_t to = smaller(all, from + PACKED);
  for (size_t i = from; i < to; i += width) {
    const size_t count = smaller(width, to - i);
    if (piece < ahead)
      pack(width, count, length, 1, of->a.at + i * of->a.down + k0 * of->a.across, of->a.down,
           of->a.across, s->a + i * length);
    else
      pack(width, count, length, of->times, of->b.at + i * of->b.across + k0 * of->b.down,
           of->b.across, of->b.down, s->b + i * length);
  }
}

/* Block t of C: a chunk's part of it. */
static void add_block(const plan *s, size_t k0, size_t length, size_t t, double *sums) {
  const km_product *of = s->of;
  const size_t i0 = t % s->high * HIGH, j0 = t / s->high * WIDE;
  const size_t rows = smaller(HIGH, of->m - i0), columns = smaller(WIDE, of->n - j0);
  const size_t stride = round_up(rows, ROWS);
  if (of->lower && i0 + rows <= j0) return;
  memset(sums, 0, stride * round_up(columns, COLUMNS) * sizeof *sums);
  for (size_t j = 0; j < columns; j += COLUMNS) {
    if (of->lower && i0 + rows <= j0 + j) break;
    const factor b = {s->b + (j0 + j) * length, COLUMNS, 1};
    for (size_t i = 0; i < rows; i += ROWS)
      km_multiply(COLUMNS, ROWS, length, b, s->a + (i0 + i) * length, ROWS, sums + i + j * stride,
                  stride);
  }
  for (size_t j = 0; j < columns; j++) {
    const size_t skip = of->lower && j0 + j > i0 ? smaller(rows, j0 + j - i0) : 0;
    double *c = of->c + i0 + (j0 + j) * of->ldc;
    const double *sum = sums + j * stride;
    if (of->fresh && k0 == 0) {
      memcpy(c + skip, sum + skip, (rows - skip) * sizeof *c);
    } else {
      SIMD
      for (size_t i = skip; i < rows; i++) c[i] += sum[i];
    }
  }
}

/* Worker w takes blocks until none of `next` .. last - 1 is left. */
static void work_blocks(const plan *s, size_t k0, size_t length, size_t *next, size_t last,
                        size_t worker) {
  for (;;) {
    size_t t;
#ifdef _OPENMP
#pragma omp atomic capture
#endif
    t = (*next)++;
    if (t >= last) return;
    add_block(s, k0, length, t, s->sums + worker * s->buffer);
  }
}

/* Blocks first .. last - 1 of a chunk, which is packed before the first. */
static void do_blocks(const plan *s, size_t k0, size_t first, size_t last) {
  const size_t length = smaller(CHUNK, s->of->depth - k0), workers = s->workers;
  const size_t packs = pieces(s->of->m, PACKED) + pieces(s->of->n, PACKED);
  size_t next = first;
  if (first == 0) {
#ifdef _OPENMP
#pragma omp taskloop default(none) shared(s, k0) firstprivate(length, packs)
#endif
    for (size_t piece = 0; piece < packs; piece++) pack_some(s, k0, length, piece);
  }
#ifdef _OPENMP
#pragma omp taskloop default(none) shared(s, k0, last, next) firstprivate(length, workers) \
    grainsize(1)
#endif
  for (size_t worker = 0; worker < workers; worker++)
    work_blocks(s, k0, length, &next, last, worker);
}

static void clear(const km_product *of) {
  for (size_t j = 0; j < of->n; j++)
    for (size_t i = of->lower ? j : 0; i < of->m; i++) of->c[i + j * of->ldc] = 0;
}

void km_multiply_tasks(const km_product *product, double *work) {
  plan s = {.of = product};
  lay_out(&s, product->m, product->n, product->depth, work);
  for (size_t k0 = 0; k0 < product->depth; k0 += CHUNK) do_blocks(&s, k0, 0, s.high * s.wide);
}

size_t km_multiply_add_work(const km_product *product) {
  return km_is_narrow(product) ? 0
                               : km_product_work(product->m, product->n, product->depth);
}

void km_multiply_add(const km_product *product, double *work, km_poll poll) {
  if (km_is_narrow(product)) {
    km_multiply_narrow(product, poll);
    return;
  }
  plan s = {.of = product};
  lay_out(&s, product->m, product->n, product->depth, work);
  if (product->fresh && product->depth == 0) clear(product);
  const size_t blocks = s.high * s.wide;
  const double all = km_product_flops(product);
  const int threads = km_threads(all / WORTH);
  if (threads == 1 && all <= km_dense_poll / 8) {
    km_multiply_tasks(product, work);
    return;
  }
  if (all <= km_dense_poll / 8) {
#ifdef _OPENMP
#pragma omp parallel default(none) shared(product, work) num_threads(threads)
#pragma omp master
#endif
    km_multiply_tasks(product, work);
    return;
  }
  const double chunk = all / (double) pieces(product->depth, CHUNK);
  const size_t most = 1 + (size_t) (km_dense_poll / chunk * (double) blocks);
  for (size_t k0 = 0; k0 < product->depth; k0 += CHUNK) {
    for (size_t first = 0; first < blocks; first += most) {
      const size_t last = smaller(blocks, first + most);
      if (poll) poll();
#ifdef _OPENMP
#pragma omp parallel default(none) shared(s, k0, first) firstprivate(last) num_threads(threads)
#pragma omp master
#endif
      do_blocks(&s, k0, first, last);
    }
  }
}

/* Blocks below the diagonal, transposed, in columns j0 .. */
static void mirror_columns(size_t n, double *c, size_t j0) {
  const size_t side = HIGH, j1 = smaller(n, j0 + side);
  for (size_t i0 = j0; i0 < n; i0 += side)
    for (size_t j = j0; j < j1; j++)
      for (size_t i = larger(i0, j + 1); i < smaller(n, i0 + side); i++)
        c[j + i * n] = c[i + j * n];
}

void km_mirror(size_t n, double *c) {
  const size_t side = HIGH;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(n, c) firstprivate(side) schedule(dynamic, 1) \
    num_threads(km_threads((double) n * (double) n))
#endif
  for (size_t j0 = 0; j0 < n; j0 += side) mirror_columns(n, c, j0);
}

void km_column_dots(size_t n, size_t m, const double *a, const double *b, double *out) {
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(n, m, a, b, out) schedule(dynamic, 16) \
    num_threads(km_threads((double) n * (double) m))
#endif
  for (size_t j = 0; j < m; j++) out[j] = dot(n, a + j * n, b + j * n);
}
