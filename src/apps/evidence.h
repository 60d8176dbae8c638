#ifndef KM_EVIDENCE_H
#define KM_EVIDENCE_H

#include <stddef.h>

/* Capital of bets against "no change", in logs. */

enum { KM_RANK_BETTORS = 5 };

/*
 * What each bettor makes of `scores` ranks, uniform on 1 .. `of` without a change, if there was one
 * k days ago: that the last k days have the first k ranks, with three parts held back, and that
 * ranks are small, by two powers. k: starts; logs: (KM_RANK_BETTORS scores) x starts, the bettors
 * of one score one after the other.
 */
void km_rank_bets(size_t scores, const int *ranks, int of, size_t starts, const int *k,
                  double *logs);

/*
 * The evidence of `scores`, of which the first has weight 1/2 and the others share 1/2. logs:
 * (bettors scores) x starts; start: days from 1 on, of `count`. log: of the largest weighted sum of
 * capital over a prior of starts, run: of the largest weighted plain sum; at, run_at: the start
 * that has most of each, from 0 on; lead: starts, the log of the capital of each start over the
 * largest of a score, for that score for which it is largest. work: scores starts.
 */
typedef struct {
  double log, run;
  size_t at, run_at;
} km_weighed;

km_weighed km_weigh(size_t scores, size_t bettors, size_t starts, const int *start, int count,
                    const double *logs, double *lead, double *work);

#endif
