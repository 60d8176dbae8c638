#ifndef KM_STATUS_H
#define KM_STATUS_H

/* What a core routine that can fail returns; the glue turns it into an R error. */

typedef enum {
  KM_OK,
  KM_NOT_POSITIVE,  /* a matrix that must be positive definite is not */
  KM_NO_CONVERGENCE /* an eigenvalue iteration did not converge */
} km_status;

#endif
