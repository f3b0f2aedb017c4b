#define _GNU_SOURCE
#include "launch.h"

#include "kernel.h"

static void close_between(int first, int last) {
  if (first <= last && syscall(NR_CLOSE_RANGE, (unsigned)first, (unsigned)last, 0) != 0) fail("descriptors", "close_range");
}

void descriptors_keep(const int *kept, size_t count) {
  int from = 3;
  for (;;) {
    int next = INT32_MAX;
    for (size_t i = 0; i < count; i++)
      if (kept[i] >= from && kept[i] < next) next = kept[i];
    close_between(from, next == INT32_MAX ? next : next - 1);
    if (next == INT32_MAX) return;
    from = next + 1;
  }
}
