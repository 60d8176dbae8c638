#ifndef KM_KERNEL_H
#define KM_KERNEL_H

#include <stddef.h>

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

/* What R calls a family, and k(x, x) where it does not depend on x: of all but KM_POLY and
   KM_SUM. */
typedef struct {
  const char *name;
  double at_zero;
} km_family_facts;

/* The facts of a family; NULL for a number beyond the last. */
static inline const km_family_facts *km_facts(size_t family) {
  static const km_family_facts facts[] = {
      [KM_RBF] = {"rbf", 1},           [KM_LAPLACE_L1] = {"laplace_l1", 1},
      [KM_LAPLACE_L2] = {"laplace_l2", 1}, [KM_MATERN32] = {"matern32", 1},
      [KM_MATERN52] = {"matern52", 1}, [KM_POLY] = {"poly", 0},
      [KM_ENERGY] = {"energy", 0},     [KM_SQDIST] = {"sqdist", 0},
      [KM_L1DIST] = {"l1dist", 0},      [KM_SUM] = {"sum", 0}};
  return family < sizeof facts / sizeof *facts ? facts + family : NULL;
}

typedef struct km_part km_part;

typedef struct {
  km_family family;
  int degree;           /* KM_POLY only */
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

#endif
