#ifndef KM_GLUE_H
#define KM_GLUE_H

/* What every entry point needs: R's headers, status to condition, scratch, poll. */

#include "core/blocks.h"
#include "core/center.h"
#include "core/permute.h"
#include "core/kernel.h"
#include "core/public.h"

#include <R.h>
#include <Rinternals.h>

/* Turns a status into an R error of class kernmean_error_numeric; returns on KM_OK. */
void glue_check(km_status status, const char *routine, int info);

/* The poll given to the core: answers an interrupt or an elapsed time limit. */
void glue_poll(void);

/* An internal error unless x is a double vector (of this length, if length >= 0). */
const double *glue_doubles(SEXP x, R_xlen_t length, const char *name);

/* An internal error unless x is an integer vector of n codes from lowest to highest. */
const int *glue_codes(SEXP x, size_t n, int lowest, int highest, const char *name);

/* An internal error unless x is a double matrix. */
const double *glue_matrix(SEXP x, const char *name);

/* An internal error unless x is a square double matrix; its order. */
size_t glue_order(SEXP x, const char *name);

/* The values of list(spec, x, y), see native_source() in R/kernel_tile.R; spec: list(family,
   degree, offset, center, scale), with the parts of a sum after these, or NULL where x is a Gram
   matrix. x: n x d; y: m x d, or NULL. */
km_source glue_source(SEXP source);

/* The same where y must be NULL. */
km_source glue_symmetric(SEXP source);

/* The same where x must be points. */
km_source glue_points(SEXP source);

/* A kernel with landmarks x and rows y, of which there may be none. */
km_source glue_landmarks(SEXP source);

/* A centering of n points: its values there and its squared norm. */
km_centering glue_centering(SEXP at, SEXP norm2, size_t n);

/* n points in blocks of these sizes, one after the other; weights: n doubles, or NULL. */
km_runs glue_runs(SEXP sizes, SEXP weights, size_t n);

/* Points, groups of these sizes, in one block (NULL), or in blocks by codes 1, 2, ... */
km_blocks glue_find_blocks(SEXP codes, SEXP sizes);

/* A random index as R_unif_index() draws it under sample.kind = "Rejection", whichever kind is set;
   between GetRNGstate() and PutRNGstate(). */
size_t glue_draw(size_t count);

/* A random number from 0 to 1 by R's generator; likewise. */
double glue_uniform(void);

/* Scratch of this many doubles or integers, reclaimed at the end of .Call. */
double *glue_scratch(size_t count);
int *glue_int_scratch(size_t count);

/* A matrix of doubles that the caller protects and fills. */
SEXP glue_new_matrix(size_t rows, size_t columns);

#endif
