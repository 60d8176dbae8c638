#ifndef KM_GLUE_H
#define KM_GLUE_H

/* What every entry point needs: R's headers, status to condition, scratch, poll. */

#include "core/status.h"
#include "core/tile.h"

#include <R.h>
#include <Rinternals.h>

/* Turns a status into an R error of class kernmean_error_numeric; returns on KM_OK. */
void glue_check(km_status status, const char *routine, int info);

/* The poll given to the core: answers an interrupt or an elapsed time limit. */
void glue_poll(void);

/* An internal error unless x is a double vector (of this length, if length >= 0). */
const double *glue_doubles(SEXP x, R_xlen_t length, const char *name);

/* An internal error unless x is a square double matrix; its order. */
size_t glue_order(SEXP x, const char *name);

/*
 * Kernel spec from R: list(family, degree, offset, centre, scale), see native_kernel() in
 * R/tile.R; NULL where the points are a Gram matrix.
 */
km_kernel glue_kernel(SEXP spec, size_t d);

/* x: n x d; y: m x d, or NULL for the symmetric walk over x. */
km_pair glue_points(SEXP x, SEXP y);

/* The symmetric walk over x: points, or the Gram matrix itself if spec is NULL. */
km_pair glue_source(SEXP spec, SEXP x);

/* Scratch of this many doubles, reclaimed at the end of .Call. */
double *glue_scratch(size_t count);

#endif
