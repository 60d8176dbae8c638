#include "apps/evidence.h"

#include <math.h>

/*
 * Each bet pays 1 on average over the ranks 1, ..., t: (1 - part) (t / k) 1(rank <= k) + part, and
 * t ((rank/t)^power - ((rank - 1)/t)^power). M_c is the mean of the products since day c; with
 * pi_c = 1/(c (c + 1)) the evidence of a score is sum_c pi_c M_c + 1/(count + 1), a martingale, its
 * run sum_c M_c (Shiryaev and Roberts). The largest of several weighted ones, and not their sum:
 * each is a martingale for its own ranks. O(bettors scores starts).
 */

void km_rank_bets(size_t scores, const int *ranks, int of, size_t starts, const int *k,
                  double *logs) {
  static const double parts[] = {0.05, 0.2, 0.5}, powers[] = {0.2, 0.5};
  const double t = of;
  for (size_t start = 0; start < starts; start++)
    for (size_t score = 0; score < scores; score++) {
      double *out = logs + (score + start * scores) * KM_RANK_BETTORS;
      const double inside = ranks[score] <= k[start] ? t / k[start] : 0, rank = ranks[score];
      for (size_t i = 0; i < 3; i++) out[i] = log((1 - parts[i]) * inside + parts[i]);
      for (size_t i = 0; i < 2; i++)
        out[3 + i] = log(t * (pow(rank / t, powers[i]) - pow((rank - 1) / t, powers[i])));
    }
}

static double log_sum(size_t n, const double *logs, size_t apart, double first) {
  double most = first, sum = 0;
  for (size_t i = 0; i < n; i++) most = fmax(most, logs[i * apart]);
  for (size_t i = 0; i < n; i++) sum += exp(logs[i * apart] - most);
  return most + log(sum + exp(first - most));
}

static double log_prior(int start) { return -log(start) - log1p(start); }

km_weighed km_weigh(size_t scores, size_t bettors, size_t starts, const int *start, int count,
                    const double *logs, double *lead, double *work) {
  km_weighed best = {-INFINITY, -INFINITY, 0, 0};
  size_t dated_score = 0, run_score = 0;
  for (size_t c = 0; c < starts; c++) {
    lead[c] = -INFINITY;
    for (size_t i = 0; i < scores; i++)
      work[c + i * starts] = log_sum(bettors, logs + (i + c * scores) * bettors, 1, -INFINITY) -
                             log((double) bettors);
  }
  for (size_t i = 0; i < scores; i++) {
    double *capital = work + i * starts, most = -INFINITY;
    const double weight =
      scores == 1 ? 0 : i == 0 ? log(0.5) : log(0.5 / (double) (scores - 1));
    for (size_t c = 0; c < starts; c++) most = fmax(most, capital[c]);
    for (size_t c = 0; c < starts; c++) lead[c] = fmax(lead[c], capital[c] - most);
    const double run = weight + log_sum(starts, capital, 1, -INFINITY);
    for (size_t c = 0; c < starts; c++) capital[c] += log_prior(start[c]);
    const double dated = weight + log_sum(starts, capital, 1, -log1p(count));
    if (dated > best.log) {
      best.log = dated;
      dated_score = i;
    }
    if (run > best.run) {
      best.run = run;
      run_score = i;
    }
  }
  const double *dated = work + dated_score * starts, *of_run = work + run_score * starts;
  for (size_t c = 0; c < starts; c++) {
    if (dated[c] > dated[best.at]) best.at = c;
    if (of_run[c] - log_prior(start[c]) > of_run[best.run_at] - log_prior(start[best.run_at]))
      best.run_at = c;
  }
  return best;
}
