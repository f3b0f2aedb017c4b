#define _GNU_SOURCE
#include "front.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

static bool address_of(const char *home, struct sockaddr_un *address, int *folder) {
  char path[PATH_MAX];
  *folder = -1;
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  if (!join(path, sizeof path, home, "run/host")) return false;
  if (strlen(path) >= sizeof address->sun_path) {
    if (!join(path, sizeof path, home, "run")) return false;
    *folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*folder < 0) return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d/host", *folder);
  }
  memcpy(address->sun_path, path, strlen(path) + 1);
  return true;
}

/* A connection to somebody of this user's. */
static int connect_to(const struct sockaddr_un *address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid()) return fd;
  close(fd);
  return -1;
}

static bool connect_both(const char *home, int *passing, int *control) {
  struct sockaddr_un address;
  int folder;
  *passing = *control = -1;
  if (address_of(home, &address, &folder)) {
    *passing = connect_to(&address);
    if (*passing >= 0) *control = connect_to(&address);
    if (folder >= 0) close(folder);
  }
  if (*control >= 0) return true;
  if (*passing >= 0) close(*passing);
  return false;
}

/* What a Node may know that is started for this home, and the certificates that it is to trust, which it reads at its start alone. */
static char **host_environment(const char *home) {
  static const char *const certificates[] = {"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"};
  static char *environment[40];
  size_t n = 0;
  for (char **one = node_environment(home, NULL); *one != NULL && n < 32; one++) environment[n++] = *one;
  for (size_t i = 0; i < sizeof certificates / sizeof *certificates; i++) {
    const char *value = getenv(certificates[i]);
    if (value != NULL && asprintf(&environment[n], "%s=%s", certificates[i], value) > 0) n++;
  }
  environment[n] = NULL;
  return environment;
}

/* The host's own process: a session of its own and nothing of this one, since it serves others after it. */
static _Noreturn void become_host(const struct place *place) {
  char log[PATH_MAX];
  const int null = open("/dev/null", O_RDWR);
  int out = join(log, sizeof log, place->home, "run/host.log") ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600) : -1;
  if (out < 0) out = null;
  dup2(null, 0);
  dup2(out, 1);
  dup2(out, 2);
  syscall(SYS_close_range, 3u, ~0u, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  for (int i = 1; i < NSIG; i++) signal(i, SIG_DFL);
  umask(077);
  /* Without options of V8's: code that is kept is for those that it was made with. */
  char *const words[] = {place->node, place->main, (char *)"host", NULL};
  if (chdir("/") == 0) execve(place->node, words, host_environment(place->home));
  _exit(127);
}

/* A child in a session of its own: it outlives this process, which sees when it dies before. -1: it cannot be. */
static pid_t start(const struct place *place) {
  if (place->node == NULL || place->main == NULL || access(place->main, R_OK) != 0) return -1;
  const pid_t host = fork();
  if (host == 0) {
    setsid();
    become_host(place);
  }
  return host;
}

bool host_connect(const struct place *place, int *passing, int *control) {
  if (connect_both(place->home, passing, control)) return true;
  char path[PATH_MAX];
  if (!join(path, sizeof path, place->home, "run") || access(path, W_OK) != 0) return false;
  const pid_t host = start(place);
  for (const int64_t deadline = now_ms() + place->start_ms; host > 0 && now_ms() < deadline;) {
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    if (connect_both(place->home, passing, control)) return true;
    if (waitpid(host, NULL, WNOHANG) != 0) return false;
  }
  return false;
}
