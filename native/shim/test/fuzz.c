/* Random bytes against the two parsers of the shim, in a sanitized build: `fuzz SEED ROUNDS`. Input lies in heap blocks of its exact size, so that reading
 * one byte too far ends the program; a wrong result ends it too. */
#include "shim.h"

#include "../../observe/test/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text that is nearly JSON: brackets, quotes, escapes and the wanted key come often. */
static size_t nearly_json(char *to, size_t size) {
  static const char *const words[] = {"{", "}", "[", "]", "\"", "\\", ",", ":", " ", "\n", "hook_event_name", "\"hook_event_name\":", "\"PreToolUse\"", "true", "-1e9", "\\u00", "\xff", "\xc3\xa9"};
  size_t length = 0;
  for (uint32_t n = roll(60); n > 0; n--) {
    const char *word = words[roll(sizeof words / sizeof *words)];
    size_t more = strlen(word);
    if (roll(20) == 0) {
      to[length++] = (char)roll(256);
      continue;
    }
    if (length + more + 1 > size) break;
    memcpy(to + length, word, more);
    length += more;
  }
  return length;
}

static char *exactly(const char *bytes, size_t length) {
  char *copy = malloc(length > 0 ? length : 1);
  if (copy == NULL) exit(2);
  memcpy(copy, bytes, length);
  if (length == 0) {
    free(copy);
    copy = malloc(0);
  }
  return copy;
}

static void ends(void) {
  char text[1200];
  const size_t length = nearly_json(text, sizeof text - 8);
  char *copy = exactly(text, length);
  struct json_end whole = {0}, parts = {0};
  const size_t end = json_end_feed(&whole, copy, length);
  check(end <= length, "an end past the bytes");
  size_t at = 0, found = 0;
  while (at < length && found == 0) {
    const size_t n = 1 + roll((uint32_t)(length - at));
    char *piece = exactly(text + at, n);
    const size_t stop = json_end_feed(&parts, piece, n);
    free(piece);
    if (stop > 0) found = at + stop;
    at += n;
  }
  check(found == end, "the end depends on how the bytes came");
  char out[16];
  if (json_top_string(copy, length, "hook_event_name", out, sizeof out)) check(strlen(out) > 0 && strlen(out) < sizeof out && memchr(out, '"', strlen(out)) == NULL, "a bad member");
  else check(out[0] == '\0', "a member that is none");
  free(copy);
}

static void answers(void) {
  char frame[256];
  size_t length = roll(sizeof frame);
  for (size_t i = 0; i < length; i++) frame[i] = (char)(roll(3) == 0 ? roll(256) : 0);
  if (roll(4) > 0 && length >= 4) memcpy(frame, "nd7\1", 4);
  if (length >= 12 && roll(3) > 0) {
    memset(frame + 4, 0, 8);
    frame[4] = (char)roll(256);
    frame[8] = (char)roll(64);
  }
  char *copy = exactly(frame, length);
  struct answer answer;
  const int whole = answer_parse(copy, length, &answer);
  if (whole == 1) {
    check(answer.exit_code >= 0 && answer.exit_code <= 255, "an exit code that is none");
    check(answer.out + answer.out_length <= copy + length && answer.err + answer.err_length <= copy + length, "an answer past its bytes");
    for (size_t n = 0; n < (size_t)(answer.err - copy) + answer.err_length; n++) {
      char *cut = exactly(frame, n);
      struct answer none;
      check(answer_parse(cut, n, &none) == 0, "a part of an answer taken for one");
      free(cut);
    }
  }
  free(copy);
}

int main(int argc, char **argv) {
  state = argc > 1 ? strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1 : 1;
  const long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 100000;
  for (long i = 0; i < rounds; i++) {
    ends();
    answers();
  }
  printf("%ld rounds\n", rounds);
  return 0;
}
