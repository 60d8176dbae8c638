#ifndef KM_MMD_H
#define KM_MMD_H

#include "core/tile.h"

#include <stdint.h>

/*
 * Sums of a Gram matrix over subsets of its points, for many subsets at once: the relabelled
 * samples of a permutation test. Subset c of `count` holds point i if bit i % 64 of
 * subsets[i / 64 * count + c] is set.
 */

/* Words of `count` subsets of n points. */
size_t km_subset_words(size_t n, size_t count);

/* Adds a point to subset c. */
void km_subset_add(uint64_t *subsets, size_t count, size_t c, size_t point);

/* sums_ck = sum of v_ik over the points i of subset c. v: n x columns; sums: count x columns. */
void km_subset_sums(const uint64_t *subsets, size_t n, size_t count, const double *v,
                    size_t columns, double *sums);

/*
 * forms_c = sum of K_ij over i, j in subset c, and moments = (sum |K_ij|, sum K_ij^2) over all i, j
 * of a symmetric walk. With `rates` the walk must give squared distances s_ij, and there is a
 * column of forms and of moments for each K_ij = exp(-rate s_ij). forms: count x max(1, n_rates);
 * moments: 2 x max(1, n_rates).
 */
size_t km_subset_forms_work(const km_source *source, size_t count, size_t n_rates);
void km_subset_forms(const km_source *source, const uint64_t *subsets, size_t count,
                     const double *rates, size_t n_rates, double *forms, double *moments,
                     double *work, km_poll poll);

/* sums_ab = sum of K_ij over i in block a, j in block b, and moments as above. block: n, from 0,
   below blocks; points of a block should stand together; sums: blocks x blocks. */
size_t km_block_sums_work(const km_source *source, size_t blocks);
void km_block_sums(const km_source *source, const int *block, size_t blocks, double *sums,
                   double moments[2], double *work, km_poll poll);

#endif
