#include "core/small.h"
#include "core/profiles.h"
#include "core/subsets.h"
#include "glue/entries.h"
#include "glue/glue.h"

#include <limits.h>

/* Subsets are a raw vector of 64-bit words, see core/subsets.h. */

static const uint64_t *unpack_subsets(SEXP subsets, size_t n, size_t count) {
  const size_t bytes = km_subset_words(n, count) * sizeof(uint64_t);
  if (TYPEOF(subsets) != RAWSXP || (size_t) XLENGTH(subsets) != bytes)
    Rf_error("internal error: 'subsets' is not a raw vector of the right length");
  return (const uint64_t *) RAW_RO(subsets);
}

static km_labels unpack_labels(SEXP sizes, SEXP sets) {
  const size_t samples = (size_t) XLENGTH(sizes);
  if (TYPEOF(sets) != LGLSXP || !Rf_isMatrix(sets) || (size_t) Rf_ncols(sets) != samples)
    Rf_error("internal error: 'sets' is not a logical matrix of the right size");
  return (km_labels){.samples = samples,
                     .n_sets = (size_t) Rf_nrows(sets),
                     .sizes = glue_codes(sizes, samples, 0, INT_MAX, "sizes"),
                     .sets = LOGICAL_RO(sets)};
}

/*
 * Subsets for each permutation: the columns of `permutations` (n x columns, from 1), or if that is
 * NULL so many drawn by R's generator; before them, if `observed`, the labels as they are. sizes:
 * samples; sets: logical, sets x samples.
 */
SEXP r_subsets(SEXP permutations, SEXP columns, SEXP sizes, SEXP sets, SEXP blocks, SEXP observed) {
  const km_labels labels = unpack_labels(sizes, sets);
  const size_t n = km_label_points(&labels), times = (size_t) Rf_asInteger(columns);
  const int draw = Rf_isNull(permutations);
  const int *given =
    draw ? NULL : glue_codes(permutations, n * times, 1, (int) n, "permutations");
  const km_blocks drawn = glue_find_blocks(blocks, sizes);
  const km_relabelings from = {.observed = Rf_asLogical(observed),
                                .count = times,
                                .given = given,
                                .blocks = &drawn,
                                .draw = glue_draw};
  const size_t words = km_subset_words(n, km_relabel_count(&labels, &from));
  SEXP out = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t) (words * sizeof(uint64_t))));
  int *work = glue_int_scratch(km_relabel_iwork(n));
  if (draw) GetRNGstate();
  km_relabel(&labels, &from, (uint64_t *) RAW(out), work, glue_poll);
  if (draw) PutRNGstate();
  UNPROTECT(1);
  return out;
}

/* v: n x columns; result: count x columns */
SEXP r_subset_sums(SEXP subsets, SEXP count, SEXP v) {
  const size_t n = (size_t) Rf_nrows(v), columns = (size_t) Rf_ncols(v);
  const size_t sets = (size_t) Rf_asReal(count);
  const uint64_t *words = unpack_subsets(subsets, n, sets);
  const double *values = glue_doubles(v, (R_xlen_t) (n * columns), "v");
  SEXP out = PROTECT(glue_new_matrix(sets, columns));
  km_subset_sums(words, n, sets, values, columns, REAL(out));
  UNPROTECT(1);
  return out;
}

/* list(forms, moments), a column for each rate (one column if rates is NULL) */
SEXP r_subset_forms(SEXP source, SEXP subsets, SEXP count, SEXP rates) {
  const char *names[] = {"forms", "moments", ""};
  const km_source from = glue_symmetric(source);
  const size_t sets = (size_t) Rf_asReal(count);
  const uint64_t *words = unpack_subsets(subsets, from.n, sets);
  const double *path = Rf_isNull(rates) ? NULL : glue_doubles(rates, -1, "rates");
  const size_t n_rates = path ? (size_t) XLENGTH(rates) : 0;
  const size_t columns = path ? n_rates : 1;
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SEXP forms = glue_new_matrix(sets, columns);
  SET_VECTOR_ELT(out, 0, forms);
  SEXP moments = glue_new_matrix(2, columns);
  SET_VECTOR_ELT(out, 1, moments);
  double *work = glue_scratch(km_subset_forms_work(&from, sets, n_rates));
  km_subset_forms(&from, words, sets, path, n_rates, REAL(forms), REAL(moments), work,
                  glue_poll);
  UNPROTECT(1);
  return out;
}

/* kept x count, see core/profiles.h. rows: n x r; unit: that of each point, or NULL. */
SEXP r_subset_spectra(SEXP rows, SEXP subsets, SEXP count, SEXP unit, SEXP units, SEXP outside,
                      SEXP most, SEXP kept, SEXP least) {
  const size_t n = (size_t) Rf_nrows(rows), sets = (size_t) Rf_asReal(count);
  const size_t p = (size_t) Rf_asInteger(kept);
  const km_point_rows points = {n, (size_t) Rf_ncols(rows), glue_matrix(rows, "rows")};
  km_point_subsets of = {.units = (size_t) Rf_asInteger(units),
                         .count = sets,
                         .most = (size_t) Rf_asInteger(most),
                         .outside = Rf_asLogical(outside)};
  of.words = unpack_subsets(subsets, of.units, sets);
  if (!Rf_isNull(unit)) of.unit = glue_codes(unit, n, 1, (int) of.units, "unit");
  if (of.most > n || points.r > n) Rf_error("internal error: 'most' or 'rows'");
  SEXP out = PROTECT(glue_new_matrix(p, sets));
  double *work = glue_scratch(km_subset_spectra_work(points, of.most));
  const km_status status = km_subset_spectra(points, of, p, Rf_asReal(least), REAL(out), work,
                                             glue_poll);
  glue_check(status, "km_subset_spectra", 0);
  UNPROTECT(1);
  return out;
}

/* The forms of small subsets, the columns of `members`: numbers of points, none twice in one. */
SEXP r_small_forms(SEXP source, SEXP members) {
  const km_source from = glue_symmetric(source);
  if (!Rf_isMatrix(members)) Rf_error("internal error: 'members' is not a matrix");
  const size_t m = (size_t) Rf_nrows(members), count = (size_t) Rf_ncols(members);
  const int *points = glue_codes(members, m * count, 1, (int) from.n, "members");
  SEXP forms = PROTECT(Rf_allocVector(REALSXP, (R_xlen_t) count));
  double *work = glue_scratch(km_small_forms_work(&from, m));
  km_small_forms(&from, points, m, count, REAL(forms), work, glue_poll);
  UNPROTECT(1);
  return forms;
}
