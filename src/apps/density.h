#ifndef KM_DENSITY_H
#define KM_DENSITY_H

#include "core/mixture.h"
#include "core/kernel.h"

/* The distance of mixtures of isotropic normals to a kernel mean. */

/* Which terms of J: all, or -2 pi'g alone, of one estimate of several that are added up. */
typedef enum { KM_ALL_TERMS, KM_CROSS_TERMS } km_match_terms;

/* sum_i weights_i E k(x~_i, .), x~_i from N(x_i, diag(noise)), for the points x and the kernel of a
   symmetric source: KM_RBF, or KM_POLY up to degree 3 without noise and with center 0 and scale 1.
   weights: n; noise: d. */
typedef struct {
  const km_source *source;
  const double *weights, *noise;
  km_match_terms terms;
} km_estimate;

/* Inner products of the embeddings, and derivatives of J = pi'G pi - 2 pi'g. */
typedef struct {
  double *g;            /* m: of the components and the estimate */
  double *gram;         /* m x m: of the components; KM_CROSS_TERMS: not looked at */
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

#endif
