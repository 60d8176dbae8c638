#ifndef DRIVER_H
#define DRIVER_H

#include "core/kernel.h"

#include <stddef.h>

/* What the sections of the driver share. Memory lives until the driver ends its section. */

/* `count` numbers between -1 and 1, those that inputs() of check.R makes of the same seed. */
double *inputs(int seed, size_t count);

/* Room of exactly so many, filled with what no result may be; what is written behind it is found
   when it is released. */
double *room(size_t count);
int *int_room(size_t count);
void *block(size_t bytes);

/* A random index for what draws, from a sequence that set_draws() starts. */
void set_draws(int seed);
size_t draw(size_t count);
double uniform(void); /* the next number itself, from 0 to 1 */

/* Counted, so that the driver can tell whether long routines ask. */
void poll(void);

/* One line a number: name, index from 1, value in hexadecimal, the same text on any system. */
void put(const char *name, const double *values, size_t count);
void put_number(const char *name, double value);
void put_ints(const char *name, const int *values, size_t count);

/* Ends the driver with what went wrong unless `holds`. */
void must(int holds, const char *what);

/* n inputs in d columns, centered and scaled as check.R does it (see points()); a sum has three. */
km_source points(km_family family, int seed, size_t n, size_t d);

/* The Gram matrix of the RBF kernel of points(KM_RBF, seed, n, d). */
double *gram(int seed, size_t n, size_t d);

/* The sections. */
void run_basics(void);
void run_grams(void);
void run_factors(void);
void run_spectra(void);
void run_statistics(void);
void run_streams(void);
void run_scratch(void);

#endif
