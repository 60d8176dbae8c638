#include "apps/normal.h"
#include "core/parts.h"
#include "glue/entries.h"
#include "glue/glue.h"

#include <string.h>

/* 2 x draws: the means of pairs and of points of as many samples of n standard normal points in d
   columns, drawn by R's generator as rnorm(n d) does. */
SEXP r_normal_means(SEXP n, SEXP d, SEXP theta, SEXP draws) {
  const size_t rows = (size_t) Rf_asReal(n), columns = (size_t) Rf_asReal(d);
  const size_t count = (size_t) Rf_asReal(draws), lanes = KM_NORMAL_LANES;
  const double bandwidth = Rf_asReal(theta);
  SEXP out = PROTECT(glue_new_matrix(2, count));
  double *z = glue_scratch(lanes * rows * columns), *means = glue_scratch(2 * lanes);
  GetRNGstate();
  for (size_t draw = 0; draw < count; draw += lanes) {
    const size_t drawn = smaller(lanes, count - draw);
    for (size_t sample = 0; sample < drawn; sample++)
      for (size_t i = 0; i < rows * columns; i++) z[i * lanes + sample] = norm_rand();
    /* The last samples may be fewer than lanes: the first one stands for those that are not. */
    for (size_t sample = drawn; sample < lanes; sample++)
      for (size_t i = 0; i < rows * columns; i++) z[i * lanes + sample] = z[i * lanes];
    km_standardized_means(rows, columns, bandwidth, z, means);
    memcpy(REAL(out) + 2 * draw, means, 2 * drawn * sizeof *means);
    glue_poll();
  }
  PutRNGstate();
  UNPROTECT(1);
  return out;
}
