#define _GNU_SOURCE
#include "launch.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether others than this user and root can change what stands at a path. */
static bool changeable(const char *path) {
  struct stat s;
  if (stat(path, &s) != 0) return true;
  return (s.st_mode & (S_IWGRP | S_IWOTH)) != 0 || (s.st_uid != geteuid() && s.st_uid != 0);
}

const char *untrusted(void) {
  static char said[PATH_MAX + 160];
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) return "its own file cannot be found: /proc is not there";
  path[n] = '\0';
  bool bad = changeable(path);
  char *slash = strrchr(path, '/');
  if (!bad && slash != NULL) {
    *(slash == path ? slash + 1 : slash) = '\0';
    bad = changeable(path);
  }
  if (!bad) return NULL;
  snprintf(said, sizeof said, "%s can be changed by other users: chown it to yourself and run chmod go-w on it", path);
  return said;
}
