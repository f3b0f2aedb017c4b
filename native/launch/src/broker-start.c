/* Makes the broker's process, and what others reach it by. */
#define _GNU_SOURCE
#include "exec.h"
#include "launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* In the door's folder, whose path may be longer than an address. */
static int listen_in(const char *folder) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  const int fd = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/exec", fd);
  unlink(at.sun_path);
  const int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const mode_t mask = umask(0177);
  const bool is_there = fd >= 0 && made >= 0 && bind(made, (const struct sockaddr *)&at, sizeof at) == 0 && listen(made, 128) == 0;
  umask(mask);
  if (fd >= 0) close(fd);
  if (is_there) return made;
  if (made >= 0) close(made);
  return -1;
}

/* The broker's end of a pair; the other is in `*other`. */
static int pair_with(int *other) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  *other = ends[1];
  return ends[0];
}

void broker_leave(const struct broker_ends *ends) {
  if (ends->zygote >= 0) close(ends->zygote);
  if (ends->reader >= 0) close(ends->reader);
  if (ends->door >= 0) close(ends->door);
}

void broker_start(const struct plan *plan, struct broker_ends *ends) {
  const pid_t launcher = getpid();
  struct broker_held held = {.zygote = -1, .reader = -1, .is_handed = plan->tier == TIER_BARE};
  *ends = (struct broker_ends){-1, -1, -1};
  held.listener = held.is_handed ? pair_with(&ends->door) : listen_in(plan->broker);
  if (held.listener >= 0) held.zygote = pair_with(&ends->zygote);
  if (held.zygote >= 0 && plan->asking != NULL) held.reader = pair_with(&ends->reader);
  const bool is_whole = held.zygote >= 0 && (plan->asking == NULL || held.reader >= 0);
  const pid_t broker = is_whole ? fork() : -1;
  if (broker == 0) broker_run(&held, launcher);
  if (held.listener >= 0) close(held.listener);
  if (held.zygote >= 0) close(held.zygote);
  if (held.reader >= 0) close(held.reader);
  close(BROKER_CHANNEL);
  if (broker > 0) return;
  /* The front sees its channel close: commands run as they would without it. */
  broker_leave(ends);
  *ends = (struct broker_ends){-1, -1, -1};
}
