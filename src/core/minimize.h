#ifndef KM_MINIMIZE_H
#define KM_MINIMIZE_H

/* The least value of a function of one number. */

/* Its value at a number; of: what else it depends on. */
typedef double (*km_curve)(double at, const void *of);

typedef struct {
  double at, value;
} km_minimum;

/* A local minimum between low and high, where it lies up to `tolerance` and what sqrt(eps) leaves;
   never the ends themselves. */
km_minimum km_minimize(km_curve f, const void *of, double low, double high, double tolerance);

#endif
