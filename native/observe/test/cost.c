/* What a call costs: `cost FOLDER ROUNDS` prints, for each kind, the least and the median of batches, in ns. Run it inside and outside. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BATCH 50

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

static char absolute[4096];

static void once(int kind) {
  int fd = -1;
  switch (kind) {
    case 0: fd = open("file", O_RDONLY); break;
    case 1: fd = open("file", O_WRONLY | O_CREAT | O_TRUNC, 0644); break;
    case 2: fd = open(absolute, O_WRONLY | O_CREAT | O_TRUNC, 0644); break;
    case 3: fd = open("/dev/null", O_WRONLY | O_CREAT, 0644); break;
    case 4:
      if (mkdir("folder", 0755) != 0 || rmdir("folder") != 0) exit(1);
      break;
    case 7:
      umask(022);
      break;
    case 5:
      if (rename("file", "other") != 0 || rename("other", "file") != 0) exit(1);
      break;
    default:
      if (symlink("x", "link") != 0 || unlink("link") != 0) exit(1);
  }
  if (kind < 4 && (fd < 0 || close(fd) != 0)) exit(1);
}

int main(int argc, char **argv) {
  static const char *const NAMES[] = {"open to read", "open to write", "open to write, absolute path", "open /dev/null to write", "mkdir, rmdir", "rename, twice", "symlink, unlink", "umask: a call that is only told of"};
  const int rounds = argc == 3 ? atoi(argv[2]) : 0;
  if (rounds < BATCH || chdir(argv[1]) != 0) return 2;
  const int batches = rounds / BATCH;
  int64_t *taken = calloc((size_t)batches, sizeof *taken);
  if (taken == NULL || getcwd(absolute, sizeof absolute - 8) == NULL) return 2;
  strcat(absolute, "/file");
  for (int kind = -1; kind < 8; kind++) {
    for (int b = 0; b < batches; b++) {
      const int64_t start = now();
      for (int i = 0; i < BATCH; i++) once(kind < 0 ? 1 : kind);
      taken[b] = (now() - start) / BATCH;
    }
    qsort(taken, (size_t)batches, sizeof *taken, compare);
    if (kind >= 0) printf("%-36s %6ld %6ld\n", NAMES[kind], (long)taken[0], (long)taken[batches / 2]);
  }
  return 0;
}
