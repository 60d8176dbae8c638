#include "apps/mmd.h"
#include "glue/entries.h"
#include "glue/glue.h"
#include "glue/permute.h"

#include <string.h>

/* Subsets are a raw vector of 64-bit words, see apps/mmd.h. */

static const uint64_t *unpack_subsets(SEXP subsets, size_t n, size_t count) {
  const size_t bytes = km_subset_words(n, count) * sizeof(uint64_t);
  if (TYPEOF(subsets) != RAWSXP || (size_t) XLENGTH(subsets) != bytes)
    Rf_error("internal error: 'subsets' is not a raw vector of the right length");
  return (const uint64_t *) RAW_RO(subsets);
}

/* Adds the relabelled samples of one permutation (from `base`) as subsets c, c + 1, ...: entry k
   of the permutation gets the group at position k; subset s is the union of the groups g with
   sets[s + g * n_sets] true. */
static void mark(const int *permutation, int base, SEXP sizes, SEXP sets, size_t count, size_t c,
                 uint64_t *subsets) {
  const size_t groups = (size_t) XLENGTH(sizes), n_sets = (size_t) Rf_nrows(sets);
  size_t k = 0;
  for (size_t g = 0; g < groups; g++) {
    const size_t end = k + (size_t) INTEGER_RO(sizes)[g];
    for (; k < end; k++)
      for (size_t s = 0; s < n_sets; s++)
        if (LOGICAL_RO(sets)[s + g * n_sets])
          km_subset_add(subsets, count, c + s, (size_t) (permutation[k] - base));
  }
}

/*
 * Subsets for each permutation: the columns of `permutations` (n x columns, from 1), or if that is
 * NULL so many drawn by R's generator; before them, if `observed`, the labels as they are. sizes:
 * groups; sets: logical, sets x groups.
 */
SEXP r_subsets(SEXP permutations, SEXP columns, SEXP sizes, SEXP sets, SEXP blocks, SEXP observed) {
  const size_t times = (size_t) Rf_asInteger(columns), n_sets = (size_t) Rf_nrows(sets);
  const size_t before = Rf_asLogical(observed) ? 1 : 0;
  size_t n = 0;
  for (R_xlen_t g = 0; g < XLENGTH(sizes); g++) n += (size_t) INTEGER_RO(sizes)[g];
  const int draw = Rf_isNull(permutations);
  if (!draw && (TYPEOF(permutations) != INTSXP || (size_t) XLENGTH(permutations) != n * times))
    Rf_error("internal error: 'permutations' is not an integer matrix of the right size");
  const size_t count = (before + times) * n_sets;
  const size_t bytes = km_subset_words(n, count) * sizeof(uint64_t);
  SEXP out = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t) bytes));
  uint64_t *subsets = (uint64_t *) RAW(out);
  memset(subsets, 0, bytes);
  const glue_blocks drawn = glue_unpack_blocks(blocks, n);
  int *permutation = (int *) R_alloc(n, sizeof(int));
  if (before) {
    for (size_t i = 0; i < n; i++) permutation[i] = (int) i;
    mark(permutation, 0, sizes, sets, count, 0, subsets);
  }
  if (draw) GetRNGstate();
  for (size_t c = 0; c < times; c++) {
    if (draw) glue_permutation(&drawn, permutation);
    mark(draw ? permutation : INTEGER_RO(permutations) + c * n, !draw, sizes, sets, count,
         (before + c) * n_sets, subsets);
    glue_poll();
  }
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
  SEXP out = PROTECT(Rf_allocMatrix(REALSXP, (int) sets, (int) columns));
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
  const int columns = path ? (int) n_rates : 1;
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SEXP forms = Rf_allocMatrix(REALSXP, (int) sets, columns);
  SET_VECTOR_ELT(out, 0, forms);
  SEXP moments = Rf_allocMatrix(REALSXP, 2, columns);
  SET_VECTOR_ELT(out, 1, moments);
  double *work = glue_scratch(km_subset_forms_work(&from, sets, n_rates));
  km_subset_forms(&from, words, sets, path, n_rates, REAL(forms), REAL(moments), work,
                  glue_poll);
  UNPROTECT(1);
  return out;
}

/* list(sums, moments). block: n codes from 0; sums: blocks x blocks */
SEXP r_block_sums(SEXP source, SEXP block, SEXP blocks) {
  const km_source from = glue_symmetric(source);
  const int count = Rf_asInteger(blocks);
  if (TYPEOF(block) != INTSXP || (size_t) XLENGTH(block) != from.n)
    Rf_error("internal error: 'block' is not an integer vector of the right length");
  for (size_t i = 0; i < from.n; i++)
    if (INTEGER_RO(block)[i] < 0 || INTEGER_RO(block)[i] >= count)
      Rf_error("internal error: a code of 'block'");
  const char *names[] = {"sums", "moments", ""};
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SEXP sums = Rf_allocMatrix(REALSXP, count, count);
  SET_VECTOR_ELT(out, 0, sums);
  SEXP moments = Rf_allocVector(REALSXP, 2);
  SET_VECTOR_ELT(out, 1, moments);
  double *work = glue_scratch(km_block_sums_work(&from, (size_t) count));
  km_block_sums(&from, INTEGER_RO(block), (size_t) count, REAL(sums), REAL(moments),
                work, glue_poll);
  UNPROTECT(1);
  return out;
}
