#include "core/permute.h"
#include "core/order.h"
#include "core/parts.h"
#include "core/scratch.h"

#include <stdlib.h>
#include <string.h>

/* Drawn without replacement: an index into a pool of what is left, whose last entry fills the gap;
   block by block, one draw for each point, of two groups for each point of the smaller. */

typedef struct {
  int *members, *ends, *drawn, *pool; /* n each */
} parts;

static size_t lay_out(parts *s, size_t n, int *work) {
  km_int_scratch scratch = {work, 0};
  s->members = take_ints(&scratch, n);
  s->ends = take_ints(&scratch, n);
  s->drawn = take_ints(&scratch, n);
  s->pool = take_ints(&scratch, n);
  return scratch.used;
}

size_t km_blocks_iwork(size_t n) {
  parts s;
  return lay_out(&s, n, NULL);
}

static void count_drawn(size_t first, size_t count, const parts *s) {
  for (int block = 0, i = 0; block < (int) count; block++) {
    const int size = s->ends[block] - i;
    int leading = 0;
    for (; i < s->ends[block]; i++) leading += s->members[i] < (int) first;
    s->drawn[block] = !first ? size : 2 * leading <= size ? leading : leading - size;
  }
}

km_blocks km_find_blocks(const int *codes, size_t n, size_t first, int *work) {
  size_t count = 1;
  parts s;
  lay_out(&s, n, work);
  if (codes) {
    for (size_t i = 0; i < n; i++) count = larger(count, (size_t) codes[i]);
    km_order_codes(n, codes, count, s.members, s.ends);
  } else {
    for (size_t i = 0; i < n; i++) s.members[i] = (int) i;
    s.ends[0] = (int) n;
  }
  count_drawn(first, count, &s);
  return (km_blocks){n, count, s.members, s.ends, s.drawn, s.pool};
}

void km_draw_permutation(const km_blocks *blocks, km_draw draw, int *permutation) {
  size_t first = 0;
  for (size_t block = 0; block < blocks->count; block++) {
    const int *members = blocks->members + first;
    const size_t size = (size_t) blocks->ends[block] - first;
    const int drawn = blocks->drawn[block];
    int *pool = blocks->pool;
    memcpy(pool, members, size * sizeof *members);
    for (size_t i = 0; i < (size_t) abs(drawn); i++) {
      const size_t j = draw(size - i);
      const int point = pool[j];
      pool[j] = pool[size - i - 1];
      pool[size - i - 1] = point;
    }
    for (size_t i = 0; i < size; i++)
      permutation[members[drawn < 0 ? i : size - i - 1]] = pool[i];
    first += size;
  }
}

void km_draw_permutations(const km_blocks *blocks, size_t count, km_draw draw, int *permutations,
                          km_poll poll) {
  for (size_t c = 0; c < count; c++) {
    int *permutation = permutations + c * blocks->n;
    km_draw_permutation(blocks, draw, permutation);
    for (size_t i = 0; i < blocks->n; i++) permutation[i]++;
    if (poll) poll();
  }
}

int km_codes_within(const int *codes, size_t n, int lowest, int highest) {
  for (size_t i = 0; i < n; i++)
    if (codes[i] < lowest || codes[i] > highest) return 0;
  return 1;
}

void km_invert(const int *permutations, size_t n, size_t count, int *order, int *inverse) {
  for (size_t c = 0; c < count; c++)
    for (size_t i = 0; i < n; i++) {
      const int to = permutations[i + c * n] - 1;
      order[i + c * n] = to;
      if (inverse) inverse[(size_t) to + c * n] = (int) i;
    }
}
