/* Who connected to a socket of nd7's own: the supervisor does for programs of the session, and says for which by the name of the other end. */
#define _GNU_SOURCE
#include "launch.h"

#include "observe.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

pid_t introduced(int connection, pid_t peer) {
  union {
    struct sockaddr_un address;
    char ended[sizeof(struct sockaddr_un) + 1];
  } name;
  socklen_t length = sizeof name.address;
  int pid = 0;
  memset(&name, 0, sizeof name);
  if (getpeername(connection, (struct sockaddr *)&name.address, &length) != 0 || name.address.sun_path[0] != '\0') return peer;
  if (sscanf(name.address.sun_path + 1, INTRODUCTION_READ, &pid) != 1 || pid <= 0) return peer;
  /* Anybody can give a socket a name: the supervisor is the launcher's child, as no program of the session is. */
  const int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const bool is_supervisor = proc >= 0 && parent_of(proc, peer) == getppid();
  if (proc >= 0) close(proc);
  return is_supervisor ? pid : peer;
}
