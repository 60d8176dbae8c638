#include "core/arithmetic.h"
#include "core/minimize.h"
#include "core/mixture.h"
#include "core/order.h"
#include "core/permute.h"
#include "core/products.h"
#include "core/rows.h"
#include "core/sequence.h"
#include "core/tall.h"
#include "driver.h"

#include <math.h>

/* Loops over arrays, and permutations. */

static void products(void) {
  enum { DEPTH = 10, ROWS = 16, N = 300 };
  double *a = inputs(1, DEPTH * ROWS), *v = inputs(2, DEPTH * KM_BAND);
  double *out = inputs(3, ROWS * KM_BAND), *x = inputs(4, N), *y = inputs(5, N);
  km_multiply(ROWS, KM_BAND, DEPTH, (factor){a, ROWS, 1}, v, KM_BAND, out, KM_BAND);
  put("multiply", out, ROWS * KM_BAND);
  put_number("total", km_total(N, x));
  put_number("dot", dot(N, x, y));
  subtract(N, 0.3, x, y);
  put("subtract", y, N);
}

static void tall(void) {
  enum { ROWS = 5 * KM_TALL_ROWS, K = 8 };
  double *q = inputs(6, ROWS * K), *w = inputs(7, ROWS * KM_BLOCK), *c = room(K * KM_BLOCK);
  km_tall_inner(ROWS, K, q, w, c, room(km_tall_work(ROWS, K)));
  put("tall_inner", c, K * KM_BLOCK);
  km_tall_add(ROWS, K, q, c, -0.01, w);
  put("tall_add", w, ROWS * KM_BLOCK);
}

/* 107 rows from the fourth on: vectors and what is left over. */
static void rows(void) {
  enum { N = 111, D = 5, COUNT = 107 };
  const km_row_loops loops = km_rows();
  double *x = inputs(8, N * D), *y = inputs(9, D), *a = inputs(10, D), *b = inputs(11, D);
  double *first = room(COUNT), *second = room(COUNT);
  loops.inner(COUNT, N, D, x + 4, y, 0.25, first);
  put("inner", first, COUNT);
  loops.distances(COUNT, N, D, x + 4, y, first);
  put("distances", first, COUNT);
  loops.squares(COUNT, N, D, x + 4, y, a, b, first, second);
  put("squares", first, COUNT);
  put("others", second, COUNT);
}

static void exponentials(void) {
  enum { N = 203 };
  double *x = inputs(12, N), *e = room(N);
  for (size_t i = 0; i < N; i++) x[i] = -40 * x[i] * x[i];
  x[N - 1] = -0.0;
  x[N - 2] = -708.3;
  x[N - 3] = -709;
  km_simd()->exp_all(x, N, e);
  put("exp", e, N);
}

static void mixtures(void) {
  enum { N = 300, M = 3, D = 2 };
  const double weights[] = {0.5, 0, 0.5}, variances[] = {0.5, 1, 2};
  const km_mixture mixture = {M, D, weights, inputs(13, M * D), variances};
  double *density = room(N);
  km_log_density(&mixture, inputs(14, N * D), N, density, room(km_log_density_work(&mixture, N)));
  put("log_density", density, N);
}

static void permutations(void) {
  enum { N = 40, COUNT = 3 };
  int *codes = int_room(N), *drawn = int_room(N * COUNT);
  int *order = int_room(N * COUNT), *inverse = int_room(N * COUNT);
  for (int i = 0; i < N; i++) codes[i] = 1 + i % 3;
  must(km_codes_within(codes, N, 1, 3) && !km_codes_within(codes, N, 1, 2), "codes within");
  set_draws(15);
  const km_blocks all = km_find_blocks(NULL, N, 0, int_room(km_blocks_iwork(N)));
  km_draw_permutation(&all, draw, order);
  put_ints("permutation", order, N);
  for (size_t first = 16; first < N; first += 8) {
    const km_blocks two = km_find_blocks(codes, N, first, int_room(km_blocks_iwork(N)));
    km_draw_permutation(&two, draw, order);
    put_ints("two_groups", order, N);
  }
  const km_blocks blocks = km_find_blocks(codes, N, 0, int_room(km_blocks_iwork(N)));
  km_draw_permutations(&blocks, COUNT, draw, drawn, poll);
  put_ints("permutations", drawn, N * COUNT);
  km_invert(drawn, N, COUNT, order, inverse);
  put_ints("order", order, N * COUNT);
  put_ints("inverse", inverse, N * COUNT);
}

static void sequence(void) {
  uint64_t state = 1;
  for (int i = 0; i < 3; i++) {
    const uint64_t number = next_number(&state);
    put_number("sequence", (double) (number >> 32));
    put_number("sequence", (double) (number & 0xffffffffu));
  }
}

/* Some are equal. */
static void orders(void) {
  enum { N = 101, APART = 2, CODES = 4 };
  double *keys = inputs(78, N * APART);
  int *codes = int_room(N), *order = int_room(N), *ends = int_room(CODES);
  for (size_t i = 0; i < N; i++) {
    keys[i * APART] = floor(16 * keys[i * APART]);
    codes[i] = 1 + (int) (i * i % 3);
  }
  km_order(N, keys, APART, order);
  put_ints("sorted_keys", order, N);
  km_order_codes(N, codes, CODES, order, ends);
  put_ints("sorted_codes", order, N);
  put_ints("code_ends", ends, CODES);
  put_number("least", km_least(N, inputs(79, N)));
  put_number("of_rank", km_select(N, inputs(79, N), 7));
  put_number("middle", km_middle(N, inputs(79, N)));
  put_number("middle_even", km_middle(N - 1, inputs(79, N)));
}

static double falls_and_rises(double at, const void *slope) {
  return exp(at) - *(const double *) slope * at;
}

static void minimum(void) {
  const double slope = 2;
  const km_minimum found = km_minimize(falls_and_rises, &slope, -1, 5, 1e-6);
  put_number("minimum_at", found.at);
  put_number("minimum", found.value);
}

void run_basics(void) {
  products();
  tall();
  rows();
  exponentials();
  mixtures();
  permutations();
  sequence();
  orders();
  minimum();
}
