#ifndef KM_FOLD_H
#define KM_FOLD_H

#include "core/tile.h"

/* Folds over the tiles of a Gram matrix. */

/* The Gram matrix itself. k: n x m (both halves filled in a symmetric walk). */
size_t km_fold_store_work(const km_source *source);
void km_fold_store(const km_source *source, double *k, double *work, km_poll poll);

/* Its column K e_p, of a symmetric source. column: n. */
size_t km_fold_column_work(const km_source *source);
void km_fold_column(const km_source *source, size_t p, double *column, double *work);

/* Row sums. sums: n. */
size_t km_fold_rows_work(const km_source *source);
void km_fold_rows(const km_source *source, double *sums, double *work, km_poll poll);

/* K V. v: m x p; out: n x p. */
size_t km_fold_apply_work(const km_source *source, size_t p);
void km_fold_apply(const km_source *source, const double *v, size_t p, double *out, double *work,
                   km_poll poll);

/* u_c' K v_c for each column c; in a symmetric walk u = v. u: n x p; v: m x p; out: p. */
size_t km_fold_quad_work(const km_source *source, size_t p);
void km_fold_quad(const km_source *source, const double *u, const double *v, size_t p, double *out,
                  double *work, km_poll poll);

/* Row sums and u_c' K u_c of a symmetric source in one walk: the row sums bit for bit those of the
   fold above, up to 524,288 points (where each worker has an accumulator) the forms too. u: n x p;
   rows: n; forms: p. */
size_t km_fold_moments_work(const km_source *source, size_t p);
void km_fold_moments(const km_source *source, const double *u, size_t p, double *rows,
                     double *forms, double *work, km_poll poll);

#endif
