/* Random bytes against what reads a host's frames, in a sanitized build: `fuzz SEED ROUNDS`. Input lies in heap blocks of its exact size, so that reading one
 * byte too far ends the program; a wrong result ends it too. */
#include "front.h"

#include "../../observe/test/fuzz.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *exactly(const unsigned char *bytes, size_t length) {
  unsigned char *copy = malloc(length);
  if (copy == NULL && length > 0) exit(2);
  if (length > 0) memcpy(copy, bytes, length);
  return copy;
}

static void frames(void) {
  unsigned char bytes[128];
  const size_t length = roll(sizeof bytes);
  for (size_t i = 0; i < length; i++) bytes[i] = (unsigned char)(roll(2) == 0 ? roll(256) : roll(3));
  if (length >= 8 && roll(5) > 0) {
    const uint32_t size = roll(3) == 0 ? roll(140) : (uint32_t)length - 4;
    memset(bytes, 0, 8);
    bytes[0] = (unsigned char)size;
    bytes[4] = (unsigned char)roll(9);
  }
  if (length >= 13 && roll(2) == 0) {
    memset(bytes + 8, 0, 4);
    bytes[8] = (unsigned char)roll(5);
    bytes[12] = '/';
    bytes[length - 1] = '\0';
  }
  unsigned char *copy = exactly(bytes, length);
  struct frame frame;
  const ssize_t taken = frame_parse(copy, length, &frame);
  check(taken >= -1 && taken <= (ssize_t)length, "a frame of more than there is");
  if (taken > 0) {
    check(frame.body + frame.length == copy + taken && taken >= 8, "a body past its frame");
    struct launch_order launch;
    struct end_order end;
    int number;
    if (launch_parse(&frame, &launch)) check(launch.attempt < ATTEMPTS_MAX && launch.path[0] == '/' && strlen(launch.path) == frame.length - 5, "a launch that is none");
    if (end_parse(&frame, &end)) check(end.by_signal ? end.value > 0 && end.value < NSIG : end.value >= 0 && end.value <= 255, "an end that is none");
    if (signal_parse(&frame, &number)) check(number > 0 && number < NSIG, "a signal that is none");
    for (size_t n = 0; n < (size_t)taken; n++) {
      unsigned char *cut = exactly(bytes, n);
      check(frame_parse(cut, n, &frame) == 0, "a part of a frame taken for one");
      free(cut);
    }
  }
  free(copy);
}

/* A request says its own length, and has every text in it. */
static void requests(void) {
  char texts[8][24];
  char *words[9] = {0};
  const int argc = 1 + (int)roll(4), variables = (int)roll(4);
  for (int i = 0; i < 8; i++) {
    const size_t length = roll(sizeof texts[i]);
    for (size_t k = 0; k < length; k++) texts[i][k] = (char)(1 + roll(255));
    texts[i][length] = '\0';
  }
  for (int i = 0; i < argc + variables; i++) words[i] = texts[i];
  char *arguments[5] = {0}, *environment[5] = {0};
  memcpy(arguments, words, (size_t)argc * sizeof *words);
  memcpy(environment, words + argc, (size_t)variables * sizeof *words);
  size_t length, ends = 0;
  unsigned char *bytes = request_make(argc, arguments, environment, "/a", 022, 7, &length);
  check(bytes != NULL, "no request");
  struct frame frame;
  check(frame_parse(bytes, length, &frame) == (ssize_t)length && frame.kind == TO_REQUEST, "a request that is no frame");
  for (size_t i = 20; i < frame.length; i++) ends += frame.body[i] == '\0';
  check(ends == (size_t)(1 + argc + variables), "texts that are missing");
  free(bytes);
}

int main(int argc, char **argv) {
  state = argc > 1 ? strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1 : 1;
  const long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 100000;
  for (long i = 0; i < rounds; i++) {
    frames();
    requests();
  }
  printf("%ld rounds\n", rounds);
  return 0;
}
