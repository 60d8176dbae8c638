#ifndef KM_ORDER_H
#define KM_ORDER_H

#include <stddef.h>

/* Orders of numbers, and numbers of a rank. */

/* order: 0 .. n - 1 by increasing keys, of equal ones the first first. keys: n, each `apart` behind
   the one before. */
void km_order(size_t n, const double *keys, size_t apart, int *order);

/* The same by codes of 1, ..., count, and where each code ends in the order. ends: count. */
void km_order_codes(size_t n, const int *codes, size_t count, int *order, int *ends);

/* Puts the value of rank `rank` in its place: none greater before it, none smaller after it. */
double km_select(size_t n, double *values, size_t rank);

/* The least value; infinite for none. */
double km_least(size_t n, const double *values);

/* The median of n >= 1 values, which are reordered. */
double km_middle(size_t n, double *values);

#endif
