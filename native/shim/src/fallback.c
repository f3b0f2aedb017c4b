#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int run_node_hook(const struct request *request, const struct conf *conf, const char *why) {
  if (conf->node == NULL || conf->main == NULL) return -1;
  const int64_t deadline = now_ms() + conf->node_ms;
  const int payload = memfd_create("payload", MFD_CLOEXEC);
  if (payload < 0 || !write_all(payload, request->payload, request->length, deadline) || lseek(payload, 0, SEEK_SET) != 0) {
    if (payload >= 0) close(payload);
    return -1;
  }
  const pid_t child = fork();
  if (child == 0) {
    dup2(payload, 0);
    signal(SIGPIPE, SIG_DFL);
    /* SIGTERM stays blocked: the entry comes before the agent's wish to be done. */
    char *const arguments[] = {conf->node, conf->main, (char *)"hook", (char *)"--agent", (char *)(uintptr_t)request->agent, (char *)"--took", (char *)(uintptr_t)request->took, NULL};
    execve(conf->node, arguments, node_environment(request->home, why));
    _exit(127);
  }
  close(payload);
  if (child < 0) return -1;
  for (;;) {
    int status;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2) ? WEXITSTATUS(status) : -1;
    if (ended < 0 && errno != EINTR) return -1;
    if (now_ms() >= deadline) {
      kill(child, SIGKILL);
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
      return -1;
    }
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
  }
}

/* A field of a line: no control characters, `-` for nothing. */
static void field(char *text) {
  if (text[0] == '\0') strcpy(text, "-");
  for (char *c = text; *c != '\0'; c++) {
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
  }
}

/* Appends a line to run/missed. The recorder renames the file, then locks it and reads: a line is written under the lock and only while the name still
 * leads to this file. */
static void note_missed(const char *home, const char *line) {
  char path[PATH_MAX];
  if (!join(path, sizeof path, home, "run")) return;
  mkdir(path, 0700);
  if (!join(path, sizeof path, home, "run/missed")) return;
  const int64_t deadline = now_ms() + 1000;
  while (now_ms() < deadline) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat here, there;
    if (fd < 0) return;
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    const bool same = locked && fstat(fd, &here) == 0 && stat(path, &there) == 0 && here.st_ino == there.st_ino && here.st_dev == there.st_dev;
    if (same) write_all(fd, line, strlen(line), deadline);
    close(fd);
    if (same) return;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }
}

/* Events before something runs: these can be denied. */
static const char *const BEFORE[] = {"PreToolUse",           "PreSkillShellCommand", "BeforeTool",    "preToolUse",
                                     "beforeShellExecution", "beforeMCPExecution",   "beforeReadFile"};

static bool comes_before(const char *event) {
  for (size_t i = 0; i < sizeof BEFORE / sizeof *BEFORE; i++) {
    if (strcmp(event, BEFORE[i]) == 0) return true;
  }
  return false;
}

int give_up(const struct request *request, const struct conf *conf, const char *reason) {
  char event[64], session[130], agent[66], line[512], now[32];
  const bool known = json_top_string(request->payload, request->length, "hook_event_name", event, sizeof event);
  json_top_string(request->payload, request->length, "session_id", session, sizeof session);
  struct timespec t;
  struct tm utc;
  clock_gettime(CLOCK_REALTIME, &t);
  strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%S", gmtime_r(&t.tv_sec, &utc));
  const bool deny = conf->required && (!known || comes_before(event));
  if (deny && known && strncmp(event, "Pre", 3) == 0) {
    char json[1024];
    /* The event is one of the list, so that nothing in it needs escaping. */
    const int n = snprintf(json, sizeof json,
                           "{\"hookSpecificOutput\":{\"hookEventName\":\"%s\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"nd7 could not record this call (%s), and "
                           "recording is required here. Nothing was run. `nd7 doctor` tells what is wrong.\"}}\n",
                           event, reason);
    if (n > 0 && (size_t)n < sizeof json) write_all(STDOUT_FILENO, json, (size_t)n, now_ms() + 1000);
  }
  field(event);
  field(session);
  snprintf(agent, sizeof agent, "%s", request->agent);
  field(agent);
  snprintf(line, sizeof line, "%s.%03ldZ\t%s\t%s\t%s\t%s\n", now, t.tv_nsec / 1000000, agent, session, event, reason);
  note_missed(request->home, line);
  if (!deny) return 0;
  const int n = snprintf(line, sizeof line, "nd7 could not record this call (%s), and recording is required here. `nd7 doctor` tells what is wrong.\n", reason);
  if (n > 0 && (size_t)n < sizeof line) write_all(STDERR_FILENO, line, (size_t)n, now_ms() + 1000);
  return 2;
}
