#ifndef KM_HSIC_H
#define KM_HSIC_H

#include "core/permute.h"

/* Independence statistics under many permutations at once. */

/* forms[c] = sum_ij k_ij l_{c(i) c(j)}. k, l: n x n, symmetric, in full. */
size_t km_permuted_forms_work(size_t count);
void km_permuted_forms(const double *k, const double *l, const km_permutations *permutations,
                       double *forms, double *work, km_poll poll);

/* forms_cab, the same of each k[a] with each l[b]. forms: count x ks x ls. */
size_t km_permuted_grid_work(size_t n, size_t count);
void km_permuted_grid(const double *const *k, size_t ks, const double *const *l, size_t ls,
                      const km_permutations *permutations, double *forms, double *work,
                      km_poll poll);

/* The same of k = aa', l = bb'. a: n x rank_a, b: n x rank_b, row-major. */
size_t km_permuted_products_work(size_t n, size_t rank_a, size_t rank_b);
void km_permuted_products(const double *a, size_t rank_a, const double *b, size_t rank_b,
                          const km_permutations *permutations, double *forms, double *work,
                          km_poll poll);

/* sums[c] = sum_i a_i b_{c(i)} */
void km_permuted_sums(const double *a, const double *b, const km_permutations *permutations,
                      double *sums);

/*
 * For `variables` matrices k[l] (n x n) with row means rows[l] (n), and permutations of the second,
 * third, ... in turn (count is a multiple of variables - 1): forms[c] = sum_ij of the product of
 * the permuted matrices, sums[c] = sum_i of the product of the permuted row means. count of _work:
 * that of the forms.
 */
size_t km_permuted_tensor_work(size_t count);
void km_permuted_tensor(size_t variables, const double *const *k, const double *const *rows,
                        const km_permutations *permutations, double *forms, double *sums,
                        double *work, km_poll poll);

#endif
