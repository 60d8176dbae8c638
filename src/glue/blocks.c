#include "core/blocks.h"
#include "glue/entries.h"
#include "glue/glue.h"

/* list(sums, moments). sizes: those of the blocks, which stand one after the other; weights: one a
   point, or NULL; column_sizes, column_weights: NULL if the source is symmetric; moments: are they
   wanted (else NULL)? sums: blocks x blocks of the columns */
SEXP r_block_sums(SEXP source, SEXP sizes, SEXP weights, SEXP column_sizes, SEXP column_weights,
                  SEXP moments) {
  const char *names[] = {"sums", "moments", ""};
  const km_source from = Rf_isNull(column_sizes) ? glue_symmetric(source) : glue_source(source);
  const km_runs rows = glue_runs(sizes, weights, from.n);
  km_runs columns = rows;
  if (from.y) columns = glue_runs(column_sizes, column_weights, from.m);
  const km_runs *other = from.y ? &columns : NULL;
  SEXP out = PROTECT(Rf_mkNamed(VECSXP, names));
  SEXP sums = glue_new_matrix(rows.count, columns.count);
  SET_VECTOR_ELT(out, 0, sums);
  double *of_values = NULL;
  if (Rf_asLogical(moments)) {
    SET_VECTOR_ELT(out, 1, Rf_allocVector(REALSXP, 2));
    of_values = REAL(VECTOR_ELT(out, 1));
  }
  double *work = glue_scratch(km_block_sums_work(&from, &rows, other));
  km_block_sums(&from, &rows, other, REAL(sums), of_values, work, glue_poll);
  UNPROTECT(1);
  return out;
}

/* The sums of each row over the blocks, n x blocks, of a symmetric source. */
SEXP r_block_rows(SEXP source, SEXP sizes) {
  const km_source from = glue_symmetric(source);
  const km_runs blocks = glue_runs(sizes, R_NilValue, from.n);
  SEXP rows = PROTECT(glue_new_matrix(from.n, blocks.count));
  double *work = glue_scratch(km_block_rows_work(&from));
  km_block_rows(&from, &blocks, REAL(rows), work, glue_poll);
  UNPROTECT(1);
  return rows;
}
