#include "core/left_out.h"
#include "core/cholesky.h"
#include "core/dense.h"
#include "core/scratch.h"

#include <math.h>
#include <string.h>

/*
 * Without the k rows z of a unit, with weights w, the normal matrix N = Z'WZ + penalty loses z'wz,
 * and by Woodbury residuals e become (I - z N^{-1} z'w)^{-1} e. With the h rows b of the functional
 * its mean loses l = sum share_j b_j; alpha becomes (I - z N^{-1} z'w)^{-1} (alpha - z N^{-1} l).
 * With the new alpha and e, the functional of alpha changes by b N^{-1} (z'w alpha - l), that of
 * the regression by -b N^{-1} z'w e. The matrix is solved as I - S N^{-1} S', S = w^{1/2} z.
 *
 * Units of few rows: the forms z_i N^{-1} z_j, b_j N^{-1} z_i and b_j N^{-1} l of many units and of
 * all penalties are one product, of products of entries with the diagonals of N^{-1}. The rest is
 * arithmetic of k x k matrices. Larger units: products and a Cholesky factor for each penalty, of
 * I - S N^{-1} S' or, if k > r, of I - N^{-1/2} S'S N^{-1/2}. Some (k + h)^2 r flops a unit and
 * penalty. Scratch: TOGETHER (r + ridges) doubles, for large units (k + h + r) (r + ridges).
 */

enum {
  FEW = 16,       /* rows of a small unit */
  FORMS = 512,    /* most forms of one */
  TOGETHER = 1024 /* forms in one product */
};

/* Pivots are at most 1; below this one the others say nothing. */
static const double least_pivot = 1e-10;

typedef struct {
  size_t forms; /* most in one product */
  double *entries, *values;
  size_t side;                /* of the largest matrix of a large unit */
  double *lost;               /* r */
  double *by_penalty[2];      /* r x ridges */
  double *s, *scaled;         /* k x r */
  double *square;             /* r x r, if k > r */
  double *matrix, *factor;    /* side x side */
  double *right, *turned;     /* k x 2, r x 2 */
  double *own;                /* of the products */
} room;

static size_t rows_of(const km_ridge *ridge, size_t unit) {
  return km_run_size(&ridge->rows, unit);
}

static size_t functional_rows_of(const km_ridge *ridge, size_t unit) {
  return km_run_size(&ridge->functional, unit);
}

static size_t count_forms(const km_ridge *ridge, size_t unit) {
  const size_t k = rows_of(ridge, unit), h = functional_rows_of(ridge, unit);
  return k * (k + 1) / 2 + h * k + h;
}

static int is_small(const km_ridge *ridge, size_t unit) {
  return rows_of(ridge, unit) <= FEW && count_forms(ridge, unit) <= FORMS;
}

static size_t lay_out(room *s, const km_ridge *ridge, double *work) {
  km_scratch scratch = {work, 0};
  const size_t r = ridge->r, ridges = ridge->ridges;
  size_t forms = 0, most = 0, more = 0, side = 0, wide = 0;
  for (size_t u = 0; u < ridge->rows.count; u++) {
    const size_t k = rows_of(ridge, u);
    if (is_small(ridge, u)) {
      forms = smaller(TOGETHER, forms + count_forms(ridge, u));
    } else {
      most = larger(most, k);
      more = larger(more, functional_rows_of(ridge, u));
      side = larger(side, smaller(k, r));
      if (k > r) wide = r;
    }
  }
  const int large = most > 0 || more > 0;
  s->forms = forms;
  s->side = side;
  s->entries = take_aligned(&scratch, forms * r);
  s->values = take_aligned(&scratch, forms * ridges);
  s->lost = take(&scratch, large ? r : 0);
  s->by_penalty[0] = take(&scratch, large ? r * ridges : 0);
  s->by_penalty[1] = take(&scratch, large ? r * ridges : 0);
  s->s = take(&scratch, most * r);
  s->scaled = take(&scratch, most * r);
  s->square = take(&scratch, wide * wide);
  s->matrix = take(&scratch, side * side);
  s->factor = take(&scratch, side * side);
  s->right = take(&scratch, 2 * most);
  s->turned = take(&scratch, large ? 2 * r : 0);
  size_t own = km_product_work(forms, ridges, r);
  if (large) {
    own = larger(own, km_product_work(larger(most, more), larger(ridges, 2), r));
    own = larger(own, km_product_work(r, 2, most));
    own = larger(own, km_product_work(side, side, larger(r, most)));
    own = larger(own, larger(km_factor_work(side), km_triangle_solve_work(side, 2)));
  }
  s->own = take_aligned(&scratch, own);
  return scratch.used;
}

size_t km_left_out_work(const km_ridge *ridge) {
  room s;
  return lay_out(&s, ridge, NULL);
}

/* The lower factor of a k x k matrix, of which the lower half is read, with one over its pivots on
   the diagonal, and 0 there for those that are rounding. */
static void factor_plainly(size_t k, double *m) {
  for (size_t j = 0; j < k; j++) {
    for (size_t c = 0; c < j; c++) {
      const double f = m[j + c * k];
      for (size_t i = j; i < k; i++) m[i + j * k] -= f * m[i + c * k];
    }
    const double pivot = m[j + j * k], inverse = pivot > least_pivot ? 1 / sqrt(pivot) : 0;
    m[j + j * k] = inverse;
    for (size_t i = j + 1; i < k; i++) m[i + j * k] *= inverse;
  }
}

static void solve_plainly(size_t k, const double *l, double *x) {
  for (size_t j = 0; j < k; j++) {
    x[j] *= l[j + j * k];
    for (size_t i = j + 1; i < k; i++) x[i] -= x[j] * l[i + j * k];
  }
  for (size_t j = k; j-- > 0;) {
    for (size_t i = j + 1; i < k; i++) x[j] -= x[i] * l[i + j * k];
    x[j] *= l[j + j * k];
  }
}

/* --- Small units -------------------------------------------------------------- */

/* Products of the a-th entries of the rows of a unit: z_i z_j for j <= i, b_j z_i, b_j l. */
static double *multiply_entries(const km_ridge *ridge, size_t unit, size_t a, double *to) {
  const size_t k = rows_of(ridge, unit), h = functional_rows_of(ridge, unit);
  const size_t from = km_run_start(&ridge->functional, unit);
  const double *z = ridge->z + km_run_start(&ridge->rows, unit) + a * ridge->n;
  const double *b = ridge->b + from + a * ridge->more, *share = ridge->functional.weights + from;
  double lost = 0;
  for (size_t i = 0; i < k; i++)
    for (size_t j = 0; j <= i; j++) *to++ = z[i] * z[j];
  for (size_t j = 0; j < h; j++) {
    lost += share[j] * b[j];
    for (size_t i = 0; i < k; i++) *to++ = b[j] * z[i];
  }
  for (size_t j = 0; j < h; j++) *to++ = b[j] * lost;
  return to;
}

/* The values of a unit for one penalty, whose forms start at `form`. */
static void leave_small(const km_ridge *ridge, size_t unit, size_t penalty, const double *form,
                        const km_ridge_values *values) {
  const size_t k = rows_of(ridge, unit), h = functional_rows_of(ridge, unit);
  const size_t first = km_run_start(&ridge->rows, unit);
  const size_t from = km_run_start(&ridge->functional, unit);
  const double *weights = ridge->rows.weights + first, *share = ridge->functional.weights + from;
  const double *across = form + k * (k + 1) / 2, *along = across + h * k;
  double *alpha = values->alpha + first + penalty * ridge->n;
  double *residuals = values->residuals + first + penalty * ridge->n;
  double *of_alpha = values->of_alpha + from + penalty * ridge->more;
  double *of_regression = values->of_regression + from + penalty * ridge->more;
  double matrix[FEW * FEW], root[FEW], x[FEW], y[FEW];
  for (size_t i = 0; i < k; i++) {
    root[i] = sqrt(weights[i]);
    for (size_t j = 0; j <= i; j++) matrix[i + j * k] = (i == j) - root[i] * root[j] * *form++;
    double lost = 0;
    for (size_t j = 0; j < h; j++) lost += share[j] * across[i + j * k];
    x[i] = root[i] * (alpha[i] - lost);
    y[i] = root[i] * residuals[i];
  }
  factor_plainly(k, matrix);
  solve_plainly(k, matrix, x);
  solve_plainly(k, matrix, y);
  for (size_t j = 0; j < h; j++) {
    double more = -along[j], less = 0;
    for (size_t i = 0; i < k; i++) {
      more += root[i] * x[i] * across[i + j * k];
      less += root[i] * y[i] * across[i + j * k];
    }
    of_alpha[j] += more;
    of_regression[j] -= less;
  }
  for (size_t i = 0; i < k; i++) {
    alpha[i] = x[i] / root[i];
    residuals[i] = y[i] / root[i];
  }
}

/* Small units from *unit on, as many as fit in one product or up to a large one; *unit is the next
   one then. */
static void leave_some(const km_ridge *ridge, const room *s, size_t *unit,
                       const km_ridge_values *values, km_poll poll) {
  const size_t start = *unit, r = ridge->r, ridges = ridge->ridges;
  size_t end = start, forms = 0;
  double work = 0;
  while (end < ridge->rows.count && is_small(ridge, end) &&
         forms + count_forms(ridge, end) <= s->forms) {
    forms += count_forms(ridge, end);
    work += (double) rows_of(ridge, end) * (double) rows_of(ridge, end);
    end++;
  }
  *unit = end;
  if (forms == 0) return;
  double *entries = s->entries;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(ridge, entries) firstprivate(start, end, forms, r) \
    schedule(static) num_threads(km_threads((double) forms * (double) r))
#endif
  for (size_t a = 0; a < r; a++) {
    double *to = entries + a * forms;
    for (size_t u = start; u < end; u++) to = multiply_entries(ridge, u, a, to);
  }
  const km_product product = {.m = forms,
                              .n = ridges,
                              .depth = r,
                              .times = 1,
                              .a = {entries, 1, forms},
                              .b = {ridge->inverse, 1, r},
                              .c = s->values,
                              .ldc = forms,
                              .fresh = 1};
  km_multiply_add(&product, s->own, poll);
  const double *form = s->values;
#ifdef _OPENMP
#pragma omp parallel for default(none) shared(ridge, values, form) \
    firstprivate(start, end, forms, ridges) schedule(static) \
    num_threads(km_threads((double) ridges * (4 * (double) forms + FEW * work)))
#endif
  for (size_t l = 0; l < ridges; l++) {
    const double *at = form + l * forms;
    for (size_t u = start; u < end; u++) {
      leave_small(ridge, u, l, at, values);
      at += count_forms(ridge, u);
    }
  }
}

/* --- Large units -------------------------------------------------------------- */

/* C <- C + times AB, or C <- times AB if fresh. */
static void add_product(const room *s, size_t m, size_t n, size_t depth, double times, factor a,
                        factor b, double *c, size_t ldc, int fresh, int lower, km_poll poll) {
  const km_product product = {.m = m,
                              .n = n,
                              .depth = depth,
                              .times = times,
                              .a = a,
                              .b = b,
                              .c = c,
                              .ldc = ldc,
                              .fresh = fresh,
                              .lower = lower};
  if (m > 0 && n > 0) km_multiply_add(&product, s->own, poll);
}

/* x <- matrix^{-1} x, x: side x 2. */
static void solve_two(const room *s, size_t side, double *x, km_poll poll) {
  int info, sound = km_factor(side, s->matrix, 0, s->factor, s->own, &info, poll) == KM_OK;
  for (size_t j = 0; j < side && sound; j++) {
    const double pivot = s->factor[j + j * side];
    sound = pivot * pivot > least_pivot;
  }
  if (sound) {
    km_triangle_solve(side, 2, s->factor, side, 0, x, side, s->own, poll);
    km_triangle_solve(side, 2, s->factor, side, 1, x, side, s->own, poll);
  } else {
    factor_plainly(side, s->matrix);
    solve_plainly(side, s->matrix, x);
    solve_plainly(side, s->matrix, x + side);
  }
}

/* s->right <- (I - S N^{-1} S')^{-1} s->right for one penalty, by the smaller side. */
static void solve_large(const room *s, size_t k, size_t r, const double *inverse, km_poll poll) {
  if (k <= r) {
    for (size_t a = 0; a < r; a++) {
      const double root = sqrt(inverse[a]);
      for (size_t i = 0; i < k; i++) s->scaled[i + a * k] = root * s->s[i + a * k];
    }
    memset(s->matrix, 0, k * k * sizeof *s->matrix);
    for (size_t i = 0; i < k; i++) s->matrix[i + i * k] = 1;
    add_product(s, k, k, r, -1, (factor){s->scaled, 1, k}, (factor){s->scaled, k, 1}, s->matrix, k,
                0, 1, poll);
    solve_two(s, k, s->right, poll);
    return;
  }
  add_product(s, r, 2, k, 1, (factor){s->s, k, 1}, (factor){s->right, 1, k}, s->turned, r, 1, 0,
              poll);
  for (size_t a = 0; a < r; a++) {
    const double root = sqrt(inverse[a]);
    for (size_t c = a; c < r; c++)
      s->matrix[c + a * r] = (a == c) - root * sqrt(inverse[c]) * s->square[c + a * r];
    s->turned[a] *= root;
    s->turned[a + r] *= root;
  }
  solve_two(s, r, s->turned, poll);
  for (size_t a = 0; a < r; a++) {
    s->turned[a] *= sqrt(inverse[a]);
    s->turned[a + r] *= sqrt(inverse[a]);
  }
  add_product(s, k, 2, r, 1, (factor){s->s, 1, k}, (factor){s->turned, 1, r}, s->right, k, 0, 0,
              poll);
}

/* to <- inverse times x, a column for each penalty. */
static void scale_by_penalty(const km_ridge *ridge, const double *x, double *to) {
  for (size_t l = 0; l < ridge->ridges; l++)
    for (size_t a = 0; a < ridge->r; a++)
      to[a + l * ridge->r] = ridge->inverse[a + l * ridge->r] * x[a];
}

static void leave_large(const km_ridge *ridge, const room *s, size_t unit,
                        const km_ridge_values *values, km_poll poll) {
  const size_t n = ridge->n, more = ridge->more, r = ridge->r, ridges = ridge->ridges;
  const size_t k = rows_of(ridge, unit), h = functional_rows_of(ridge, unit);
  const size_t first = km_run_start(&ridge->rows, unit);
  const size_t from = km_run_start(&ridge->functional, unit);
  const double *weights = ridge->rows.weights + first, *share = ridge->functional.weights + from;
  const factor z = {ridge->z + first, 1, n}, b = {ridge->b + from, 1, more};
  double *alpha = values->alpha + first, *residuals = values->residuals + first;
  for (size_t a = 0; a < r; a++) {
    s->lost[a] = 0;
    for (size_t j = 0; j < h; j++) s->lost[a] += share[j] * b.at[j + a * more];
    for (size_t i = 0; i < k; i++) s->s[i + a * k] = sqrt(weights[i]) * z.at[i + a * n];
  }
  scale_by_penalty(ridge, s->lost, s->by_penalty[0]);
  const factor lost = {s->by_penalty[0], 1, r};
  add_product(s, k, ridges, r, -1, z, lost, alpha, n, 0, 0, poll);
  add_product(s, h, ridges, r, -1, b, lost, values->of_alpha + from, more, 0, 0, poll);
  if (k > r)
    add_product(s, r, r, k, 1, (factor){s->s, k, 1}, (factor){s->s, 1, k}, s->square, r, 1, 1,
                poll);
  for (size_t l = 0; l < ridges && k > 0; l++) {
    const double *inverse = ridge->inverse + l * r;
    for (size_t i = 0; i < k; i++) {
      s->right[i] = sqrt(weights[i]) * alpha[i + l * n];
      s->right[i + k] = sqrt(weights[i]) * residuals[i + l * n];
    }
    solve_large(s, k, r, inverse, poll);
    for (size_t i = 0; i < k; i++) {
      alpha[i + l * n] = s->right[i] / sqrt(weights[i]);
      residuals[i + l * n] = s->right[i + k] / sqrt(weights[i]);
    }
    add_product(s, r, 2, k, 1, (factor){s->s, k, 1}, (factor){s->right, 1, k}, s->turned, r, 1, 0,
                poll);
    for (size_t a = 0; a < r; a++) {
      s->by_penalty[0][a + l * r] = inverse[a] * s->turned[a];
      s->by_penalty[1][a + l * r] = inverse[a] * s->turned[a + r];
    }
  }
  if (k == 0) return;
  add_product(s, h, ridges, r, 1, b, (factor){s->by_penalty[0], 1, r}, values->of_alpha + from,
              more, 0, 0, poll);
  add_product(s, h, ridges, r, -1, b, (factor){s->by_penalty[1], 1, r},
              values->of_regression + from, more, 0, 0, poll);
}

void km_left_out(const km_ridge *ridge, const km_ridge_values *values, double *work,
                 km_poll poll) {
  room s;
  lay_out(&s, ridge, work);
  for (size_t unit = 0; unit < ridge->rows.count;) {
    if (poll) poll();
    if (is_small(ridge, unit))
      leave_some(ridge, &s, &unit, values, poll);
    else
      leave_large(ridge, &s, unit++, values, poll);
  }
}
