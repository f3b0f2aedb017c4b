/* What the fuzz programs of all native parts share: numbers that a seed repeats, and an end that says what is wrong. */
#ifndef ND7_FUZZ_H
#define ND7_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

static uint32_t roll(uint32_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 32) % below;
}

static void check(bool ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "fuzz: %s\n", what);
  exit(1);
}

#endif
