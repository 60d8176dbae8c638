#ifndef KM_SUBSETS_H
#define KM_SUBSETS_H

#include "core/permute.h"
#include "core/tile.h"

#include <stdint.h>

/*
 * Sums of a Gram matrix over subsets of its points, for many subsets at once (relabeled samples of
 * a permutation test), which are words of bits, see kernmean.h.
 */

/* Words of `count` subsets of n points. */
size_t km_subset_words(size_t n, size_t count);

/* Samples that stand one after the other, sizes[g] points in sample g, and sets of them: set s is
   the union of the samples g with sets[s + g * n_sets] true. */
typedef struct {
  size_t samples, n_sets;
  const int *sizes, *sets;
} km_labels;

/* Points of all samples. */
size_t km_label_points(const km_labels *labels);

/* Relabelings: `count` permutations (n x count, from 1), or if given = NULL so many drawn ones
   within blocks; before them, if observed, the labels as they are. */
typedef struct {
  int observed;
  size_t count;
  const int *given;
  const km_blocks *blocks;
  km_draw draw;
} km_relabelings;

/* Subsets of n points, n_sets of them for each relabeling, which gives the point at entry k the
   sample at position k. */
size_t km_relabel_count(const km_labels *labels, const km_relabelings *from);
size_t km_relabel_iwork(size_t n);
void km_relabel(const km_labels *labels, const km_relabelings *from, uint64_t *subsets, int *work,
                km_poll poll);

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

#endif
