#define _GNU_SOURCE
#include "front.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"

/* The folder that this program was put into is `bin` of the home that it was attached with. */
static bool own_home(char *path, size_t size) {
  const ssize_t n = readlink("/proc/self/exe", path, size - 1);
  if (n <= 0) return false;
  path[n] = '\0';
  for (int i = 0; i < 2; i++) {
    char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path) return false;
    *slash = '\0';
  }
  return true;
}

static char *on_path(const char *name) {
  const char *folders = getenv("PATH");
  char path[PATH_MAX];
  for (const char *at = folders; at != NULL && *at != '\0';) {
    const size_t length = strcspn(at, ":");
    const int n = snprintf(path, sizeof path, "%.*s/%s", (int)length, at, name);
    if (length > 0 && at[0] == '/' && n > 0 && (size_t)n < sizeof path && access(path, X_OK) == 0) return strdup(path);
    at += length + (at[length] == ':' ? 1 : 0);
  }
  return NULL;
}

/* As nd7Home (apps/agent/src/recorder/home-path.ts). */
static const char *home_of(void) {
  static char home[PATH_MAX];
  char cwd[PATH_MAX];
  const char *named = getenv("ND7_HOME"), *user = getenv("HOME");
  if (named != NULL && named[0] == '/') return named;
  if (named != NULL && named[0] != '\0') return getcwd(cwd, sizeof cwd) != NULL && join(home, sizeof home, cwd, named) ? home : NULL;
  return user != NULL && user[0] == '/' && join(home, sizeof home, user, ".nd7") ? home : NULL;
}

void place_find(struct place *place) {
  char attached[PATH_MAX];
  struct conf conf = {.start_ms = 5000};
  if (own_home(attached, sizeof attached)) conf_read(attached, &conf);
  *place = (struct place){.node = conf.node, .main = conf.main, .home = home_of(), .start_ms = conf.start_ms};
  if (place->node == NULL || access(place->node, X_OK) != 0) place->node = on_path("node");
}

static _Noreturn void say(const char *what, const char *path, const char *next) {
  dprintf(STDERR_FILENO, "nd7: %s%s%s\n     %s\n", what, path == NULL ? "" : ": ", path == NULL ? "" : path, next);
  _exit(1);
}

_Noreturn void become_cli(const struct place *place, int argc, char **argv) {
  if (place->main == NULL || access(place->main, R_OK) != 0)
    say("the program that this command stands for is not where it was", place->main, "Run `nd7 init` once from the folder that nd7 is in: node apps/agent/bin/nd7.js init");
  if (place->node == NULL) say("there is no Node to run nd7 with: neither the one it was attached with nor one on PATH", NULL, "Install Node 20.19 or later.");
  char **words = calloc((size_t)argc + 2, sizeof *words);
  if (words == NULL) say("there is no memory", NULL, "Try again.");
  words[0] = place->node;
  words[1] = place->main;
  for (int i = 1; i < argc; i++) words[i + 1] = argv[i];
  execv(place->node, words);
  say(strerror(errno), place->node, "Run `nd7 init` once from the folder that nd7 is in: node apps/agent/bin/nd7.js init");
}

bool is_for_a_start(const char *variable) {
  static const char *const names[] = {"NODE_", "UV_", "SSL_CERT_", "OPENSSL_", "LD_", "GLIBC_", "MALLOC_", "ICU_", "ND7_DEBUG="};
  /* A host is started with those of the last line, and refuses a front that has others. */
  static const char *const plain[] = {"NODE_ENV=", "NODE_PATH=",
                                      "NODE_EXTRA_CA_CERTS=", "SSL_CERT_FILE=", "SSL_CERT_DIR="};
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    if (strncmp(variable, plain[i], strlen(plain[i])) == 0) return false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(variable, names[i], strlen(names[i])) == 0) return true;
  return false;
}
