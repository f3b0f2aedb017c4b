#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool wait_for(int fd, short events, int64_t deadline) {
  for (;;) {
    const int64_t left = deadline - now_ms();
    struct pollfd p = {.fd = fd, .events = events};
    const int n = poll(&p, 1, left < 0 ? 0 : left > 1000000 ? 1000000 : (int)left);
    if (n > 0) return true;
    if (n == 0) return false;
    if (errno != EINTR) return false;
  }
}

bool write_all(int fd, const void *bytes, size_t length, int64_t deadline) {
  const char *at = bytes;
  while (length > 0) {
    const ssize_t n = write(fd, at, length);
    if (n > 0) {
      at += n;
      length -= (size_t)n;
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait_for(fd, POLLOUT, deadline)) return false;
    } else if (n < 0 && errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool join(char *path, size_t size, const char *home, const char *name) {
  const int n = snprintf(path, size, "%s/%s", home, name);
  return n > 0 && (size_t)n < size;
}

/* What a Node process of ours may know of an agent's environment, which holds keys, and options that load code or switch TLS off. Nothing that says where
   programs or files are: a project's settings choose it, and a recorder outlives the session that started it. */
static const char *const PASSED[] = {"HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ"};

const char *const AGENT_ENVIRONMENT[] = {"CLAUDE_CODE_SESSION_ID", "CLAUDE_PID",       "CLAUDE_PROJECT_DIR", "CLAUDE_CONFIG_DIR",
                                         "CLAUDE_CODE_ENTRYPOINT", "CODEX_SESSION_ID", "GEMINI_SESSION_ID",  "GEMINI_PROJECT_DIR",
                                         NULL};

/* "NAME=value" in memory that lives as long as the process; NULL when there is none. */
static char *assignment(const char *name, const char *value) {
  if (value == NULL) return NULL;
  const size_t size = strlen(name) + strlen(value) + 2;
  char *text = malloc(size);
  if (text != NULL) snprintf(text, size, "%s=%s", name, value);
  return text;
}

char **node_environment(const char *home, const char *why) {
  static char *environment[32];
  size_t n = 0;
  for (size_t i = 0; i < sizeof PASSED / sizeof *PASSED; i++) {
    if ((environment[n] = assignment(PASSED[i], getenv(PASSED[i]))) != NULL) n++;
  }
  for (size_t i = 0; why != NULL && AGENT_ENVIRONMENT[i] != NULL; i++) {
    if ((environment[n] = assignment(AGENT_ENVIRONMENT[i], getenv(AGENT_ENVIRONMENT[i]))) != NULL) n++;
  }
  if ((environment[n] = assignment("ND7_SHIM", why)) != NULL) n++;
  if ((environment[n] = assignment("ND7_HOME", home)) != NULL) n++;
  /* A recorder rests for hours: as startRecorder (apps/agent/src/recorder/start.ts). */
  if (why == NULL) environment[n++] = (char *)"MALLOC_ARENA_MAX=1";
  environment[n] = NULL;
  return environment;
}
