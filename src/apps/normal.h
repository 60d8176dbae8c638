#ifndef KM_NORMAL_H
#define KM_NORMAL_H

#include <stddef.h>

/* Sums over standardized points, for the statistic BHEP of a test of normality. */

enum { KM_NORMAL_LANES = 8 }; /* samples that are treated side by side */

/*
 * Samples of n > d + 1 points that span d dimensions. z: number e of the samples has coordinate l
 * of its point i at z[(i + l * n) * KM_NORMAL_LANES + e]. They become points of mean 0 and
 * covariance I (divisor n), up to a rotation, which no distance sees. means: for each sample the
 * mean of exp(-|z_i - z_j|^2 / (2 theta^2)) over all i and j, then that of exp(-|z_i|^2 / (2
 * (theta^2 + 1))).
 */
void km_standardized_means(size_t n, size_t d, double theta, double *z, double *means);

#endif
