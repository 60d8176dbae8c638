#include "core/minimize.h"

#include <float.h>
#include <math.h>

/* Brent's method (Algorithms for Minimization without Derivatives, 1973, chapter 5): steps to where
   a parabola turns, or by golden section. */

/*
 * Where the parabola through three points turns, as a step from the best of them, if it leads to
 * between low and high and is less than half of the step before the last; else 0.
 */
static double parabola_step(const km_minimum *best, const km_minimum *second,
                            const km_minimum *third, double low, double high, double before) {
  const double u = second->at - best->at, v = third->at - best->at;
  const double by_u = u * (third->value - best->value), by_v = v * (second->value - best->value);
  const double twice = 2 * (by_v - by_u);
  if (twice == 0) return 0;
  const double step = (v * by_v - u * by_u) / twice, at = best->at + step;
  return fabs(step) < fabs(before) / 2 && at > low && at < high ? step : 0;
}

km_minimum km_minimize(km_curve f, const void *of, double low, double high, double tolerance) {
  const double golden = (3 - sqrt(5)) / 2;
  const int most = 200; /* steps; golden section alone takes 40 */
  km_minimum best = {low + golden * (high - low), 0};
  best.value = f(best.at, of);
  km_minimum second = best, third = best;
  double step = 0, before = 0;
  for (int count = 0; count < most; count++) {
    const double middle = low + (high - low) / 2;
    const double least = sqrt(DBL_EPSILON) * fabs(best.at) + tolerance / 3;
    if (fabs(best.at - middle) <= 2 * least - (high - low) / 2) break;
    const double other = best.at < middle ? high - best.at : low - best.at;
    const double turn =
      fabs(before) > least ? parabola_step(&best, &second, &third, low, high, before) : 0;
    before = step;
    if (turn != 0) {
      step = turn;
      if (best.at + step - low < 2 * least || high - best.at - step < 2 * least)
        step = copysign(least, middle - best.at);
    } else {
      step = golden * other;
      before = other;
    }
    km_minimum next = {best.at + (fabs(step) < least ? copysign(least, step) : step), 0};
    next.value = f(next.at, of);
    const int better = next.value <= best.value;
    const km_minimum *edge = better ? &best : &next; /* a bound of what is left */
    if (better == (next.at < best.at))
      high = edge->at;
    else
      low = edge->at;
    if (better) {
      third = second;
      second = best;
      best = next;
    } else if (next.value <= second.value || second.at == best.at) {
      third = second;
      second = next;
    } else if (next.value <= third.value || third.at == best.at || third.at == second.at) {
      third = next;
    }
  }
  return best;
}
