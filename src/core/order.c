#include "core/order.h"
#include "core/sequence.h"

#include <math.h>
#include <string.h>

/* Keys are ordered by Shell's sort, some n^1.3 comparisons; codes by counting them, in n steps; one
   rank is found by Hoare's selection, in some 3 n steps, with pivots from a fixed sequence. */

void km_order(size_t n, const double *keys, size_t apart, int *order) {
  for (size_t i = 0; i < n; i++) order[i] = (int) i;
  for (size_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
    for (size_t i = gap; i < n; i++) {
      const int index = order[i];
      const double key = keys[(size_t) index * apart];
      size_t at = i;
      for (; at >= gap; at -= gap) {
        const int other = order[at - gap];
        const double before = keys[(size_t) other * apart];
        if (before < key || (before == key && other < index)) break;
        order[at] = other;
      }
      order[at] = index;
    }
}

/* ends[c] counts code c + 1, then is where it begins, then moves to its end. */
void km_order_codes(size_t n, const int *codes, size_t count, int *order, int *ends) {
  memset(ends, 0, count * sizeof *ends);
  for (size_t i = 0; i < n; i++) ends[codes[i] - 1]++;
  for (size_t block = 0, at = 0; block < count; block++) {
    const size_t size = (size_t) ends[block];
    ends[block] = (int) at;
    at += size;
  }
  for (size_t i = 0; i < n; i++) order[ends[codes[i] - 1]++] = (int) i;
}

double km_select(size_t n, double *values, size_t rank) {
  uint64_t state = 0;
  size_t first = 0, end = n;
  while (end - first > 1) {
    const double pivot = values[first + next_number(&state) % (end - first)];
    size_t i = first, j = end;
    while (i < j) {
      while (values[i] < pivot) i++;
      while (values[j - 1] > pivot) j--;
      if (i < j) {
        const double value = values[i];
        values[i++] = values[j - 1];
        values[--j] = value;
      }
    }
    /* first .. j-1 are <= pivot, i .. end-1 are >= pivot, what is between equals it. */
    if (rank < j)
      end = j;
    else if (rank >= i)
      first = i;
    else
      return pivot;
  }
  return values[rank];
}

double km_least(size_t n, const double *values) {
  double least = INFINITY;
  for (size_t i = 0; i < n; i++)
    if (values[i] < least) least = values[i];
  return least;
}

double km_middle(size_t n, double *values) {
  const size_t lower = (n - 1) / 2, rest = n - lower - 1;
  const double middle = km_select(n, values, lower);
  return n % 2 ? middle : (middle + km_least(rest, values + lower + 1)) / 2;
}
