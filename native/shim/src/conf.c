#define _GNU_SOURCE
#include "shim.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void number(const char *text, int *value) {
  char *end;
  const long n = strtol(text, &end, 10);
  if (end != text && *end == '\0' && n >= 0 && n <= 600000) *value = (int)n;
}

static void set(struct conf *conf, const char *key, const char *value) {
  if (strcmp(key, "node") == 0 && value[0] == '/') {
    free(conf->node);
    conf->node = strdup(value);
  } else if (strcmp(key, "main") == 0 && value[0] == '/') {
    free(conf->main);
    conf->main = strdup(value);
  } else if (strcmp(key, "recording") == 0) {
    /* Only ever stricter: what an administrator set beside the binary, a user's own file does not loosen. */
    conf->required = conf->required || strcmp(value, "required") == 0;
  } else if (strcmp(key, "idle-ms") == 0) {
    number(value, &conf->idle_ms);
  } else if (strcmp(key, "start-ms") == 0) {
    number(value, &conf->start_ms);
  } else if (strcmp(key, "answer-ms") == 0) {
    number(value, &conf->answer_ms);
  } else if (strcmp(key, "node-ms") == 0) {
    number(value, &conf->node_ms);
  }
}

static void read_file(const char *path, struct conf *conf) {
  FILE *file = fopen(path, "re");
  if (file == NULL) return;
  char line[PATH_MAX + 64];
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    char *equals = strchr(line, '=');
    if (line[0] == '#' || equals == NULL) continue;
    *equals = '\0';
    set(conf, line, equals + 1);
  }
  fclose(file);
}

/* The folder of this program's file, false where there is no /proc. */
static bool own_folder(char *path, size_t size) {
  const ssize_t n = readlink("/proc/self/exe", path, size - 1);
  if (n <= 0) return false;
  path[n] = '\0';
  char *slash = strrchr(path, '/');
  if (slash == NULL || slash == path) return false;
  *slash = '\0';
  return true;
}

void conf_read(const char *home, struct conf *conf) {
  char folder[PATH_MAX], path[PATH_MAX];
  if (own_folder(folder, sizeof folder) && join(path, sizeof path, folder, "shim.conf")) read_file(path, conf);
  if (join(path, sizeof path, home, "run/shim.conf")) read_file(path, conf);
}

bool default_home(char *path, size_t size) {
  /* Not ND7_HOME: an agent that writes `env` into its project's settings chooses the environment of its hooks, and would choose where it is recorded. */
  /* getpwuid() of a static program would load shared libraries: the file itself, and for users that stand elsewhere their HOME. */
  char line[PATH_MAX + 512];
  FILE *file = fopen("/etc/passwd", "re");
  bool found = false;
  while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
    char *fields[7] = {line};
    size_t count = 1;
    for (char *c = line; *c != '\0' && count < 7; c++) {
      if (*c != ':') continue;
      *c = '\0';
      fields[count++] = c + 1;
    }
    char *end;
    if (count == 7 && fields[5][0] == '/' && strtoul(fields[2], &end, 10) == geteuid() && *end == '\0') found = join(path, size, fields[5], ".nd7");
  }
  if (file != NULL) fclose(file);
  const char *user_home = getenv("HOME");
  return found || (user_home != NULL && user_home[0] == '/' && join(path, size, user_home, ".nd7"));
}

/* Whether a user can be told from others here: in a user namespace of its own (a confined session) the files of all who are not in it look like one
 * user's, root's too. */
static bool known(uid_t uid) {
  FILE *file = fopen("/proc/self/uid_map", "re");
  if (file == NULL) return true;
  unsigned long first, outside, count;
  bool found = false;
  while (!found && fscanf(file, "%lu %lu %lu", &first, &outside, &count) == 3) found = uid >= first && uid - first < count;
  fclose(file);
  return found;
}

/* Whose a path has to be, besides that nobody else may write to it. */
enum owner { ANYBODY, THEIRS, THEIRS_OR_UNKNOWN };

/* Whether others than this user and root can change what stands at a path. A path that is not there is nobody's. */
static bool writable_by_others(const char *path, enum owner owner) {
  struct stat s;
  if (stat(path, &s) != 0) return false;
  if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0) return true;
  if (owner == ANYBODY || s.st_uid == geteuid() || s.st_uid == 0) return false;
  return owner == THEIRS || known(s.st_uid);
}

const char *untrusted(const char *home) {
  static char said[2 * PATH_MAX];
  char self[PATH_MAX];
  char path[PATH_MAX];
  const char *bad = NULL;
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n > 0) {
    self[n] = '\0';
    if (writable_by_others(self, ANYBODY)) bad = self;
  }
  if (bad == NULL && own_folder(self, sizeof self)) {
    if (writable_by_others(self, ANYBODY)) bad = self;
    /* What an administrator laid beside it: a session cannot see that it is root's, and it names nothing there that could leave it. */
    else if (join(path, sizeof path, self, "shim.conf") && writable_by_others(path, THEIRS_OR_UNKNOWN)) bad = path;
  }
  if (bad == NULL && writable_by_others(home, THEIRS)) bad = home;
  const char *const inside[] = {"run", "run/shim.conf"};
  for (size_t i = 0; bad == NULL && i < sizeof inside / sizeof *inside; i++) {
    if (join(path, sizeof path, home, inside[i]) && writable_by_others(path, THEIRS)) bad = path;
  }
  if (bad == NULL) return NULL;
  snprintf(said, sizeof said, "%s can be changed by other users, so nd7 does not record through it: chown it to yourself and run chmod go-w on it", bad);
  return said;
}
