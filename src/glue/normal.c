#include "apps/normal.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* 2 x draws: the means of pairs and of points of as many samples of n standard normal points in d
   columns, drawn by R's generator as rnorm(n d) does. */
SEXP r_normal_means(SEXP n, SEXP d, SEXP theta, SEXP draws) {
  const size_t rows = (size_t) Rf_asReal(n), columns = (size_t) Rf_asReal(d);
  const size_t count = (size_t) Rf_asReal(draws);
  const double bandwidth = Rf_asReal(theta);
  SEXP out = PROTECT(glue_new_matrix(2, count));
  double *z = glue_scratch(rows * columns), *work = glue_scratch(rows);
  GetRNGstate();
  for (size_t draw = 0; draw < count; draw++) {
    for (size_t i = 0; i < rows * columns; i++) z[i] = norm_rand();
    const km_normal_means found = km_standardized_means(z, rows, columns, bandwidth, work);
    REAL(out)[2 * draw] = found.pairs;
    REAL(out)[2 * draw + 1] = found.points;
    glue_poll();
  }
  PutRNGstate();
  UNPROTECT(1);
  return out;
}
