/* The shim under the name nd7, inside a confined session: it carries `nd7 ask …` and `nd7 why …` to the door and prints what comes back. The words are the front's to understand. */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The longest that the front lets anybody wait is shorter. */
#define ASK_MS 960000
#define SAY_MS 10000

static int fail(const char *text) {
  write_all(STDERR_FILENO, text, strlen(text), now_ms() + SAY_MS);
  return 2;
}

static int connect_to(const char *path) {
  if (strncmp(path, "tcp:", 4) == 0) return door_connect();
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) return -1;
  memcpy(address.sun_path, path, strlen(path) + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  while (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
    if (errno == EINTR) continue;
    close(fd);
    return -1;
  }
  return fd;
}

/* The words of the command line, each ended by NUL, in memory that lives as long as the process. */
static char *words_of(int argc, char **argv, size_t *length) {
  *length = 0;
  for (int i = 1; i < argc; i++) *length += strlen(argv[i]) + 1;
  char *words = malloc(*length + 1);
  char *at = words;
  for (int i = 1; words != NULL && i < argc; i++) {
    const size_t size = strlen(argv[i]) + 1;
    memcpy(at, argv[i], size);
    at += size;
  }
  return words;
}

bool is_ask(const char *called) {
  const char *slash = called == NULL ? NULL : strrchr(called, '/');
  const char *name = slash != NULL ? slash + 1 : called;
  return name != NULL && strcmp(name, "nd7") == 0;
}

int ask(int argc, char **argv) {
  const char *socket_path = getenv("ND7_SOCKET");
  struct request request = {.op = "ask"};
  request.payload = words_of(argc, argv, &request.length);
  if (request.payload == NULL) return fail("nd7: no memory\n");
  const int fd = connect_to(socket_path != NULL ? socket_path : "/run/nd7/hook");
  if (fd < 0) return fail("nd7: this is not inside a session that nd7 run has started\n");
  struct answer answer;
  if (!exchange(fd, &request, now_ms() + ASK_MS, &answer)) return fail("nd7: the session does not answer\n");
  write_all(STDOUT_FILENO, answer.out, answer.out_length, now_ms() + SAY_MS);
  write_all(STDERR_FILENO, answer.err, answer.err_length, now_ms() + SAY_MS);
  return answer.exit_code;
}
