#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int report_fd = -1;

static char gathered[4096];
static size_t gathered_length;
static bool is_gathering;

static void send_out(const char *records, size_t length) {
  if (report_fd >= 0 && send(report_fd, records, length, MSG_NOSIGNAL) < 0) report_fd = -1;
}

static void send_gathered(void) {
  if (gathered_length > 0) send_out(gathered, gathered_length);
  gathered_length = 0;
}

void report_gather(void) { is_gathering = true; }

void report_together(void) {
  is_gathering = false;
  send_gathered();
}

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
  if (is_gathering && gathered_length + length + 1 > sizeof gathered) send_gathered();
  if (is_gathering && length + 1 <= sizeof gathered) {
    memcpy(gathered + gathered_length, line, length + 1);
    gathered_length += length + 1;
  } else {
    /* Whole records only, so that those of init and launcher do not mix. */
    send_out(line, length + 1);
  }
}

_Noreturn void fail(const char *step, const char *what) {
  const int error = errno;
  report_together();
  report("failed\t%s\t%d\t%s", step, error, what);
  /* A front says it in its own words, and what is named may be a name that somebody chose. */
  if (report_fd < 0) dprintf(STDERR_FILENO, "nd7-launch: %s: %s%s%s\n", step, what, *what != '\0' ? ": " : "", error != 0 ? strerror(error) : "refused");
  _exit(125);
}
