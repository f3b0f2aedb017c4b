#include "observe.h"

#include <string.h>

static uint32_t u32(const unsigned char *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24; }

enum frame_kind { ANSWER = 1, WIDEN, NARROW };

/* kind, id; then of an answer errno, given, length; of a grant what, flags */
#define HEAD ((size_t)8)
#define ANSWER_HEAD ((size_t)20)
#define WIDEN_HEAD ((size_t)16)

size_t frame_length(const unsigned char bytes[4]) {
  const size_t length = u32(bytes);
  return length < HEAD || length > FRAME_MAX ? 0 : length;
}

static bool take_answer(const unsigned char *bytes, size_t length, struct answer *answer) {
  if (length < ANSWER_HEAD) return false;
  const uint32_t error = u32(bytes + 8), given = u32(bytes + 12), n = u32(bytes + 16);
  if (error > 4095 || given > 1 || n != length - ANSWER_HEAD || (given == 0 && n > 0)) return false;
  *answer = (struct answer){.id = u32(bytes + 4), .error = (int)error, .is_given = given == 1, .bytes = bytes + ANSWER_HEAD, .length = n};
  return true;
}

/* Absolute, without empty, "." and ".." parts, and not the root itself. */
static bool is_plain_path(const char *path) {
  if (path[0] != '/') return false;
  for (const char *part = path; *part != '\0';) {
    const char *name = part + 1;
    const size_t n = strcspn(name, "/");
    if (n == 0 || n > NAME_MAX || (n == 1 && name[0] == '.') || (n == 2 && name[0] == '.' && name[1] == '.')) return false;
    part = name + n;
  }
  return true;
}

static bool take_widen(const unsigned char *bytes, size_t length, struct widening *widening) {
  if (length < WIDEN_HEAD + 3 || length > WIDEN_HEAD + PATH_MAX) return false;
  const unsigned char *path = bytes + WIDEN_HEAD;
  const uint32_t id = u32(bytes + 4), what = u32(bytes + 8), flags = u32(bytes + 12);
  if (id == 0 || id > GRANT_ID_MAX || (what != GRANT_READ && what != GRANT_WRITE && what != GRANT_SOCKET) || flags > 1) return false;
  if (memchr(path, '\0', length - WIDEN_HEAD) != bytes + length - 1 || !is_plain_path((const char *)path)) return false;
  *widening = (struct widening){.id = id, .what = (enum grant_what)what, .below = flags == 1, .path = (const char *)path};
  return true;
}

enum frame frame_read(const unsigned char *bytes, size_t length, union frame_content *content) {
  switch (u32(bytes)) {
    case ANSWER: return take_answer(bytes, length, &content->answer) ? FRAME_ANSWER : FRAME_WRONG;
    case WIDEN: return take_widen(bytes, length, &content->widening) ? FRAME_WIDEN : FRAME_WRONG;
    case NARROW:
      content->narrowed = u32(bytes + 4);
      return length == HEAD && content->narrowed != 0 ? FRAME_NARROW : FRAME_WRONG;
    default: return FRAME_WRONG;
  }
}
