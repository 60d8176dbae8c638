#ifndef KM_NORMAL_H
#define KM_NORMAL_H

#include <stddef.h>

/* Sums over standardized points, for the statistic BHEP of a test of normality. */

typedef struct {
  double pairs, points;
} km_normal_means;

/*
 * z: n x d, n > d + 1, points that span d dimensions; they become points of mean 0 and covariance I
 * (divisor n), up to a rotation, which no distance sees. pairs: the mean of exp(-|z_i - z_j|^2 /
 * (2 theta^2)) over all i and j; points: that of exp(-|z_i|^2 / (2 (theta^2 + 1))). work: n.
 */
km_normal_means km_standardized_means(double *z, size_t n, size_t d, double theta, double *work);

#endif
