#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
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

void node_environment(const char *home) {
  setenv("ND7_HOME", home, 1);
  unsetenv("NODE_OPTIONS");
  unsetenv("NODE_PATH");
}
