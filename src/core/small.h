#ifndef KM_SMALL_H
#define KM_SMALL_H

#include "core/tile.h"

/*
 * forms_c = sum of K_ij over i, j in subset c, for many subsets that are small beside the points of
 * a symmetric source, so that the values of each are evaluated anew. members: m x count, the points
 * of each subset, from 1 on, none twice; forms: count.
 */
size_t km_small_forms_work(const km_source *source, size_t m);
void km_small_forms(const km_source *source, const int *members, size_t m, size_t count,
                    double *forms, double *work, km_poll poll);

#endif
