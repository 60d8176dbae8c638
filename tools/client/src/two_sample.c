#include <Rinternals.h>
#include <kernmean.h>

/* |mu_x - mu_y|^2 for each column of `first`: the points, from 1, that are those of x. */
static SEXP statistics(SEXP points, SEXP bandwidth, SEXP first) {
  const size_t n = (size_t) Rf_nrows(points), d = (size_t) Rf_ncols(points);
  const size_t m = (size_t) Rf_nrows(first), count = (size_t) Rf_ncols(first);
  double *center = (double *) R_alloc(2 * d, sizeof(double)), *scale = center + d;
  for (size_t l = 0; l < d; l++) center[l] = 0, scale[l] = 1 / Rf_asReal(bandwidth);
  const km_source source = {.kernel = {.family = KM_RBF}, .center = center, .scale = scale,
                            .x = REAL(points), .n = n, .m = n, .d = d};
  const size_t words = km_subset_words(n, count);
  uint64_t *subsets = (uint64_t *) R_alloc(words, sizeof *subsets);
  for (size_t i = 0; i < words; i++) subsets[i] = 0;
  for (size_t i = 0; i < m * count; i++)
    km_subset_add(subsets, count, i / m, (size_t) INTEGER(first)[i] - 1);
  double *rows = (double *) R_alloc(n + count, sizeof(double)), *sums = rows + n, all = 0;
  double *work = (double *) R_alloc(km_fold_rows_work(&source), sizeof(double));
  km_fold_rows(&source, rows, work, R_CheckUserInterrupt);
  km_subset_sums(subsets, n, count, rows, 1, sums);
  for (size_t i = 0; i < n; i++) all += rows[i];
  SEXP out = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) count));
  double *xx = REAL(out), moments[2], a = (double) m, b = (double) (n - m);
  work = (double *) R_alloc(km_subset_forms_work(&source, count, 0), sizeof(double));
  km_subset_forms(&source, subsets, count, NULL, 0, xx, moments, work, R_CheckUserInterrupt);
  for (size_t c = 0; c < count; c++) {
    const double xy = sums[c] - xx[c], yy = all - xx[c] - 2 * xy;
    xx[c] = xx[c] / (a * a) + yy / (b * b) - 2 * xy / (a * b);
  }
  UNPROTECT(1);
  return out;
}

void R_init_twosample(DllInfo *dll);

void R_init_twosample(DllInfo *dll) {
  static const R_CallMethodDef entries[] = {{"statistics", (DL_FUNC) &statistics, 3}, {0}};
  km_check_abi();
  R_registerRoutines(dll, NULL, entries, NULL, NULL);
  R_useDynamicSymbols(dll, FALSE);
}
