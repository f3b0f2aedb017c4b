/* The zygote: a copy of the agent's process as it was before it became the agent. What it makes is confined exactly so: Landlock, filter, namespaces, no
 * capabilities. It hears the broker alone. */
#define _GNU_SOURCE
#include "exec.h"
#include "launch.h"

#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANDED_MOST 5

/* The agent's streams are not its own: their ends are waited for. */
static bool stand_apart(int link, int null) {
  if (setsid() < 0) return false;
  for (int fd = 0; fd < 3; fd++)
    if (dup2(null, fd) != fd) return false;
  if (link > 3 && syscall(NR_CLOSE_RANGE, 3u, (unsigned)link - 1, 0) != 0) return false;
  return syscall(NR_CLOSE_RANGE, (unsigned)link + 1, ~0u, 0) == 0;
}

static void close_all(int *fds, size_t count) {
  for (size_t i = 0; i < count; i++) close(fds[i]);
}

/* Returns the number of descriptors that came with the packet; the broker has gone: ends. */
static size_t receive(int link, struct exec_order_packet *order, int fds[HANDED_MOST]) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(HANDED_MOST * sizeof(int))];
  } control = {0};
  struct iovec part = {.iov_base = order, .iov_len = sizeof *order};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t n;
  while ((n = recvmsg(link, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
  if (n != (ssize_t)sizeof *order) _exit(0);
  const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return 0;
  const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  memcpy(fds, CMSG_DATA(header), count * sizeof(int));
  return count;
}

static void keep(int link, const struct exec_order_packet *order, const int *fds, size_t count) {
  close(link);
  struct exec_block block;
  unsigned char *bytes = order->length > EXEC_BLOCK_MAX ? MAP_FAILED : mmap(NULL, order->length, PROT_READ, MAP_PRIVATE, fds[1], 0);
  if (bytes == MAP_FAILED || exec_block_parse(bytes, order->length, &block) != NULL) _exit(125);
  close(fds[1]);
  int streams[3];
  size_t next = 2;
  for (unsigned i = 0; i < 3; i++) streams[i] = (order->flags & (1u << i)) == 0 || next == count ? -1 : fds[next++];
  keeper_run(fds[0], order->flags, &block, streams);
}

static _Noreturn void run(int link, int null) {
  if (!stand_apart(link, null)) _exit(125);
  /* What it makes tells its end to the broker; nobody waits for it. */
  signal(SIGCHLD, SIG_IGN);
  for (;;) {
    struct exec_order_packet order;
    int fds[HANDED_MOST];
    const size_t count = receive(link, &order, fds);
    /* Where none can be made the broker sees its socket close. */
    if (count >= 2 && fork() == 0) keep(link, &order, fds, count);
    close_all(fds, count);
  }
}

/* Makes a process that is a child of init, not of the agent: no program has children that it did not make. True: in it. */
static bool apart(void) {
  const pid_t between = fork();
  if (between == 0) {
    /* Before it is there: the agent may run before it does, and would look into it. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) _exit(125);
    if (fork() == 0) return true;
    _exit(0);
  }
  while (between > 0 && waitpid(between, NULL, 0) < 0 && errno == EINTR) continue;
  return false;
}

void zygote_start(int link, int null) {
  if (apart()) run(link, null);
  close(link);
}

void reader_start(const struct plan *plan, const struct inside *inside, int null) {
  int ready[2];
  char byte;
  if (pipe2(ready, O_CLOEXEC) != 0) fail("broker", "pipe");
  if (apart()) {
    (void)filter_install(plan->asking, plan->asking_count, inside->hand, false);
    /* Closes all but what it hears. */
    run(inside->reader, null);
  }
  close(ready[1]);
  /* The supervisor tells the two apart by which came first. */
  while (read(ready[0], &byte, 1) < 0 && errno == EINTR) continue;
  close(ready[0]);
  close(inside->reader);
}
