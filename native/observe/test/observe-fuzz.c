/* Random bytes against what the supervisor reads from its front and from callers, in a sanitized build: `observe-fuzz SEED ROUNDS`. Each input lies in a heap
 * block of its exact size, so that reading one byte too far ends the program. */
#include "observe.h"

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put32(unsigned char *to, uint32_t value) {
  for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (8 * i));
}

static long answers(void) {
  const uint32_t n = roll(40);
  const size_t length = roll(4) == 0 ? roll(64) : 20 + n;
  unsigned char *bytes = malloc(length + 1), *exact = malloc(length);
  for (size_t i = 0; i < length; i++) bytes[i] = (unsigned char)roll(256);
  if (length >= 20) {
    put32(bytes, roll(4));
    put32(bytes + 8, roll(3) == 0 ? roll(5000) : 0);
    put32(bytes + 12, roll(3));
    put32(bytes + 16, roll(8) == 0 ? roll(64) : n);
  }
  if (length > 0) memcpy(exact, bytes, length);
  struct answer answer;
  const bool taken = frame_answer(exact, length, &answer);
  if (taken) {
    check(answer.error >= 0 && answer.error <= 4095, "an errno that is none");
    check(answer.is_given || answer.length == 0, "bytes that were not given");
    check(answer.bytes + answer.length == exact + length, "bytes that are not the frame's");
  }
  unsigned char head[4];
  put32(head, roll(2) == 0 ? roll(64) : roll(UINT32_MAX));
  const size_t told = frame_length(head);
  check(told == 0 || (told >= 20 && told <= FRAME_MAX), "a frame of no such length");
  free(bytes);
  free(exact);
  return taken ? 1 : 0;
}

static void paths(void) {
  const size_t length = 1 + roll(roll(20) == 0 ? PATH_MAX - 1 : 12);
  char *path = malloc(length + 1);
  for (size_t i = 0; i < length; i++) path[i] = "//a.b"[roll(5)];
  path[length] = '\0';
  const char *name;
  size_t n;
  path_split_last(path, &name, &n);
  check(name >= path && name + n <= path + length, "a name outside of its path");
  check(memchr(name, '/', n) == NULL, "a name with a slash in it");
  check(strspn(name + n, "/") == strlen(name + n), "something behind the last name");
  check(name == path || name[-1] == '/', "half a name");
  free(path);
}

int main(int argc, char **argv) {
  state = argc > 1 ? strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1 : 1;
  const long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 100000;
  long taken = 0;
  for (long i = 0; i < rounds; i++) {
    taken += answers();
    paths();
  }
  check(rounds < 1000 || (taken > rounds / 50 && taken < rounds), "too few or too many answers were taken for the test to say anything");
  printf("%ld rounds, %ld answers\n", rounds, taken);
  return 0;
}
