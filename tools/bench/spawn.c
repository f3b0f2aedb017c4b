/* Starts programs one after the other, in turns, and measures each from posix_spawn(3) to its end: the same starter for all, so that what differs is the program.
 *
 *   spawn ROUNDS PAYLOADS COUNT -- program arguments… [-- program arguments…]…
 *
 * stdin of run number i is the file PAYLOADS.<i modulo COUNT>; stdout and stderr go to /dev/null. Prints one line per program: the nanoseconds of each run. A program that
 * ends with anything but 0 ends this one with 1.
 *
 * A program called @PLAN is a launcher (the next word) that is given this plan as `nd7 run` gives it, and told to go on as soon as it has said that all is ready
 * (docs/protocol/launch-plan.md). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { MOST = 16 };

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

static _Noreturn void stop(const char *program, const char *why) {
  fprintf(stderr, "spawn: %s %s\n", program, why);
  exit(1);
}

/* Channels of a launcher: the plan, its listeners, its supervisor. */
enum { FIRST_CHANNEL = 3, CHANNELS = 3, ASIDE = 32 };

struct plan {
  char *bytes;
  size_t length;
};

static struct plan read_plan(const char *path) {
  struct plan plan = {malloc(8 << 20), 0};
  FILE *file = fopen(path, "r");
  if (file == NULL || plan.bytes == NULL) stop(path, "cannot be read");
  plan.length = fread(plan.bytes, 1, 8 << 20, file);
  fclose(file);
  return plan;
}

/* Hands a plan over and says the word when all is ready; what the launcher reports comes in records that end by NUL. */
static void lead(int channel, const struct plan *plan, const char *program) {
  for (size_t sent = 0; sent < plan->length;) {
    const ssize_t n = write(channel, plan->bytes + sent, plan->length - sent);
    if (n <= 0) stop(program, "did not take the plan");
    sent += (size_t)n;
  }
  static char heard[1 << 16];
  size_t length = 0;
  for (;;) {
    const ssize_t n = read(channel, heard + length, sizeof heard - length);
    if (n <= 0) stop(program, length > 0 ? heard : "said nothing");
    length += (size_t)n;
    if (memmem(heard, length, "failed\t", 7) != NULL) stop(program, memmem(heard, length, "failed\t", 7));
    if (memmem(heard, length, "started\t", 8) != NULL && heard[length - 1] == '\0') break;
  }
  if (write(channel, "g", 1) != 1) stop(program, "did not wait");
}

static long long run(char **program, const struct plan *plan, const char *payload) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, payload, O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  const long long start = now();
  int ends[CHANNELS][2];
  for (int i = 0; plan != NULL && i < CHANNELS; i++) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends[i]) != 0) stop(program[0], "gets no channel");
    posix_spawn_file_actions_adddup2(&files, ends[i][1], ASIDE + i);
  }
  /* In two steps, since an end may have the very number that another one is to get; the launcher closes what it does not know. */
  for (int i = 0; plan != NULL && i < CHANNELS; i++) posix_spawn_file_actions_adddup2(&files, ASIDE + i, FIRST_CHANNEL + i);
  pid_t pid;
  int status = -1;
  const int failed = posix_spawn(&pid, program[0], &files, NULL, program, environ);
  for (int i = 0; plan != NULL && i < CHANNELS; i++) close(ends[i][1]);
  if (failed == 0 && plan != NULL) lead(ends[0][0], plan, program[0]);
  if (failed == 0) waitpid(pid, &status, 0);
  const long long took = now() - start;
  for (int i = 0; plan != NULL && i < CHANNELS; i++) close(ends[i][0]);
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
  struct plan plans[MOST];
  int n = 0;
  for (int i = 4; i < argc && n < MOST; i++) {
    if (strcmp(argv[i], "--") != 0) continue;
    argv[i] = NULL;
    char **program = argv + i + 1;
    const bool is_launcher = *program != NULL && **program == '@';
    if (is_launcher) plans[n] = read_plan(*program + 1);
    else plans[n].bytes = NULL;
    programs[n++] = program + is_launcher;
  }
  if (rounds < 1 || count < 1) return 2;
  long long *took = calloc((size_t)n * (size_t)rounds, sizeof *took);
  if (took == NULL) return 1;
  for (int r = 0; r < rounds; r++) {
    char payload[4096];
    snprintf(payload, sizeof payload, "%s.%d", argv[2], r % count);
    for (int p = 0; p < n; p++) took[p * rounds + r] = run(programs[p], plans[p].bytes == NULL ? NULL : &plans[p], payload);
  }
  for (int p = 0; p < n; p++) {
    for (int r = 0; r < rounds; r++) printf("%s%lld", r > 0 ? " " : "", took[p * rounds + r]);
    printf("\n");
  }
  free(took);
  return 0;
}
