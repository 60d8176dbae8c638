#ifndef KM_BLAS_H
#define KM_BLAS_H

/* The one door to R's BLAS and LAPACK. */

#ifndef USE_FC_LEN_T
#define USE_FC_LEN_T
#endif
#include <Rconfig.h>
#include <R_ext/BLAS.h>
#include <R_ext/Lapack.h>
#ifndef FCONE
#define FCONE
#endif

#endif
