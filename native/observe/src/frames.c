#include "observe.h"

static uint32_t u32(const unsigned char *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24; }

/* kind, id, errno, given, length */
#define ANSWER_HEAD ((size_t)20)

size_t frame_length(const unsigned char bytes[4]) {
  const size_t length = u32(bytes);
  return length < ANSWER_HEAD || length > FRAME_MAX ? 0 : length;
}

bool frame_answer(const unsigned char *bytes, size_t length, struct answer *answer) {
  if (length < ANSWER_HEAD || u32(bytes) != 1) return false;
  const uint32_t error = u32(bytes + 8), given = u32(bytes + 12), n = u32(bytes + 16);
  if (error > 4095 || given > 1 || n != length - ANSWER_HEAD || (given == 0 && n > 0)) return false;
  *answer = (struct answer){.id = u32(bytes + 4), .error = (int)error, .is_given = given == 1, .bytes = bytes + ANSWER_HEAD, .length = n};
  return true;
}
