/* Answers questions of a test about names: on the standard input records of u32 kind, u32 length and a body, on the standard output an answer for each.
 *   1 table                          → u32 0 where it is one
 *   2 u32 counts of git directories, of files that git holds, then of each u32 length and bytes; then the path, to the end
 *                                    → u32 mask, parts, leaf, parts, treatment, mediator, above
 *   3 name                           → u32 length and the folded name
 *   4 u32 length and a folder to be moved, the path it is moved to, to the end; as an open folder the current one
 *                                    → u32 outcome, length and the path of what decided
 *   5 u32 rounds, path               → u32 nanoseconds that one judgement takes */
#define _GNU_SOURCE
#include "names.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

size_t fold_name(const char *name, size_t length, char *to, size_t room);

static uint32_t u32(const unsigned char *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24; }

static void say(uint32_t value) { fwrite(&value, 4, 1, stdout); }

struct known {
  const unsigned char *git, *held, *path;
  uint32_t git_count, held_count;
};

static bool is_in(const unsigned char *at, uint32_t count, const char *path, size_t length) {
  for (; count > 0; count--) {
    const uint32_t size = u32(at);
    if (size == length && memcmp(at + 4, path, length) == 0) return true;
    at += 4 + size;
  }
  return false;
}
static bool is_git_dir(void *with, const char *path, size_t length) {
  const struct known *known = with;
  return is_in(known->git, known->git_count, path, length);
}
static bool is_held(void *with, const char *path, size_t length) {
  const struct known *known = with;
  return is_in(known->held, known->held_count, path, length);
}

static const unsigned char *skip(const unsigned char *at, uint32_t count) {
  for (; count > 0; count--) at += 4 + u32(at);
  return at;
}

static void judge(const struct names *names, const unsigned char *body, uint32_t length) {
  struct known known = {.git = body + 8, .git_count = u32(body), .held_count = u32(body + 4)};
  known.held = skip(known.git, known.git_count);
  known.path = skip(known.held, known.held_count);
  const struct names_disk disk = {.with = &known, .is_git_dir = is_git_dir, .is_held = is_held};
  struct names_answer answer;
  names_judge(names, &disk, (const char *)known.path, (size_t)(body + length - known.path), &answer);
  const uint32_t words[] = {answer.mask, answer.mask_parts, answer.leaf, answer.leaf_parts, answer.treatment, answer.mediator, answer.above};
  fwrite(words, 4, 7, stdout);
}

static void fold(const unsigned char *name, uint32_t length) {
  static char to[13 * NAMES_PATH_MAX];
  const size_t size = fold_name((const char *)name, length, to, sizeof to);
  say((uint32_t)size);
  if (size != SIZE_MAX) fwrite(to, 1, size, stdout);
}

static void move(const struct names *names, const unsigned char *body, uint32_t length) {
  static struct names_found found;
  const uint32_t from = u32(body);
  struct names_disk disk;
  names_disk_at(open("/", O_PATH | O_DIRECTORY), &disk);
  const int folder = open(".", O_PATH | O_DIRECTORY);
  found.path[0] = '\0';
  say(names_may_move(names, &disk, folder, (const char *)body + 4, from, (const char *)body + 4 + from, length - 4 - from, &found));
  say((uint32_t)strlen(found.path));
  fputs(found.path, stdout);
}

static void time_it(const struct names *names, const unsigned char *body, uint32_t length) {
  struct names_disk disk;
  struct names_answer answer;
  names_disk_at(open("/", O_PATH | O_DIRECTORY), &disk);
  struct timespec start, end;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
  for (uint32_t i = u32(body); i > 0; i--) names_judge(names, &disk, (const char *)body + 4, length - 4, &answer);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  say((uint32_t)(((end.tv_sec - start.tv_sec) * 1000000000L + end.tv_nsec - start.tv_nsec) / (long)u32(body)));
}

int main(void) {
  struct names *names = NULL;
  unsigned char head[8];
  while (fread(head, 1, 8, stdin) == 8) {
    const uint32_t length = u32(head + 4);
    unsigned char *body = malloc(length + 1u);
    if (body == NULL || fread(body, 1, length, stdin) != length) return 2;
    if (u32(head) == 1) {
      names_free(names);
      const char *wrong = names_parse(body, length, &names);
      if (wrong != NULL) fprintf(stderr, "%s\n", wrong);
      say(wrong == NULL ? 0 : 1);
    } else if (u32(head) == 3) fold(body, length);
    else if (names == NULL) return 3;
    else if (u32(head) == 2) judge(names, body, length);
    else if (u32(head) == 4) move(names, body, length);
    else if (u32(head) == 5) time_it(names, body, length);
    free(body);
  }
  names_free(names);
  return 0;
}
