#ifndef KM_KERNEL_H
#define KM_KERNEL_H

#include <stddef.h>

/* Kernels as functions of a squared distance, an L1 distance or an inner product of two points. */

typedef enum {
  KM_RBF,        /* exp(-s/2),                       s = |u|^2, u = x - y */
  KM_LAPLACE_L1, /* exp(-a),                         a = sum |u_l| */
  KM_LAPLACE_L2, /* exp(-r), r = |u|; also Matern with nu = 1/2 */
  KM_MATERN32,   /* (1 + sqrt(3) r) exp(-sqrt(3) r) */
  KM_MATERN52,   /* (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r) */
  KM_POLY,       /* (x'y + offset)^degree; linear is degree 1, offset 0 */
  KM_ENERGY,     /* -r */
  KM_SQDIST,     /* s itself */
  KM_L1DIST      /* a itself */
} km_family;

typedef struct {
  km_family family;
  int degree;    /* KM_POLY only */
  double offset; /* KM_POLY only */
} km_kernel;

/* k(x, x) where it does not depend on x: of all families but KM_POLY. */
static inline double km_at_zero(km_family family) {
  switch (family) {
  case KM_RBF:
  case KM_LAPLACE_L1:
  case KM_LAPLACE_L2:
  case KM_MATERN32:
  case KM_MATERN52: return 1;
  case KM_POLY:
  case KM_ENERGY:
  case KM_SQDIST:
  case KM_L1DIST: break;
  }
  return 0;
}

#endif
