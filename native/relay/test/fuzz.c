/* Random bytes against what reads a front's frames, in a sanitized build: `fuzz SEED ROUNDS`. Input lies in heap blocks of its exact size, so that reading one
 * byte too far ends the program; a wrong result ends it too. */
#include "relay.h"

#include "../../observe/test/fuzz.h"

#include <string.h>

static unsigned char *exactly(const unsigned char *bytes, size_t length) {
  unsigned char *copy = malloc(length > 0 ? length : 1);
  if (copy == NULL) exit(2);
  memcpy(copy, bytes, length);
  return copy;
}

static void one(void) {
  unsigned char bytes[400];
  size_t length = roll(sizeof bytes);
  for (size_t i = 0; i < length; i++) bytes[i] = (unsigned char)(roll(2) == 0 ? roll(256) : roll(3));
  /* Often of the right size, and often what would be a whole order to dial. */
  if (length >= FRAME_HEAD && roll(6) > 0) {
    if (roll(2) == 0) length = FRAME_HEAD + 8 + (size_t)18 * roll(19);
    put32(bytes, roll(4) == 0 ? roll(500) : (uint32_t)length - 4);
    put32(bytes + 4, 1 + roll(8));
    if (length >= FRAME_HEAD + 8 && roll(3) > 0) {
      put32(bytes + FRAME_HEAD, roll(5));
      put32(bytes + FRAME_HEAD + 4, roll(2) == 0 ? roll(200) : roll(20000));
    }
  }
  unsigned char *copy = exactly(bytes, length);
  struct frame frame;
  const ssize_t taken = frame_parse(copy, length, &frame);
  check(taken >= -1 && taken <= (ssize_t)length && (taken <= 0 || taken >= (ssize_t)FRAME_HEAD), "a frame of more than there is");
  if (taken > 0) {
    check(frame.body + frame.length == copy + taken, "a body past its frame");
    struct dial dial;
    uint32_t number;
    if (number_parse(&frame, &number)) check(frame.length == 4, "a number that is none");
    if (dial_parse(&frame, &dial)) {
      check(dial.count > 0 && dial.count <= ADDRESSES_MAX && dial.count * 18 + 8 == frame.length && dial.head <= FIRST_MAX, "an order to dial that is none");
      for (size_t i = 0; i < dial.count; i++) check(dial.addresses[i].port != 0 && memcmp(dial.addresses[i].bytes, frame.body + 8 + 18 * i, 16) == 0, "another address");
    }
    for (size_t n = 0; n < (size_t)taken; n++) {
      unsigned char *cut = exactly(bytes, n);
      check(frame_parse(cut, n, &frame) == 0, "a part of a frame taken for one");
      free(cut);
    }
  }
  free(copy);
}

int main(int argc, char **argv) {
  state = argc > 1 ? strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1 : 1;
  const long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 100000;
  for (long i = 0; i < rounds; i++) one();
  printf("%ld rounds\n", rounds);
  return 0;
}
