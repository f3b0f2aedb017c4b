/* Random bytes against what reads a front's frames and a program's hello, in a sanitized build: `fuzz SEED ROUNDS`. Input lies in heap blocks of its exact size, so that reading one
 * byte too far ends the program; a wrong result ends it too. */
#define _GNU_SOURCE
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
    if (roll(2) == 0) length = FRAME_HEAD + 12 + (size_t)18 * roll(19);
    put32(bytes, roll(4) == 0 ? roll(500) : (uint32_t)length - 4);
    put32(bytes + 4, 1 + roll(8));
    if (length >= FRAME_HEAD + 12 && roll(3) > 0) {
      put32(bytes + FRAME_HEAD, roll(5));
      put32(bytes + FRAME_HEAD + 4, roll(2) == 0 ? roll(200) : roll(20000));
      put32(bytes + FRAME_HEAD + 8, roll(2) == 0 ? 0 : roll(2) == 0 ? 18 * roll(17) : roll(300));
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
      check(dial.count > 0 && dial.count <= ADDRESSES_MAX && dial.count * 18 + 12 + dial.name_length == frame.length && dial.name_length <= NAME_MAX_LENGTH && dial.head <= FIRST_MAX, "an order to dial that is none");
      for (size_t i = 0; i < dial.count; i++) check(dial.addresses[i].port != 0 && memcmp(dial.addresses[i].bytes, frame.body + 12 + dial.name_length + 18 * i, 16) == 0, "another address");
    }
    for (size_t n = 0; n < (size_t)taken; n++) {
      unsigned char *cut = exactly(bytes, n);
      check(frame_parse(cut, n, &frame) == 0, "a part of a frame taken for one");
      free(cut);
    }
  }
  free(copy);
}

static size_t put16(unsigned char *to, size_t value) {
  to[0] = (unsigned char)(value >> 8);
  to[1] = (unsigned char)value;
  return 2;
}

/* A hello for the host; how long it is. */
static size_t make_hello(unsigned char *to, const char *name, size_t name_length) {
  unsigned char *at = to + 5 + 4;
  for (int i = 0; i < 34; i++) *at++ = (unsigned char)roll(256);
  const size_t session = roll(33), ciphers = 2 * (1 + roll(8)), before = roll(4), after = roll(4);
  *at++ = (unsigned char)session;
  at += session;
  at += put16(at, ciphers) + ciphers;
  *at++ = 1;
  *at++ = 0;
  unsigned char *extensions = at;
  at += 2;
  for (size_t i = 0; i <= before + after; i++) {
    const size_t body = i == before ? 5 + name_length : roll(9);
    at += put16(at, i == before ? 0 : 100 + i);
    at += put16(at, body);
    if (i != before) {
      at += body;
      continue;
    }
    at += put16(at, 3 + name_length);
    *at++ = 0;
    at += put16(at, name_length);
    memcpy(at, name, name_length);
    at += name_length;
  }
  put16(extensions, (size_t)(at - extensions) - 2);
  const size_t length = (size_t)(at - to);
  to[0] = 22;
  to[1] = 3;
  to[2] = 1;
  put16(to + 3, length - 5);
  to[5] = 1;
  to[6] = 0;
  put16(to + 7, length - 9);
  return length;
}

static void one_hello(void) {
  static const char NAME[] = "api.example.com";
  static unsigned char bytes[1024];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)roll(256);
  const size_t whole = make_hello(bytes, NAME, sizeof NAME - 1), more = roll(3) * roll(40);
  unsigned char *copy = exactly(bytes, whole + more);
  check(hello_is_for(copy, whole + more, NAME, sizeof NAME - 1), "a plain hello that is not known");
  check(!hello_is_for(copy, whole + more, NAME, sizeof NAME - 2) && !hello_is_for(copy, whole + more, NAME, 0) && !hello_is_for(copy, whole + more, "api.example.org", sizeof NAME - 1),
        "a hello for another host");
  free(copy);
  const size_t length = roll(4) == 0 ? roll((uint32_t)whole) : whole + more;
  copy = exactly(bytes, length);
  for (size_t i = roll(4); i > 0 && length > 0; i--) copy[roll((uint32_t)length)] = (unsigned char)(roll(2) == 0 ? roll(256) : roll(4));
  if (hello_is_for(copy, length, NAME, sizeof NAME - 1)) check(memmem(copy, length, NAME, sizeof NAME - 1) != NULL, "a hello that does not say the name");
  free(copy);
}

int main(int argc, char **argv) {
  state = argc > 1 ? strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1 : 1;
  const long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 100000;
  for (long i = 0; i < rounds; i++) {
    one();
    one_hello();
  }
  printf("%ld rounds\n", rounds);
  return 0;
}
