#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads a small file of /proc whole; false when it is not there. */
static bool read_text(const char *path, char *text, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  size_t length = 0;
  ssize_t n;
  while (length + 1 < size && (n = read(fd, text + length, size - 1 - length)) > 0) length += (size_t)n;
  close(fd);
  text[length] = '\0';
  return length > 0;
}

char process_state(pid_t pid) {
  char path[32], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  if (!read_text(path, text, sizeof text)) return 0;
  /* The name may hold anything, brackets too; the state follows its last one. */
  const char *end = strrchr(text, ')');
  return end != NULL && end[1] == ' ' ? end[2] : 0;
}

/* Whether a line of /proc/PID/status has this value, a number in the base given. */
static bool has_value(const char *status, const char *name, int base, unsigned long long wanted) {
  const char *line = strstr(status, name);
  return line != NULL && line > status && line[-1] == '\n' && strtoull(line + strlen(name), NULL, base) == wanted;
}

static bool told(const char *name, bool ok) {
  report("proof\t%s\t%s\t0\t0", name, ok ? "held" : "broken");
  return ok;
}

void namespaces_of(pid_t pid, struct namespaces *namespaces) {
  static const char *const NAMES[NAMESPACES] = {"mnt", "pid", "ipc", "net", "user"};
  *namespaces = (struct namespaces){0};
  for (size_t i = 0; i < NAMESPACES; i++) {
    char path[48];
    if (pid == 0) snprintf(path, sizeof path, "/proc/self/ns/%s", NAMES[i]);
    else snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, NAMES[i]);
    if (readlink(path, namespaces->names[i], sizeof namespaces->names[i] - 1) <= 0) return;
    namespaces->known++;
  }
}

static bool in_new_namespaces(pid_t pid, uint32_t flags, const struct namespaces *own) {
  struct namespaces its;
  namespaces_of(pid, &its);
  const size_t count = (flags & PLAN_USERNS) != 0 ? NAMESPACES : NAMESPACES - 1;
  if (own->known < count || its.known < count) return false;
  for (size_t i = 0; i < count; i++)
    if (strcmp(own->names[i], its.names[i]) == 0) return false;
  return true;
}

bool agent_checked(pid_t pid, const struct plan *plan, const struct namespaces *own) {
  char path[32], status[8192];
  snprintf(path, sizeof path, "/proc/%d/status", pid);
  if (!read_text(path, status, sizeof status)) return told("process", false);
  static const char *const SETS[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
  bool none = true;
  /* The bounding set says what could be gained: nothing, without new privileges. Without a user namespace only root can empty it. */
  const bool has_bounds = plan->tier == TIER_SPACES || geteuid() == 0;
  for (size_t i = 0; i < sizeof SETS / sizeof *SETS; i++)
    if (i != 3 || has_bounds) none = none && has_value(status, SETS[i], 16, 0);
  bool ok = told("capabilities", none);
  ok = told("no-new-privileges", has_value(status, "NoNewPrivs:", 10, 1)) && ok;
  ok = told("filter", has_value(status, "Seccomp:", 10, 2)) && ok;
  return plan->tier != TIER_SPACES ? ok : told("namespaces", in_new_namespaces(pid, plan->flags, own)) && ok;
}
