#ifndef KM_SEQUENCE_H
#define KM_SEQUENCE_H

#include <stdint.h>

/* The next number of a fixed sequence (splitmix64), for what must be arbitrary, not random. */
static inline uint64_t next_number(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

#endif
