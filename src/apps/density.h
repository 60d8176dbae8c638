#ifndef KM_DENSITY_H
#define KM_DENSITY_H

#include "core/source.h"

#include <stddef.h>

/* Mixtures of isotropic normals: their distance to a kernel mean, and their density. */

/* sum_j weights_j N(mean_j, variances_j I). means: m x d. */
typedef struct {
  size_t m, d;
  const double *weights, *means, *variances;
} km_mixture;

/* sum_i weights_i E k(x~_i, .), x~_i from N(x_i, diag(noise)), for the points x and the kernel of a
   symmetric source: KM_RBF, or KM_POLY up to degree 3 without noise and with centre 0 and scale 1.
   weights: n; noise: d. */
typedef struct {
  const km_source *source;
  const double *weights, *noise;
} km_estimate;

/* Inner products of the embeddings, and derivatives of J = pi'G pi - 2 pi'g. */
typedef struct {
  double *g;            /* m: of the components and the estimate */
  double *gram;         /* m x m: of the components */
  double *to_weights;   /* m */
  double *to_means;     /* m x d */
  double *to_variances; /* m */
} km_matching;

/* Returns J. */
size_t km_match_work(const km_mixture *mixture, const km_estimate *estimate);
double km_match(const km_estimate *estimate, const km_mixture *mixture, const km_matching *out,
                double *work);

/* J at free parameters u: m of the weights by softmax, m x d means, m log variances; gradient as u.
   shape: for m and d only. */
size_t km_match_free_work(const km_mixture *shape, const km_estimate *estimate);
double km_match_free(const km_estimate *estimate, const km_mixture *shape, const double *u,
                     double *gradient, double *work);

/* log of the density at the n rows of x (n x d). log_density: n. */
size_t km_log_density_work(const km_mixture *mixture, size_t n);
void km_log_density(const km_mixture *mixture, const double *x, size_t n, double *log_density,
                    double *work);

#endif
