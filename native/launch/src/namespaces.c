#define _GNU_SOURCE
#include "launch.h"

#include "kernel.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

pid_t namespaces_enter(uint32_t flags) {
  const int spaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET | ((flags & PLAN_USERNS) != 0 ? CLONE_NEWUSER : 0);
  /* Like fork(): no stack of its own. */
  const pid_t pid = (pid_t)syscall(SYS_clone, (unsigned long)(spaces | SIGCHLD), NULL, NULL, NULL, NULL);
  if (pid < 0) fail("namespaces", "clone");
  return pid;
}

static void write_file(const char *path, const char *text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) fail("maps", path);
  close(fd);
}

static void loopback_up(void) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct ifreq request = {.ifr_name = "lo"};
  if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) != 0) fail("loopback", "lo");
  request.ifr_flags |= IFF_UP;
  if (ioctl(fd, SIOCSIFFLAGS, &request) != 0) fail("loopback", "lo");
  close(fd);
}

void namespaces_settle(uint32_t flags, uid_t uid, gid_t gid) {
  if ((flags & PLAN_USERNS) != 0) {
    char map[40];
    write_file("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1\n", uid, uid);
    write_file("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "%u %u 1\n", gid, gid);
    write_file("/proc/self/gid_map", map);
  }
  loopback_up();
}
