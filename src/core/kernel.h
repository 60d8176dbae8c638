#ifndef KM_KERNEL_H
#define KM_KERNEL_H

#include "core/public.h"

/* Facts of kernels. */

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

#endif
