#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int report_fd = -1;

void report(const char *format, ...) {
  if (report_fd < 0) return;
  char line[4200];
  va_list arguments;
  va_start(arguments, format);
  const int n = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (n <= 0) return;
  const size_t length = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
  line[length] = '\0';
  /* One send a record, so that records of init and launcher do not mix. */
  if (send(report_fd, line, length + 1, MSG_NOSIGNAL) < 0) report_fd = -1;
}

_Noreturn void fail(const char *step, const char *what) {
  const int error = errno;
  report("failed\t%s\t%d\t%s", step, error, what);
  /* A front says it in its own words, and what is named may be a name that somebody chose. */
  if (report_fd < 0) dprintf(STDERR_FILENO, "nd7-launch: %s: %s%s%s\n", step, what, *what != '\0' ? ": " : "", error != 0 ? strerror(error) : "refused");
  _exit(125);
}
