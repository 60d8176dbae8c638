#ifndef KERNMEAN_H
#define KERNMEAN_H

/*
 * The numerical core of kernmean for other packages, and with KM_NO_R for programs without R. See
 * vignette("developing", package = "kernmean").
 *
 * Matrices are column-major, counts are size_t, points are numbered from 0. Nothing is allocated:
 * km_x_work() says how many doubles km_x() needs as `work`. `poll` is called from time to time,
 * outside parallel regions, and need not return; it may be NULL. All routines use threads of their
 * own and are to be called from one thread at a time, in R from its main thread.
 */

#include <stddef.h>
#include <stdint.h>

#if !defined(KM_NO_R) && !defined(KM_CORE)
#include <R_ext/Error.h>
#include <R_ext/Rdynload.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: raised when a type or a routine is another one or is gone, not
   when there are more routines or families (of one that it does not have a library makes wrong
   values: ask for the version of the package). */
#define KERNMEAN_ABI 1

/* What a routine that can fail returns. */
typedef enum {
  KM_OK,
  KM_NOT_POSITIVE,  /* a matrix that must be positive definite is not */
  KM_NO_CONVERGENCE /* an eigenvalue iteration did not converge */
} km_status;

/* Kernels as functions of a squared distance, an L1 distance or an inner product of two points, and
   sums of products of them. */
typedef enum {
  KM_RBF,        /* exp(-s/2),                       s = |u|^2, u = x - y */
  KM_LAPLACE_L1, /* exp(-a),                         a = sum |u_l| */
  KM_LAPLACE_L2, /* exp(-r), r = |u|; also Matern with nu = 1/2 */
  KM_MATERN32,   /* (1 + sqrt(3) r) exp(-sqrt(3) r) */
  KM_MATERN52,   /* (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r) */
  KM_POLY,       /* (x'y + offset)^degree; linear is degree 1, offset 0 */
  KM_ENERGY,     /* -r */
  KM_SQDIST,     /* s itself */
  KM_L1DIST,     /* a itself */
  KM_SUM         /* sum_t c_t prod_p k_p of the others, see km_part */
} km_family;

typedef struct km_part km_part;

typedef struct {
  km_family family;
  int degree;           /* KM_POLY only, at least 1 */
  double offset;        /* KM_POLY only */
  const km_part *parts; /* KM_SUM only: the products, one after the other */
  size_t count;         /* of the parts */
} km_kernel;

/* A part of a sum of products: a kernel of one family on d features from number `first` on. */
struct km_part {
  km_kernel kernel;
  size_t first, d;
  double times; /* c_t > 0 of the product that begins here; 0: the part goes on with one */
};

/*
 * Where the values of a Gram matrix come from: a kernel and two sets of points, which are centered
 * and scaled first. y = NULL (then m = n) is the symmetric matrix of x alone. Or a symmetric matrix
 * k in place of points (x = y = NULL, m = n, d = 0); then the kernel is not looked at.
 */
typedef struct {
  km_kernel kernel;
  const double *center; /* d: subtracted from every point */
  const double *scale;  /* d: then each coordinate is multiplied by this (1 / bandwidth) */
  const double *x;      /* n x d, column-major */
  size_t n;
  const double *y; /* m x d, column-major, or NULL */
  size_t m;
  size_t d;
  const double *k; /* n x n, or NULL */
} km_source;

/* Called from time to time, outside parallel regions; may not return (interrupt). */
typedef void (*km_poll)(void);

/*
 * Permutations of n points as statistics take them: order[i + c * n] is the place (from 0) to which
 * permutation c maps i, inverse the other way round; inverse may be NULL.
 */
typedef struct {
  size_t n, count;
  const int *order, *inverse;
} km_permutations;

/* Subsets of points are words of bits: subset c of `count` holds point i if bit i % 64 of
   subsets[i / 64 * count + c] is set. Puts a point into one. */
static inline void km_subset_add(uint64_t *subsets, size_t count, size_t c, size_t point) {
  subsets[point / 64 * count + c] |= (uint64_t) 1 << point % 64;
}

/*
 * KM_FUNCTION(type, name, parameters, arguments) declares a routine: as it is linked, or as a
 * function that asks R for it when first called. KM_PROCEDURE: of one that returns nothing.
 */
#if defined(KM_NO_R) || defined(KM_CORE)
#define KM_FUNCTION(type, name, parameters, arguments) type name parameters;
#define KM_PROCEDURE(name, parameters, arguments) void name parameters;

/* Before anything else, where R has not loaded the package: the limit on threads and the best
   instructions. */
void km_start(void);

/* How many threads there may be, and its setter: 0 for the default. */
int km_thread_limit(void);
void km_set_thread_limit(int limit);
#else
#define KM_ASK(type, name, parameters)   \
  static type(*routine) parameters = 0; \
  if (!routine)                          \
    routine = (type(*) parameters)(void (*)(void)) R_GetCCallable("kernmean", #name);
#define KM_FUNCTION(type, name, parameters, arguments) \
  static inline type name parameters {                 \
    KM_ASK(type, name, parameters)                     \
    return routine arguments;                          \
  }
#define KM_PROCEDURE(name, parameters, arguments) \
  static inline void name parameters {            \
    KM_ASK(void, name, parameters)                \
    routine arguments;                            \
  }
#endif

/* KERNMEAN_ABI of the library. */
KM_FUNCTION(int, km_abi, (void), ())

/* --- Kernel values and folds over them -------------------------------------------- */

/* The kernel values themselves. k: n x m. */
KM_FUNCTION(size_t, km_fold_store_work, (const km_source *source), (source))
KM_PROCEDURE(km_fold_store, (const km_source *source, double *k, double *work, km_poll poll),
             (source, k, work, poll))

/* k(x_i, x_i) of a symmetric source. diagonal: n. */
KM_PROCEDURE(km_diagonal, (const km_source *source, double *diagonal), (source, diagonal))

/* Row sums. sums: n. */
KM_FUNCTION(size_t, km_fold_rows_work, (const km_source *source), (source))
KM_PROCEDURE(km_fold_rows, (const km_source *source, double *sums, double *work, km_poll poll),
             (source, sums, work, poll))

/* K V. v: m x p; out: n x p. */
KM_FUNCTION(size_t, km_fold_apply_work, (const km_source *source, size_t p), (source, p))
KM_PROCEDURE(km_fold_apply,
             (const km_source *source, const double *v, size_t p, double *out, double *work,
              km_poll poll),
             (source, v, p, out, work, poll))

/* u_c' K v_c for each column c; of a symmetric source u = v. u: n x p; v: m x p; out: p. */
KM_FUNCTION(size_t, km_fold_quad_work, (const km_source *source, size_t p), (source, p))
KM_PROCEDURE(km_fold_quad,
             (const km_source *source, const double *u, const double *v, size_t p, double *out,
              double *work, km_poll poll),
             (source, u, v, p, out, work, poll))

/* --- Statistics under many permutations ------------------------------------------- */

/* Words of `count` subsets of n points: all 0, they are empty. */
KM_FUNCTION(size_t, km_subset_words, (size_t n, size_t count), (n, count))

/* sums_ck = sum of v_ik over the points i of subset c. v: n x columns; sums: count x columns. */
KM_PROCEDURE(km_subset_sums,
             (const uint64_t *subsets, size_t n, size_t count, const double *v, size_t columns,
              double *sums),
             (subsets, n, count, v, columns, sums))

/*
 * forms_c = sum of K_ij over i, j in subset c, and moments = (sum |K_ij|, sum K_ij^2) over all i, j
 * of a symmetric source. With `rates` (else NULL, 0) the kernel must be KM_SQDIST, its values s_ij,
 * and there is a column of forms and of moments for each K_ij = exp(-rate s_ij). forms: count x
 * max(1, n_rates); moments: 2 x max(1, n_rates).
 */
KM_FUNCTION(size_t, km_subset_forms_work,
            (const km_source *source, size_t count, size_t n_rates), (source, count, n_rates))
KM_PROCEDURE(km_subset_forms,
             (const km_source *source, const uint64_t *subsets, size_t count, const double *rates,
              size_t n_rates, double *forms, double *moments, double *work, km_poll poll),
             (source, subsets, count, rates, n_rates, forms, moments, work, poll))

/* Fills order and inverse (n x count; inverse may be NULL) from permutations of 1, ..., n. */
KM_PROCEDURE(km_invert,
             (const int *permutations, size_t n, size_t count, int *order, int *inverse),
             (permutations, n, count, order, inverse))

/* forms[c] = sum_ij k_ij l_{c(i) c(j)}. k, l: n x n, symmetric, in full; inverse must be there. */
KM_FUNCTION(size_t, km_permuted_forms_work, (size_t count), (count))
KM_PROCEDURE(km_permuted_forms,
             (const double *k, const double *l, const km_permutations *permutations, double *forms,
              double *work, km_poll poll),
             (k, l, permutations, forms, work, poll))

/* --- Factors and spectra ---------------------------------------------------------- */

/*
 * Pivoted Cholesky factor of a symmetric source: the trace of K - FF' is at most `tolerance` times
 * that of K. Returns the rank, or cap + 1 where cap columns are not enough (they are there all the
 * same), or cap + 2 where K turns out not to be positive semi-definite. f stands at the start of
 * work, packed; pivots: cap, the points in their order, at which F is a lower triangle; *left: what
 * is left of the trace.
 */
KM_FUNCTION(size_t, km_lowrank_work, (const km_source *source, size_t cap), (source, cap))
KM_FUNCTION(size_t, km_lowrank,
            (const km_source *source, double tolerance, size_t cap, int *pivots, double *left,
             double *work, km_poll poll),
            (source, tolerance, cap, pivots, left, work, poll))

/* out (n x rank) = F. */
KM_PROCEDURE(km_lowrank_unpack, (size_t n, const double *f, size_t rank, double *out),
             (n, f, rank, out))

/*
 * The `count` leading eigenpairs (1 to n) of a symmetric matrix. a: n x n, both halves, destroyed;
 * values: count, decreasing; vectors: n x count, each positive at its largest entry; iwork:
 * km_eigen_iwork integers. KM_NO_CONVERGENCE: call again with the matrix and divide = 1, which
 * needs up to 2 n^2 of scratch and n <= 46338; first it is 0.
 */
KM_FUNCTION(size_t, km_eigen_work, (size_t n, size_t count, int divide), (n, count, divide))
KM_FUNCTION(size_t, km_eigen_iwork, (size_t n, int divide), (n, divide))
KM_FUNCTION(km_status, km_eigen,
            (size_t n, double *a, size_t count, double *values, double *vectors, int divide,
             double *work, int *iwork, km_poll poll),
            (n, a, count, values, vectors, divide, work, iwork, poll))

#undef KM_FUNCTION
#undef KM_PROCEDURE
#undef KM_ASK

#if !defined(KM_NO_R) && !defined(KM_CORE)
/* An R error unless the package that is loaded has the interface of this header: what a client's
   R_init_ function calls. */
static inline void km_check_abi(void) {
  if (km_abi() != KERNMEAN_ABI)
    Rf_error("kernmean has version %d of its C interface, not %d: install this package again",
             km_abi(), KERNMEAN_ABI);
}
#endif

#ifdef __cplusplus
}
#endif

#endif
