#ifndef KM_BLAS_H
#define KM_BLAS_H

/* The one door to BLAS and LAPACK: R's, or with KM_NO_R those of the system. */

#ifdef KM_NO_R
#include <stddef.h>
#define F77_NAME(name) name##_
#define F77_CALL(name) name##_
#define FCLEN , size_t /* the length of a string argument, passed after all others */
#define FCONE , (size_t) 1
extern void F77_NAME(dstedc)(const char *compz, const int *n, double *d, double *e, double *z,
                             const int *ldz, double *work, const int *lwork, int *iwork,
                             const int *liwork, int *info FCLEN);
#else
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

/* Part of LAPACK as long as dsyevr, which calls it, but not of R's header. */
extern void F77_NAME(dstemr)(const char *jobz, const char *range, const int *n, double *d,
                             double *e, const double *vl, const double *vu, const int *il,
                             const int *iu, int *m, double *w, double *z, const int *ldz,
                             const int *nzc, int *isuppz, int *tryrac, double *work,
                             const int *lwork, int *iwork, const int *liwork,
                             int *info FCLEN FCLEN);

#endif
