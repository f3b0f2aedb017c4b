/* Ways by which protected names stood once: what the supervisor has looked at is changed by another thread before the call is made, by calls of which some are
 * not asked about (chmod, unlink). `attack WAY SECONDS` in a folder of its own, next to which a name is protected; says what stands in the end, or `held`. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static atomic_int stop;
static int safe, hot;
#define SLOT 200

static int make(const char *name) {
  const int fd = open(name, O_CREAT | O_WRONLY, 0644);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

/* --- what the other thread does ---------------------------------------------------------------------------------- */

static void appear(void) {
  make("source");
  unlink("source");
}

static void close_folder(void) {
  chmod("closed", 0);
  chmod("closed", 0755);
}

static void flip(void) {
  make("file");
  (void)!rename("file", "source");
  (void)!symlink("/tmp", "link");
  (void)!rename("link", "source");
}

static void turn(void) {
  dup2(safe, SLOT);
  dup2(hot, SLOT);
  (void)!fchdir(safe);
  (void)!fchdir(hot);
}

/* --- what is tried ------------------------------------------------------------------------------------------------ */

static void rename_source(void) { (void)!rename("source", "../.envrc"); }

/* A folder with hooks in it is to come to stand as .github. */
static void exchange_folder(void) { (void)!renameat2(AT_FDCWD, "../.github", AT_FDCWD, "closed/folder", RENAME_EXCHANGE); }

static void open_config(void) { make("closed/config"); }

static void rename_link(void) { (void)!rename("source", "../.github"); }

static void link_link(void) { (void)!link("source", "../.github"); }

static void by_folder(void) {
  const int fd = openat(SLOT, ".envrc", O_CREAT | O_WRONLY, 0644);
  if (fd >= 0) close(fd);
  (void)!mkdirat(SLOT, ".claude", 0755);
  (void)!symlinkat("/tmp", SLOT, ".github");
  make("free");
  (void)!rename("free", ".envrc");
}

/* --- what must not stand ------------------------------------------------------------------------------------------ */

static int is_there(const char *name) {
  struct stat s;
  return fstatat(hot, name, &s, AT_SYMLINK_NOFOLLOW) == 0;
}
static int is_link(void) {
  struct stat s;
  const int there = fstatat(hot, ".github", &s, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && !S_ISLNK(s.st_mode)) unlinkat(hot, ".github", 0);
  return there && S_ISLNK(s.st_mode);
}
static int has_envrc(void) { return is_there(".envrc"); }
static int has_hooks(void) { return is_there(".github/hooks"); }
static int has_config(void) { return is_there("attack/closed/config"); }
static int has_any(void) { return is_there(".envrc") || is_there(".claude") || is_there(".github"); }

static const struct way {
  const char *name;
  void (*other)(void);
  void (*attempt)(void);
  int (*stands)(void);
} WAYS[] = {
    {"source-appears", appear, rename_source, has_envrc},  {"exchange-closed", close_folder, exchange_folder, has_hooks}, {"head-closed", close_folder, open_config, has_config},
    {"rename-flips", flip, rename_link, is_link},          {"link-flips", flip, link_link, is_link},                      {"folder-turns", turn, by_folder, has_any},
};

static void *run(void *of) {
  const struct way *way = of;
  while (!stop) way->other();
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  hot = open("..", O_RDONLY | O_DIRECTORY);
  safe = open(".", O_RDONLY | O_DIRECTORY);
  if (hot < 0 || safe < 0 || dup2(safe, SLOT) < 0) return 2;
  for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
    if (strcmp(WAYS[i].name, argv[1]) != 0) continue;
    pthread_t thread;
    struct way way = WAYS[i];
    if (pthread_create(&thread, NULL, run, &way) != 0) return 2;
    const time_t end = time(NULL) + atoi(argv[2]);
    int stands = 0;
    long tries = 0;
    while (!stands && time(NULL) < end) {
      way.attempt();
      /* Looking takes time that is better used to try. */
      if (++tries % 16 == 0) stands = way.stands();
    }
    stop = 1;
    pthread_join(thread, NULL);
    chmod("closed", 0755);
    puts(stands || way.stands() ? "it stands" : tries > 100 ? "held" : "not tried");
    return 0;
  }
  return 2;
}
