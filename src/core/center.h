#ifndef KM_CENTER_H
#define KM_CENTER_H

#include "core/tile.h"

/* The Gram matrix of features less a mean mu. */

/* K^c_ij = K_ij - m_i - m_j + |mu|^2 with m_i = mu(x_i). */
typedef struct {
  const double *at; /* n: m */
  double norm2;     /* |mu|^2 */
} km_centering;

/* That by the mean of all n features: at (n) becomes the row means of k (n x n, symmetric). */
km_centering km_row_means(size_t n, const double *k, double *at);

/* out = K^c, of exactly equal halves as k. k, out: n x n; out may be k. */
void km_center(size_t n, const double *k, km_centering mean, double *out);

/* |K^c|_F^2 of a symmetric source, by one walk. */
size_t km_centered_square_work(const km_source *source);
double km_centered_square(const km_source *source, km_centering mean, double *work, km_poll poll);

#endif
