#ifndef KM_DAYS_H
#define KM_DAYS_H

#include "core/public.h"
#include "core/threads.h"

#include <stddef.h>

/* Days as points: how far each is from the others, and whether neighbors are alike. */

/* x: r x n, a day a column, in units in which its rows alone make of it noise of covariance
   noise_d I; noise: n, positive. */
typedef struct {
  size_t n, r;
  const double *x, *noise;
} km_days;

/*
 * Squared distances (n) of each day from three quarters of all, the nearest ones, by a metric of
 * these; a day that is among them is left out. kept: n, 1 for those that are. A symmetric function
 * of the days, to the last bit, unless two agree in their first coordinate. outlying: of the logs
 * of distances from all days, how many sd the last one is beyond the mean of the others, as a
 * prediction: t with n - 2 degrees of freedom, about.
 */
size_t km_day_scores_work(size_t n, size_t r);
size_t km_day_scores_iwork(size_t n, size_t r);
km_status km_day_scores(const km_days *days, double *distances, double *outlying, int *kept,
                        double *work, int *iwork, km_poll poll);

/*
 * The z of sum |x_t - x_{t-1}|^2 within segments, by its mean and variance over all permutations
 * within them. x: r x n; ends: count, where each segment ends, the last n; work: n.
 */
double km_neighbors(size_t r, const double *x, size_t count, const int *ends, double *work);

#endif
