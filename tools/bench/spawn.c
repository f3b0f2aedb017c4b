/* Starts programs one after the other, in turns, and measures each from posix_spawn(3) to its end: the same starter for all, so that what differs is the program.
 *
 *   spawn ROUNDS PAYLOADS COUNT -- program arguments… [-- program arguments…]…
 *
 * stdin of run number i is the file PAYLOADS.<i modulo COUNT>; stdout and stderr go to /dev/null. Prints one line per program: the nanoseconds of each run. A program that
 * ends with anything but 0 ends this one with 1. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

enum { MOST = 16 };

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

static long long run(char **program, const char *payload) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, payload, O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  const long long start = now();
  pid_t pid;
  int status = -1;
  const int failed = posix_spawn(&pid, program[0], &files, NULL, program, environ);
  if (failed == 0) waitpid(pid, &status, 0);
  const long long took = now() - start;
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0 || status != 0) {
    fprintf(stderr, "spawn: %s ended with status %d (%s)\n", program[0], status, strerror(failed));
    exit(1);
  }
  return took;
}

int main(int argc, char **argv) {
  if (argc < 6 || strcmp(argv[4], "--") != 0) return 2;
  const int rounds = atoi(argv[1]), count = atoi(argv[3]);
  char **programs[MOST];
  int n = 0;
  for (int i = 4; i < argc && n < MOST; i++) {
    if (strcmp(argv[i], "--") != 0) continue;
    argv[i] = NULL;
    programs[n++] = argv + i + 1;
  }
  if (rounds < 1 || count < 1) return 2;
  long long *took = calloc((size_t)n * (size_t)rounds, sizeof *took);
  if (took == NULL) return 1;
  for (int r = 0; r < rounds; r++) {
    char payload[4096];
    snprintf(payload, sizeof payload, "%s.%d", argv[2], r % count);
    for (int p = 0; p < n; p++) took[p * rounds + r] = run(programs[p], payload);
  }
  for (int p = 0; p < n; p++) {
    for (int r = 0; r < rounds; r++) printf("%s%lld", r > 0 ? " " : "", took[p * rounds + r]);
    printf("\n");
  }
  free(took);
  return 0;
}
