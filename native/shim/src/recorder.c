#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
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

static const char MAGIC[4] = {'n', 'd', '7', 1};

struct meta {
  size_t length;
  char bytes[MAX_META];
};

static void put32(char *at, size_t value) {
  for (int i = 0; i < 4; i++) at[i] = (char)(value >> (8 * i));
}

static size_t get32(const char *at) {
  size_t value = 0;
  for (int i = 3; i >= 0; i--) value = value << 8 | (unsigned char)at[i];
  return value;
}

/* Adds key=value and a NUL; a value of more than 4,096 bytes is cut. */
static void add(struct meta *meta, const char *key, const char *value) {
  const int n = snprintf(meta->bytes + meta->length, sizeof meta->bytes - meta->length, "%s=%.4096s", key, value);
  if (n > 0 && (size_t)n < sizeof meta->bytes - meta->length) meta->length += (size_t)n + 1;
}

static void describe(struct meta *meta, const struct request *request) {
  char text[PATH_MAX];
  meta->length = 0;
  add(meta, "op", request->op != NULL ? request->op : "hook");
  if (request->agent != NULL) add(meta, "agent", request->agent);
  if (request->took != NULL) add(meta, "took", request->took);
  if (getcwd(text, sizeof text) != NULL) add(meta, "cwd", text);
  snprintf(text, sizeof text, "%ld", (long)getpid());
  add(meta, "pid", text);
  snprintf(text, sizeof text, "%ld", (long)getppid());
  add(meta, "ppid", text);
  for (size_t i = 0; AGENT_ENVIRONMENT[i] != NULL; i++) {
    const char *value = getenv(AGENT_ENVIRONMENT[i]);
    if (value == NULL) continue;
    snprintf(text, sizeof text, "env.%s", AGENT_ENVIRONMENT[i]);
    add(meta, text, value);
  }
}

int answer_parse(char *bytes, size_t length, struct answer *answer) {
  if (memcmp(bytes, MAGIC, length < 4 ? length : 4) != 0) return -1;
  if (length < 12) return 0;
  const size_t code = get32(bytes + 4), out = get32(bytes + 8);
  if (code > 255 || out > MAX_OUTPUT) return -1;
  if (length < 16 + out) return 0;
  const size_t err = get32(bytes + 12 + out);
  if (err > MAX_OUTPUT) return -1;
  if (length < 16 + out + err) return 0;
  *answer = (struct answer){.exit_code = (int)code, .bytes = bytes, .out = bytes + 12, .out_length = out, .err = bytes + 16 + out, .err_length = err};
  return 1;
}

bool exchange(int fd, const struct request *request, int64_t deadline, struct answer *answer) {
  static struct meta meta;
  describe(&meta, request);
  char head[8], size[4];
  memcpy(head, MAGIC, 4);
  put32(head + 4, meta.length);
  put32(size, request->length);
  if (!write_all(fd, head, sizeof head, deadline) || !write_all(fd, meta.bytes, meta.length, deadline)) return false;
  if (!write_all(fd, size, sizeof size, deadline) || !write_all(fd, request->payload, request->length, deadline)) return false;

  size_t length = 0, room = 4096;
  char *bytes = malloc(room);
  while (bytes != NULL) {
    const ssize_t n = read(fd, bytes + length, room - length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (wait_for(fd, POLLIN, deadline)) continue;
      break;
    }
    if (n <= 0) break;
    length += (size_t)n;
    const int whole = answer_parse(bytes, length, answer);
    if (whole == 1) return true;
    if (whole < 0) break;
    if (length == room) {
      char *more = realloc(bytes, room *= 2);
      if (more == NULL) break;
      bytes = more;
    }
  }
  free(bytes);
  return false;
}

/* Connects to the recorder's socket. -1 with errno ENOENT or ECONNREFUSED: there is no recorder. */
static int connect_once(const char *home, int64_t deadline) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  char path[PATH_MAX];
  if (!join(path, sizeof path, home, "run/hook")) {
    errno = ENAMETOOLONG;
    return -1;
  }
  int folder = -1;
  if (strlen(path) >= sizeof address.sun_path) {
    if (!join(path, sizeof path, home, "run")) return -1;
    folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d/hook", folder);
  }
  memcpy(address.sun_path, path, strlen(path) + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int failed = fd < 0 ? errno : 0;
  while (failed == 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
    /* EAGAIN: the recorder is there and its queue is full. */
    if (errno == EINTR) continue;
    if (errno != EAGAIN || now_ms() >= deadline) failed = errno;
    else nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }
  if (folder >= 0) close(folder);
  /* Nobody but the filter of a session says so: what the environment names is believed nowhere else. */
  if (fd < 0 && failed == EACCES) return door_connect();
  if (failed == 0) return fd;
  if (fd >= 0) close(fd);
  errno = failed;
  return -1;
}

static void close_from(int first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, (unsigned)first, ~0U, 0) == 0) return;
#endif
  for (int fd = first; fd < 1024; fd++) close(fd);
}

/* The recorder's own process: a session of its own, nothing of the agent's. It is resident for days and does little at a time: a small young generation, little
 * code, one helper thread (some 20 MB less). Reports a failed exec through `report`. */
static void become_recorder(const char *home, const struct conf *conf, int report) {
  char log[PATH_MAX];
  const int null = open("/dev/null", O_RDWR);
  int out = join(log, sizeof log, home, "run/recorder.log") ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600) : -1;
  if (out < 0) out = null;
  dup2(null, 0);
  dup2(out, 1);
  dup2(out, 2);
  const int keep = dup3(report, 3, O_CLOEXEC) == 3 ? 3 : report;
  if (keep == 3) close_from(4);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGPIPE, SIG_DFL);
  umask(077);
  char *const arguments[] = {conf->node, (char *)"--max-semi-space-size=1", (char *)"--optimize-for-size", (char *)"--v8-pool-size=1", conf->main, (char *)"recorder", NULL};
  if (chdir("/") == 0) execve(conf->node, arguments, node_environment(home, NULL));
  const int failed = errno;
  const ssize_t ignored = write(keep, &failed, sizeof failed);
  _exit(ignored > 0 ? 126 : 127);
}

/* Starts the recorder, twice forked so that it is nobody's child. False: it could not be executed. */
static bool start(const char *home, const struct conf *conf) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return false;
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    const pid_t recorder = fork();
    if (recorder == 0) become_recorder(home, conf, report[1]);
    _exit(recorder < 0 ? 1 : 0);
  }
  close(report[1]);
  int status = 1;
  if (child > 0) {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  }
  int failed;
  ssize_t n;
  do n = read(report[0], &failed, sizeof failed);
  while (n < 0 && errno == EINTR);
  close(report[0]);
  return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && n == 0;
}

/* There is no recorder: one of the shims that find this out starts it, all wait for it. */
static int start_and_connect(const char *home, const struct conf *conf) {
  const int64_t deadline = now_ms() + conf->start_ms;
  if (conf->node == NULL || conf->main == NULL) return -1;
  char path[PATH_MAX];
  if (!join(path, sizeof path, home, "run/start.lock")) return -1;
  /* The lock goes with the descriptor, so that a starter that is killed blocks nobody. */
  const int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  int fd = -1;
  bool started = false;
  while (now_ms() < deadline) {
    fd = connect_once(home, deadline);
    if (fd >= 0 || (errno != ENOENT && errno != ECONNREFUSED)) break;
    if (!started && lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
      /* Whoever had the lock before may have succeeded in the meantime. */
      fd = connect_once(home, deadline);
      if (fd >= 0) break;
      started = true;
      if (!start(home, conf)) break;
    }
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  }
  if (lock >= 0) close(lock);
  return fd;
}

enum exchanged ask_recorder(const struct request *request, const struct conf *conf, struct answer *answer) {
  int fd = connect_once(request->home, now_ms() + conf->answer_ms);
  if (fd < 0 && (errno == ENOENT || errno == ECONNREFUSED)) fd = start_and_connect(request->home, conf);
  if (fd < 0) return NO_RECORDER;
  const bool answered = exchange(fd, request, now_ms() + conf->answer_ms, answer);
  close(fd);
  return answered ? ANSWERED : NO_ANSWER;
}
