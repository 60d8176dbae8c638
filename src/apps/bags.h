#ifndef KM_BAGS_H
#define KM_BAGS_H

#include "core/blocks.h"
#include "core/public.h"

/* Kernel means of many samples at once: bags of points that stand one after the other. */

/* F-KMSE of each bag by itself. A bag of one point keeps it, with lambda 0. */
typedef struct {
  double *weights;   /* n: of the points */
  double *lambda;    /* bags, as are the following */
  double *minimum;   /* the exact leave-one-out score there; NaN where nothing was searched */
  double *reference; /* the score at lambda = 0; NaN for one point */
  double *norm2;     /* weights'K weights */
  int *border;       /* is lambda at an end of the range searched? */
} km_flexible;

/*
 * lambda: the same for all bags, or NULL for a search in each. Bags are dealt to threads, each of
 * which needs some 4 n^2 doubles for the largest bag: right for bags of some hundred points at
 * most. Where a few bags are larger than that, the threads are better used within a bag, one bag
 * after the other. KM_NOT_POSITIVE: a bag's matrix has a clearly negative eigenvalue.
 */
size_t km_bag_flexible_work(const km_source *source, const km_runs *bags);
size_t km_bag_flexible_iwork(const km_source *source, const km_runs *bags);
km_status km_bag_flexible(const km_source *source, const km_runs *bags, const double *lambda,
                          const km_flexible *out, double *work, int *iwork, km_poll poll);

/*
 * inner_ab: the inner product of the marginalized kernel means (weights 1/n) of bags a of the rows
 * and b of the columns, for points and an RBF kernel: the mean over i and j of the kernel with
 * theta_l^2 + noise_la + noise_lb for theta_l^2, times prod_l theta_l / sqrt(of that). noise: d x
 * bags of the rows; columns, column_noise: NULL in a symmetric walk; inner: bags x bags. Pairs of
 * bags are dealt to threads.
 */
size_t km_bag_marginal_work(const km_source *source);
void km_bag_marginal(const km_source *source, const km_runs *rows, const double *noise,
                     const km_runs *columns, const double *column_noise, double *inner,
                     double *work, km_poll poll);

#endif
