#ifndef KM_CHASE_H
#define KM_CHASE_H

#include "core/band.h"

/* Step 3 of the tridiagonal reduction. */

/* s->band becomes tridiagonal, the reflectors go to the upper triangle of s->a. */
void km_chase_band(const reduction *s, km_poll poll);

/* Where the reflector of step `step` for column k is kept: its tau (for v_0 = 1), then v. */
size_t km_kept_offset(size_t n, size_t k, size_t step);

#endif
