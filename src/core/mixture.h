#ifndef KM_MIXTURE_H
#define KM_MIXTURE_H

#include <stddef.h>

/* Mixtures of isotropic normals. */

/* sum_j weights_j N(mean_j, variances_j I). means: m x d. */
typedef struct {
  size_t m, d;
  const double *weights, *means, *variances;
} km_mixture;

/* log of the density at the n rows of x (n x d). log_density: n. */
size_t km_log_density_work(const km_mixture *mixture, size_t n);
void km_log_density(const km_mixture *mixture, const double *x, size_t n, double *log_density,
                    double *work);

#endif
