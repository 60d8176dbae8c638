#include "apps/changes.h"
#include "apps/days.h"
#include "apps/evidence.h"
#include "core/shrunk.h"
#include "driver.h"

/* What streams are made of: days as points, bets, cuts. */

enum { DAYS = 24, R = 5 };

/* Deviations with a trend along the first axis. */
static void shrinkage(void) {
  double *x = inputs(73, DAYS * R), s[R * R];
  for (size_t t = 0; t < DAYS; t++) x[t * R] *= (double) t / 6;
  const double rho = km_shrunk_moments(DAYS, R, x, DAYS - 1, s);
  put("shrinkage", &rho, 1);
  put("shrunk_moments", s, R * R);
  km_factor_shrunk(R, rho, s);
  km_whiten(DAYS, R, s, x);
  put("whitened", x, DAYS * R);
}

/* The last two days far out, and the sizes of some others. */
static void days(void) {
  double *x = inputs(70, DAYS * R), noise[DAYS], distances[DAYS], outlying;
  int kept[DAYS];
  const int ends[] = {3, 14, DAYS};
  for (size_t t = 0; t < DAYS; t++) {
    noise[t] = t % 4 == 3 ? 0.4 : t % 4 == 1 ? 1.7 : 1;
    for (size_t j = 0; j < R; j++) x[j + t * R] *= t + 2 < DAYS ? 2 : 9;
  }
  const km_days all = {DAYS, R, x, noise};
  must(km_day_scores(&all, distances, &outlying, kept, room(km_day_scores_work(DAYS, R)),
                     int_room(km_day_scores_iwork(DAYS, R)), poll) == KM_OK,
       "no scores of days");
  put("day_distances", distances, DAYS);
  put("day_outlying", &outlying, 1);
  put_ints("day_kept", kept, DAYS);
  const double z = km_neighbors(R, x, 3, ends, room(DAYS));
  put("day_neighbors", &z, 1);
}

static void evidence(void) {
  enum { SCORES = 3, STARTS = 4, COUNT = 6, OF = 9, ROWS = SCORES * KM_RANK_BETTORS };
  const int ranks[SCORES] = {1, 4, 9}, start[STARTS] = {1, 2, 4, 6}, k[STARTS] = {6, 5, 3, 1};
  double logs[ROWS * STARTS], lead[STARTS], work[SCORES * STARTS];
  km_rank_bets(SCORES, ranks, OF, STARTS, k, logs);
  put("rank_bets", logs, ROWS * STARTS);
  const double *capital = inputs(71, ROWS * STARTS);
  const size_t watched[] = {SCORES, 1};
  for (size_t i = 0; i < 2; i++) {
    const size_t scores = watched[i];
    const km_weighed found =
      km_weigh(scores, ROWS / scores, STARTS, start, COUNT, capital, lead, work);
    const double values[] = {found.log, found.run, (double) found.at, (double) found.run_at};
    put(scores == 1 ? "weighed_one" : "weighed", values, 4);
    put(scores == 1 ? "lead_one" : "lead", lead, STARTS);
  }
}

static void changes(void) {
  enum { COUNT = 3, LEAST = 2, MOST = 5, CUTS = 2 };
  double *x = inputs(72, DAYS * R), gains[(DAYS - 1) * COUNT], costs[DAYS * DAYS] = {0},
         totals[MOST];
  int orders[DAYS * COUNT], last[DAYS * MOST];
  const int cuts[CUTS] = {6, 15};
  for (size_t j = 0; j < R; j++) {
    double mean = 0;
    for (size_t t = 0; t < DAYS; t++) mean += (x[j + t * R] += t < 15 ? 0 : 2) / DAYS;
    for (size_t t = 0; t < DAYS; t++) x[j + t * R] -= mean;
  }
  for (size_t t = 0; t < DAYS; t++) {
    orders[t] = (int) t + 1;
    orders[t + DAYS] = (int) (t * 7 % DAYS) + 1;
    orders[t + 2 * DAYS] = (int) (DAYS - t);
  }
  const km_cuts many = {DAYS, R, COUNT, LEAST, x, orders};
  km_cut_gains(&many, gains, room(km_cut_gains_work(DAYS, R, COUNT)), poll);
  put("cut_gains", gains, (DAYS - 1) * COUNT);
  km_segment_costs(DAYS, R, x, CUTS, cuts, costs, room(km_segment_costs_work(DAYS, R)),
                   poll);
  for (size_t i = 0; i < DAYS; i++)
    for (size_t j = 0; j < i; j++) costs[j + i * DAYS] = 0;
  put("segment_costs", costs, DAYS * DAYS);
  km_segments(DAYS, costs, LEAST, MOST, totals, last, room(DAYS * MOST), poll);
  put("segment_totals", totals, MOST);
  put_ints("segment_last", last, DAYS * MOST);
}

void run_streams(void) {
  shrinkage();
  days();
  evidence();
  changes();
}
