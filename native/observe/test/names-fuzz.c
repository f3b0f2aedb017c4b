/* Random bytes, tables that are nearly right and hostile paths against the matcher in a sanitized build: `names-fuzz SEED ROUNDS < TABLES`. The standard input has
 * good tables, each behind its length in four bytes; a table and a path lie in heap blocks of their exact size, so that reading one byte too far ends the program. */
#include "names.h"

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLES_MAX 64
static unsigned char *tables[TABLES_MAX];
static uint32_t sizes[TABLES_MAX], table_count;

static void read_tables(void) {
  unsigned char head[4];
  while (table_count < TABLES_MAX && fread(head, 1, 4, stdin) == 4) {
    const uint32_t size = (uint32_t)head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16;
    tables[table_count] = malloc(size);
    check(tables[table_count] != NULL && fread(tables[table_count], 1, size, stdin) == size, "a table is cut short");
    sizes[table_count++] = size;
  }
  check(table_count > 0, "no tables");
}

static bool some_answer(void *with, const char *path, size_t length) {
  (void)with;
  check(length > 0 && path[0] == '/' && (length == 1 || path[length - 1] != '/'), "a question about no path");
  return roll(2) == 0;
}

static size_t some_path(char *to, size_t room) {
  static const char *const parts[] = {"/",     ".git",   "hooks", ".claude", ".CLAUDE.", ".env", "node_modules", "home", "dev",      "config", ".github", "modules", "\xff",
                                      "\xc3", "\xed\xa0\x80", "\xe2\x80\x8c", "\xef\xb7\xba", "\xcd\x85", "\xcc\x81", ".", "..", "*", "a:b", "\xf0\x9f\x98\x80", "HEAD", "info/attributes"};
  size_t length = 0;
  if (roll(20) > 0) to[length++] = '/';
  for (uint32_t n = roll(12); n > 0 && length + 32 < room; n--) {
    const char *part = parts[roll(sizeof parts / sizeof *parts)];
    memcpy(to + length, part, strlen(part));
    length += strlen(part);
    if (roll(4) > 0) to[length++] = '/';
    if (roll(8) == 0) to[length++] = (char)roll(256);
  }
  if (roll(50) == 0)
    for (; length < room; length++) to[length] = "\xef\xb7\xba"[length % 3];
  if (length > 1 && to[length - 1] == '/') length--;
  return length;
}

static void ask(const struct names *names) {
  static char paths[2][NAMES_PATH_MAX + 8];
  size_t lengths[2];
  char *exact[2];
  for (int i = 0; i < 2; i++) {
    lengths[i] = some_path(paths[i], sizeof paths[i]);
    exact[i] = malloc(lengths[i]);
    check(exact[i] != NULL || lengths[i] == 0, "no memory");
    if (lengths[i] > 0) memcpy(exact[i], paths[i], lengths[i]);
  }
  const struct names_disk disk = {.is_git_dir = some_answer, .is_held = some_answer, .has_head = some_answer};
  struct names_answer answer;
  names_judge(names, &disk, exact[0], lengths[0], &answer);
  check((answer.mask == NAMES_NONE) == (answer.mask_parts == 0), "a mask without an extent");
  check(answer.leaf == NAMES_NONE || answer.leaf_parts > 0, "a leaf without an extent");
  check((answer.treatment == NAMES_MEDIATE) == (answer.mediator != NAMES_NO_MEDIATOR), "a mediator without mediation");
  static struct names_found found;
  check(names_may_move(names, &disk, -1, exact[0], lengths[0], exact[0], lengths[0], &found) != NAMES_MOVE_REFUSED, "a folder that stays where it is");
  names_may_move(names, &disk, -1, exact[0], lengths[0], exact[1], lengths[1], &found);
  names_completes_git_dir(exact[1], lengths[1]);
  for (int i = 0; i < 2; i++) free(exact[i]);
}

int main(int argc, char **argv) {
  state = argc > 1 ? strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1 : 1;
  const long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 10000;
  read_tables();
  long taken = 0;
  for (long i = 0; i < rounds; i++) {
    const uint32_t which = roll(table_count);
    const size_t size = roll(8) == 0 ? roll(sizes[which] + 1) : sizes[which];
    unsigned char *bytes = malloc(size);
    check(bytes != NULL || size == 0, "no memory");
    if (size > 0) memcpy(bytes, tables[which], size);
    /* Most of the damage where the numbers are: at the end. */
    for (uint32_t n = roll(4); n > 0 && size > 16; n--) bytes[roll(2) == 0 ? roll((uint32_t)size) : (uint32_t)size - 1 - roll((uint32_t)size / 2)] = (unsigned char)roll(roll(2) == 0 ? 4 : 256);
    struct names *names;
    if (names_parse(bytes, size, &names) == NULL) {
      taken++;
      free(bytes);
      for (int n = 0; n < 8; n++) ask(names);
      names_free(names);
    } else {
      check(names == NULL, "a table that is none was given out");
      free(bytes);
    }
  }
  check(rounds < 1000 || (taken > rounds / 50 && taken < rounds), "too few or too many tables were taken for the test to say anything");
  for (uint32_t i = 0; i < table_count; i++) free(tables[i]);
  printf("%ld rounds, %ld tables\n", rounds, taken);
  return 0;
}
