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

/* A path of few characters: most are nearly plain. */
static size_t some_path(unsigned char *to, size_t room) {
  size_t length = roll(room < 24 ? (uint32_t)room : 24);
  for (size_t i = 0; i < length; i++) to[i] = (unsigned char)"//ab.\xff"[roll(6)];
  if (length > 0 && roll(8) != 0) to[0] = '/';
  if (length > 0 && roll(8) != 0) to[length - 1] = '\0';
  return length;
}

static void check_answer(const struct answer *answer, const unsigned char *end) {
  check(answer->error >= 0 && answer->error <= 4095, "an errno that is none");
  check(answer->is_given || answer->length == 0, "bytes that were not given");
  check(answer->bytes + answer->length == end, "bytes that are not the frame's");
}

static void check_widening(const struct widening *widening, const unsigned char *end) {
  const char *path = widening->path;
  check(widening->id >= 1 && widening->id <= GRANT_ID_MAX, "a grant of no such number");
  check(widening->what == GRANT_READ || widening->what == GRANT_WRITE || widening->what == GRANT_SOCKET, "a grant of nothing");
  check((const unsigned char *)path + strlen(path) + 1 == end, "a path that is not the frame's");
  check(path[0] == '/' && path[1] != '\0' && path[strlen(path) - 1] != '/', "a path that is not absolute, or the root");
  check(strstr(path, "//") == NULL && strstr(path, "/./") == NULL && strstr(path, "/../") == NULL, "a path that is not plain");
  check(strlen(path) < PATH_MAX, "a path that is too long");
  const char *last = strrchr(path, '/');
  check(strcmp(last, "/.") != 0 && strcmp(last, "/..") != 0, "a path that ends in no name");
}

struct seen {
  long answers, widenings, narrowings;
};

static void frames(struct seen *seen) {
  const uint32_t kind = roll(8) == 0 ? roll(6) : 1 + roll(3), n = roll(40);
  unsigned char room[64];
  for (size_t i = 0; i < sizeof room; i++) room[i] = (unsigned char)roll(256);
  put32(room, kind);
  size_t length = 8;
  if (roll(4) != 0) put32(room + 4, roll(4));
  if (kind == 1) {
    length = 20 + n;
    put32(room + 8, roll(3) == 0 ? roll(5000) : 0);
    put32(room + 12, roll(3));
    put32(room + 16, roll(8) == 0 ? roll(64) : n);
  } else if (kind == 2) {
    put32(room + 8, roll(6));
    put32(room + 12, roll(3));
    length = 16 + some_path(room + 16, sizeof room - 16);
  }
  if (roll(8) == 0) length = 8 + roll(sizeof room - 8);
  unsigned char *exact = malloc(length);
  memcpy(exact, room, length);
  union frame_content content;
  switch (frame_read(exact, length, &content)) {
    case FRAME_ANSWER:
      seen->answers++;
      check_answer(&content.answer, exact + length);
      break;
    case FRAME_WIDEN:
      seen->widenings++;
      check_widening(&content.widening, exact + length);
      break;
    case FRAME_NARROW:
      seen->narrowings++;
      check(length == 8 && content.narrowed != 0, "the end of nothing");
      break;
    default: break;
  }
  free(exact);
  unsigned char head[4];
  put32(head, roll(2) == 0 ? roll(64) : roll(UINT32_MAX));
  const size_t told = frame_length(head);
  check(told == 0 || (told >= 8 && told <= FRAME_MAX), "a frame of no such length");
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
  struct seen seen = {0};
  for (long i = 0; i < rounds; i++) {
    frames(&seen);
    paths();
  }
  const long taken = seen.answers + seen.widenings + seen.narrowings;
  check(rounds < 1000 || (seen.answers > rounds / 50 && seen.widenings > rounds / 200 && seen.narrowings > rounds / 50 && taken < rounds),
        "too few or too many frames were taken for the test to say anything");
  printf("%ld rounds, %ld answers, %ld grants, %ld ends of grants\n", rounds, seen.answers, seen.widenings, seen.narrowings);
  return 0;
}
