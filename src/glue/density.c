#include "apps/density.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* Mixtures: shares: m; means: m x d; variances: m. */

static km_mixture unpack_mixture(SEXP shares, SEXP means, SEXP variances) {
  if (TYPEOF(means) != REALSXP || !Rf_isMatrix(means))
    Rf_error("internal error: 'means' is not a double matrix");
  const int m = Rf_nrows(means);
  return (km_mixture){.m = (size_t) m,
                      .d = (size_t) Rf_ncols(means),
                      .weights = glue_doubles(shares, m, "shares"),
                      .means = REAL_RO(means),
                      .variances = glue_doubles(variances, m, "variances")};
}

static km_estimate unpack_estimate(const km_source *source, SEXP weights, SEXP noise, SEXP pairs) {
  return (km_estimate){.source = source,
                       .weights = glue_doubles(weights, (R_xlen_t) source->n, "weights"),
                       .noise = glue_doubles(noise, (R_xlen_t) source->d, "noise"),
                       .terms = Rf_asLogical(pairs) ? KM_ALL_TERMS : KM_CROSS_TERMS};
}

/* list(objective, g, gram, to_weights, to_means, to_variances). weights: n; noise: d; pairs: FALSE
   leaves out what does not depend on the estimate (then gram is NULL). */
SEXP r_match(SEXP source, SEXP weights, SEXP noise, SEXP pairs, SEXP shares, SEXP means,
             SEXP variances) {
  const char *names[] = {"objective", "g", "gram", "to_weights", "to_means", "to_variances", ""};
  const km_mixture mixture = unpack_mixture(shares, means, variances);
  const size_t m = mixture.m, d = mixture.d;
  const km_source from = glue_points(source);
  if (from.d != mixture.d) Rf_error("internal error: 'means' does not have the columns of 'x'");
  const km_estimate estimate = unpack_estimate(&from, weights, noise, pairs);
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SEXP g = Rf_allocVector(REALSXP, (R_xlen_t) m);
  SET_VECTOR_ELT(out, 1, g);
  const int all = estimate.terms == KM_ALL_TERMS;
  SEXP gram = all ? glue_new_matrix(m, m) : R_NilValue;
  SET_VECTOR_ELT(out, 2, gram);
  SEXP to_weights = Rf_allocVector(REALSXP, (R_xlen_t) m);
  SET_VECTOR_ELT(out, 3, to_weights);
  SEXP to_means = glue_new_matrix(m, d);
  SET_VECTOR_ELT(out, 4, to_means);
  SEXP to_variances = Rf_allocVector(REALSXP, (R_xlen_t) m);
  SET_VECTOR_ELT(out, 5, to_variances);
  const km_matching found = {REAL(g), all ? REAL(gram) : NULL, REAL(to_weights), REAL(to_means),
                             REAL(to_variances)};
  double *work = glue_scratch(km_match_work(&mixture, &estimate));
  SET_VECTOR_ELT(out, 0, Rf_ScalarReal(km_match(&estimate, &mixture, &found, work)));
  UNPROTECT(1);
  return out;
}

/* c(J, its gradient). u: free parameters of m components, see apps/density.h. */
SEXP r_match_free(SEXP source, SEXP weights, SEXP noise, SEXP pairs, SEXP m, SEXP u) {
  const km_source from = glue_points(source);
  const km_estimate estimate = unpack_estimate(&from, weights, noise, pairs);
  const km_mixture shape = {.m = (size_t) Rf_asInteger(m), .d = from.d};
  const R_xlen_t size = (R_xlen_t) (shape.m * (shape.d + 2));
  const double *at = glue_doubles(u, size, "u");
  SEXP out = PROTECT(Rf_allocVector(REALSXP, 1 + size));
  double *work = glue_scratch(km_match_free_work(&shape, &estimate));
  REAL(out)[0] = km_match_free(&estimate, &shape, at, REAL(out) + 1, work);
  UNPROTECT(1);
  return out;
}

/* log of the density at the rows of x */
SEXP r_log_density(SEXP x, SEXP shares, SEXP means, SEXP variances) {
  const km_mixture mixture = unpack_mixture(shares, means, variances);
  const double *points = glue_matrix(x, "x");
  const size_t n = (size_t) Rf_nrows(x);
  if ((size_t) Rf_ncols(x) != mixture.d)
    Rf_error("internal error: 'means' does not have the columns of 'x'");
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) n));
  double *work = glue_scratch(km_log_density_work(&mixture, n));
  km_log_density(&mixture, points, n, REAL(out), work);
  UNPROTECT(1);
  return out;
}
