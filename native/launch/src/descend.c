/* Processes below one, as /proc has them: for kernels on which Landlock does not keep signals inside a domain (see landlock_keep_signals). */
#define _GNU_SOURCE
#include "launch.h"

#include "kernel.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct process {
  pid_t pid, parent;
  char state;
  bool is_below;
  unsigned long long start;
};

struct table {
  struct process *all;
  size_t count, room;
};

#define ROUNDS_MAX 10000
/* More processes above one than a session has between two. */
#define ABOVE_MAX 10000

static bool facts_of(int proc, pid_t pid, struct process *process) {
  char path[32], text[1024];
  snprintf(path, sizeof path, "%d/stat", pid);
  const int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return false;
  text[n] = '\0';
  const char *end = strrchr(text, ')');
  *process = (struct process){.pid = pid};
  return end != NULL && sscanf(end + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &process->state, &process->parent, &process->start) == 3;
}

bool process_of(int proc, pid_t pid, pid_t *parent, unsigned long long *start) {
  struct process process;
  if (!facts_of(proc, pid, &process)) return false;
  *parent = process.parent;
  *start = process.start;
  return true;
}

pid_t parent_of(int proc, pid_t pid) {
  struct process process;
  return facts_of(proc, pid, &process) ? process.parent : 0;
}

bool is_descendant(int proc, pid_t pid, pid_t first) {
  struct process process;
  for (int hops = 0; pid > 1 && hops < ABOVE_MAX; hops++) {
    if (pid == first) return true;
    if (!facts_of(proc, pid, &process)) return false;
    pid = process.parent;
  }
  return false;
}

static void scan(int proc, struct table *table) {
  table->count = 0;
  const int again = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *folder = again < 0 ? NULL : fdopendir(again);
  if (folder == NULL) return;
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    const int pid = atoi(entry->d_name);
    if (pid <= 1) continue;
    if (table->count == table->room) {
      const size_t room = table->room == 0 ? 1024 : table->room * 2;
      struct process *more = realloc(table->all, room * sizeof *more);
      if (more == NULL) break;
      table->all = more;
      table->room = room;
    }
    if (facts_of(proc, pid, &table->all[table->count])) table->count++;
  }
  closedir(folder);
}

static int by_pid(const void *a, const void *b) {
  const pid_t x = ((const struct process *)a)->pid, y = ((const struct process *)b)->pid;
  return (x > y) - (x < y);
}

static struct process *find(const struct table *table, pid_t pid) {
  const struct process key = {.pid = pid};
  return table->count == 0 ? NULL : bsearch(&key, table->all, table->count, sizeof key, by_pid);
}

static void mark(struct table *table, pid_t first, pid_t spared) {
  qsort(table->all, table->count, sizeof *table->all, by_pid);
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < table->count; i++) {
      struct process *one = &table->all[i];
      const struct process *parent = one->is_below ? NULL : find(table, one->parent);
      if (one->is_below || one->pid == spared || (one->parent != first && (parent == NULL || !parent->is_below))) continue;
      more = one->is_below = true;
    }
  }
}

/* To the very process that was seen: a pid may be somebody else's by now. */
static void send_to(int proc, const struct process *process, int signal) {
  struct process now;
  const int fd = (int)syscall(NR_PIDFD_OPEN, process->pid, 0);
  if (fd < 0) return;
  if (facts_of(proc, process->pid, &now) && now.start == process->start) (void)syscall(NR_PIDFD_SEND_SIGNAL, fd, signal, NULL, 0);
  close(fd);
}

/* One look at all: `signal` to those that are in none of the states. How many got it. */
static size_t round_of(int proc, struct table *table, pid_t spared, int signal, const char *done) {
  size_t sent = 0;
  scan(proc, table);
  mark(table, getpid(), spared);
  for (size_t i = 0; i < table->count; i++) {
    const struct process *one = &table->all[i];
    if (!one->is_below || strchr(done, one->state) != NULL) continue;
    send_to(proc, one, signal);
    sent++;
  }
  return sent;
}

void descendants_end(pid_t spared) {
  struct table table = {0};
  const struct timespec moment = {.tv_nsec = 1000000};
  const int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return;
  /* Stopped first: what is stopped makes no others, so that those which run get fewer with each look. */
  for (int i = 0; i < ROUNDS_MAX && round_of(proc, &table, spared, SIGSTOP, "TtZX") > 0; i++) continue;
  for (int i = 0; i < ROUNDS_MAX && round_of(proc, &table, spared, SIGKILL, "ZX") > 0; i++) {
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    nanosleep(&moment, NULL);
  }
  free(table.all);
  close(proc);
}
