#include "core/cholesky.h"
#include "core/dense.h"
#include "core/left_out.h"
#include "driver.h"

#include <string.h>

/* Products of large matrices, Cholesky factors and what they solve, across the edges of blocks. */

/* ORDER: two blocks of columns of a product, three steps of a factor. WIDE: two blocks of the
   inverse. SIDES: two strips. */
enum { ORDER = 200, WIDE = 400, DEPTH = 40, FEW = 3, SIDES = 60, APART = 203 };

/* Every 17th number, of all rows and columns. */
static void put_some(const char *name, const double *values, size_t count) {
  for (size_t i = 0; i < count; i += 17) put_number(name, values[i]);
}

static void multiply(const km_product *product) {
  km_multiply_add(product, room(km_multiply_add_work(product)), poll);
}

/* The lower half of AA' + I, whose upper half is no number; its condition number is below 150. */
static double *positive(size_t n) {
  double *a = inputs(61, n * DEPTH), *k = room(n * n);
  const km_product square = {.m = n, .n = n, .depth = DEPTH, .times = 1, .a = {a, 1, n},
                             .b = {a, n, 1}, .c = k, .ldc = n, .fresh = 1, .lower = 1};
  multiply(&square);
  for (size_t i = 0; i < n; i++) k[i + i * n] += 1;
  return k;
}

/* C - A'B/2 of three blocks of rows, two of columns and two in depth; what lies between the columns
   of C stays. */
static void general(void) {
  enum { M = 200, N = 205, DEEP = 400, ALL = N * APART };
  double *a = inputs(62, DEEP * M), *b = inputs(63, DEEP * N);
  double *first = inputs(64, ALL), *second = inputs(64, ALL);
  km_product product = {.m = M, .n = N, .depth = DEEP, .times = -0.5, .a = {a, DEEP, 1},
                        .b = {b, 1, DEEP}, .c = first, .ldc = APART};
  multiply(&product);
  put_some("product", first, ALL);
  put_number("flops", km_product_flops(&product));
  product.c = second;
  km_multiply_tasks(&product, room(km_product_work(M, N, DEEP)));
  must(memcmp(first, second, ALL * sizeof *first) == 0, "tasks give another product");
  product.lower = 1;
  put_number("flops_lower", km_product_flops(&product));
}

/* Large enough for regions of their own, between which it polls. */
static void long_product(void) {
  enum { N = 600, DEEP = 400 };
  double *a = inputs(65, N * DEEP), *c = room(N * N);
  const km_product product = {.m = N, .n = N, .depth = DEEP, .times = 1, .a = {a, 1, N},
                              .b = {a, N, 1}, .c = c, .ldc = N, .fresh = 1};
  multiply(&product);
  put_some("long_product", c, N * N);
}

/* AB, and B'A with A as it is read by columns: inner products. */
static void narrow(void) {
  enum { M = 100, N = 7, DEEP = 150 };
  double *a = inputs(65, M * DEEP), *b = inputs(66, DEEP * N), *c = room(M * N);
  km_product product = {.m = M, .n = N, .depth = DEEP, .times = 1, .a = {a, 1, M},
                        .b = {b, 1, DEEP}, .c = c, .ldc = M, .fresh = 1};
  must(km_is_narrow(&product) && km_multiply_add_work(&product) == 0, "7 columns are not narrow");
  km_multiply_narrow(&product, poll);
  put("narrow", c, M * N);
  product = (km_product){.m = N, .n = M, .depth = DEEP, .times = 1, .a = {b, DEEP, 1},
                         .b = {a, 1, DEEP}, .c = c, .ldc = N, .fresh = 1};
  multiply(&product);
  put("narrow_dots", c, M * N);
}

static void symmetric(void) {
  double *k = positive(ORDER), *dots = room(DEPTH);
  km_mirror(ORDER, k);
  put_some("mirrored", k, ORDER * ORDER);
  km_column_dots(ORDER, DEPTH, inputs(61, ORDER * DEPTH), inputs(66, ORDER * DEPTH), dots);
  put("column_dots", dots, DEPTH);
}

/* Of a triangle of another order than its columns are apart, above which no number stands. */
static void solves(const double *l) {
  enum { N = ORDER - 3 };
  const size_t sides[] = {FEW, SIDES};
  const char *const names[2][2] = {{"solve_few", "solve_few_turned"}, {"solve", "solve_turned"}};
  for (int i = 0; i < 2; i++)
    for (int turned = 0; turned < 2; turned++) {
      double *x = inputs(67, SIDES * APART);
      km_triangle_solve(N, sides[i], l, ORDER, turned, x, APART,
                        room(km_triangle_solve_work(N, sides[i])), poll);
      put(names[i][turned], x, sides[i] * APART);
    }
}

static void factors(void) {
  double *k = positive(WIDE), *l = room(WIDE * WIDE), *inverse = room(WIDE * WIDE);
  int info = -1;
  must(km_factor(WIDE, k, 0.5, l, room(km_factor_work(WIDE)), &info, poll) == KM_OK && info == 0,
       "no Cholesky factor");
  put_some("factor", l, WIDE * WIDE);
  km_triangle_inverse(WIDE, l, inverse, room(km_triangle_inverse_work(WIDE)), poll);
  put_some("triangle_inverse", inverse, WIDE * WIDE);
  double *gram_of = room(WIDE * WIDE);
  km_triangle_gram(WIDE, inverse, gram_of, room(km_triangle_gram_work(WIDE)), poll);
  put_some("triangle_gram", gram_of, WIDE * WIDE);
  must(km_resolvent(WIDE, k, 0.25, -2, 3, gram_of, inverse, room(km_resolvent_work(WIDE)), &info,
                    poll) == KM_OK, "no inverse");
  put_some("resolvent", gram_of, WIDE * WIDE);

  double *work = room(km_factor_work(ORDER));
  k = positive(ORDER);
  must(km_factor(ORDER, k, 0.5, l, work, &info, poll) == KM_OK, "no smaller factor");
  for (size_t j = 0; j < ORDER; j++) memset(l + j * ORDER, 0xff, j * sizeof *l);
  solves(l);
  const size_t places[] = {0, 23, 96, 130, ORDER - 1};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    const size_t at = places[i] * (ORDER + 1);
    const double keep = k[at];
    k[at] = -1;
    must(km_factor(ORDER, k, 0, l, work, &info, poll) == KM_NOT_POSITIVE &&
           info == (int) places[i] + 1,
         "a factor of an indefinite matrix");
    k[at] = keep;
  }
}

enum { AXES = 6 }; /* of a ridge regression */

/* The sums of weights v z over the rows, an entry for each axis; v is 1 for NULL. */
static double *right_side(const double *z, size_t n, const double *weights, const double *v) {
  double *right = room(AXES);
  for (size_t l = 0; l < AXES; l++) {
    right[l] = 0;
    for (size_t i = 0; i < n; i++) right[l] += z[i + l * n] * weights[i] * (v ? v[i] : 1);
  }
  return right;
}

/* y (or 0) plus `times` z N^{-1} right, a column for each of the penalties. */
static double *fitted(const double *z, size_t n, const double *inverse, size_t ridges,
                      const double *right, double times, const double *y) {
  double *values = room(n * ridges);
  for (size_t c = 0; c < ridges; c++)
    for (size_t i = 0; i < n; i++) {
      double sum = 0;
      for (size_t l = 0; l < AXES; l++) sum += z[i + l * n] * inverse[l + c * AXES] * right[l];
      values[i + c * n] = (y ? y[i] : 0) + times * sum;
    }
  return values;
}

/* Units of one row, of few, of more than there are axes, of none, and one without rows of the
   functional. */
static void left_out(void) {
  enum { N = 34, MORE = 18, RIDGES = 2, UNITS = 6 };
  static const int ends[UNITS] = {1, 5, 25, 25, 31, N}, others[UNITS] = {3, 7, 12, 14, 14, MORE};
  double *z = inputs(91, N * AXES), *b = inputs(92, MORE * AXES), *y = inputs(93, N);
  double *weights = inputs(94, N), *shares = inputs(95, MORE), *inverse = room(AXES * RIDGES);
  for (size_t i = 0; i < N; i++) weights[i] = 1.5 + weights[i];
  for (size_t l = 0; l < AXES * RIDGES; l++) inverse[l] = 1 / (60 + 10 * (double) l);
  const km_ridge ridge = {.n = N, .more = MORE, .r = AXES, .ridges = RIDGES,
                          .rows = {UNITS, ends, weights}, .functional = {UNITS, others, shares},
                          .z = z, .b = b, .inverse = inverse};
  const double *right = right_side(z, N, weights, y), *target = right_side(b, MORE, shares, NULL);
  const km_ridge_values values = {
      .alpha = fitted(z, N, inverse, RIDGES, target, 1, NULL),
      .residuals = fitted(z, N, inverse, RIDGES, right, -1, y),
      .of_alpha = fitted(b, MORE, inverse, RIDGES, target, 1, NULL),
      .of_regression = fitted(b, MORE, inverse, RIDGES, right, 1, NULL)};
  km_left_out(&ridge, &values, room(km_left_out_work(&ridge)), poll);
  put("left_out_alpha", values.alpha, N * RIDGES);
  put("left_out_residuals", values.residuals, N * RIDGES);
  put("left_out_of_alpha", values.of_alpha, MORE * RIDGES);
  put("left_out_of_regression", values.of_regression, MORE * RIDGES);
}

void run_factors(void) {
  general();
  long_product();
  narrow();
  symmetric();
  factors();
  left_out();
}
