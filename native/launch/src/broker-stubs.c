/* The broker: what stubs bring. A stub speaks first, is answered, and hears of its command's end; each has a run for as long. */
#define _GNU_SOURCE
#include "broker.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static uint32_t last_id;

/* A stub sends what it has as soon as it is connected. */
#define REQUEST_MS 5000

void run_watch(int fd, const struct run *run, bool is_control) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = 8 + 2 * (uint64_t)(run - broker_runs) + is_control};
  if (epoll_ctl(broker_poller, EPOLL_CTL_ADD, fd, &event) != 0) _exit(125);
}

void end_shut(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

/* What somebody inside has sent. A socket could have this process wait at its close for as long as its owner likes (SO_LINGER). */
static void close_handed(int fd) {
  const struct linger none = {0};
  struct linger own;
  socklen_t size = sizeof own;
  if (fd < 0) return;
  if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &own, &size) == 0 && own.l_onoff != 0 && own.l_linger > 0) setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close(fd);
}

void run_close_streams(struct run *run) {
  for (int i = 0; i < 3; i++) {
    close_handed(run->streams[i]);
    run->streams[i] = -1;
  }
}

void run_forget(struct run *run) {
  end_shut(&run->stub);
  end_shut(&run->control);
  run_close_streams(run);
  run->state = FREE;
}

/* A stub that does not read has filled its own socket: it hears no more. */
void run_answer(struct run *run, enum exec_answer kind, int value, const void *text, size_t length) {
  struct exec_reply reply = {.kind = kind, .value = value};
  memcpy(reply.text, text, length < sizeof reply.text ? length : sizeof reply.text - 1);
  if (run->stub >= 0) (void)!send(run->stub, &reply, sizeof reply, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The command does not run here, and has not begun to. */
void run_hand_back(struct run *run) {
  front_tell_numbers(TOLD_DIRECT, run->id, 0, 0);
  run_answer(run, EXEC_DIRECT, 0, "", 0);
  run_forget(run);
}

void run_pass(struct run *run, enum keeper_kind kind, int value) {
  const struct keeper_packet packet = {.kind = kind, .value = value};
  if (run->control >= 0) (void)!send(run->control, &packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void stub_has_gone(struct run *run) {
  end_shut(&run->stub);
  /* Where the front has been asked it is not needed to answer any more; it answers all the same. */
  if (run->state == NEW) run_forget(run);
  if (run->state == RUNNING) run_pass(run, KEEPER_KILL, 0);
}

/* Takes the request of a stub, with what came beside it. */
static void take_request(struct run *run, const unsigned char *bytes, size_t length, const int *fds, size_t count) {
  struct exec_request request;
  const bool whole = exec_request_parse(bytes, length, &request);
  unsigned wanted = 0;
  for (unsigned i = 0; whole && i < 3; i++) wanted += request.flags >> i & 1;
  if (!whole || wanted != count) {
    for (size_t i = 0; i < count; i++) close_handed(fds[i]);
    front_tell_numbers(TOLD_REFUSED, NO_REQUEST, (uint32_t)run->pid, run->uid);
    run_answer(run, EXEC_REFUSED, 0, "that is no request", 18);
    run_forget(run);
    return;
  }
  for (unsigned i = 0; i < 3; i++) run->streams[i] = (request.flags & (1u << i)) != 0 ? *fds++ : -1;
  run->flags = request.flags;
  run->state = ASKED;
  unsigned char body[12];
  put32(body, (uint32_t)run->pid);
  put32(body + 4, run->uid);
  put32(body + 8, run->flags);
  /* Also of a stub that runs it itself: it waits, so that the front finds it alive. */
  front_tell(TOLD_ASK, run->id, body, sizeof body, request.text, request.length);
}

#define FDS_MOST 8

/* Reads one packet of a stub. */
void stub_speaks(struct run *run) {
  static unsigned char bytes[EXEC_HEADER + EXEC_TEXT_MAX + 1];
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(FDS_MOST * sizeof(int))];
  } control = {0};
  struct iovec part = {.iov_base = bytes, .iov_len = sizeof bytes};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  const ssize_t n = recvmsg(run->stub, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  int fds[FDS_MOST];
  size_t count = 0;
  const struct cmsghdr *header = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
  if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(header), count * sizeof(int));
  }
  /* More than fit were closed by the kernel: it says that some are missing. */
  const bool cut = (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0;
  if (n > 0 && run->state == NEW) {
    take_request(run, bytes, cut ? 0 : (size_t)n, fds, count);
    return;
  }
  for (size_t i = 0; i < count; i++) close_handed(fds[i]);
  struct exec_signal signal;
  if (n <= 0) {
    stub_has_gone(run);
  } else if (n == (ssize_t)sizeof signal) {
    memcpy(&signal, bytes, sizeof signal);
    if (signal.kind != EXEC_SIGNAL || signal.number < 1 || signal.number > 64) return;
    if (run->began) run_pass(run, KEEPER_SIGNAL, signal.number);
    else run->held |= 1ull << (signal.number - 1);
  }
}

/* A connection is a pair there, of which the kernel would say that the supervisor has made it: who it is for comes beside. */
static int take_handed(struct ucred *who) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  uint32_t pid;
  int stub;
  struct iovec part = {.iov_base = &pid, .iov_len = sizeof pid};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  const ssize_t n = recvmsg(broker_listener, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return -1;
  /* With the supervisor the session ends. */
  const struct cmsghdr *header = n != (ssize_t)sizeof pid ? NULL : CMSG_FIRSTHDR(&message);
  if (header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) _exit(0);
  memcpy(&stub, CMSG_DATA(header), sizeof stub);
  *who = (struct ucred){.pid = (pid_t)pid, .uid = geteuid(), .gid = getegid()};
  return stub;
}

static int take_connected(struct ucred *who) {
  const int stub = accept4(broker_listener, NULL, NULL, SOCK_CLOEXEC);
  socklen_t size = sizeof *who;
  if (stub >= 0 && getsockopt(stub, SOL_SOCKET, SO_PEERCRED, who, &size) != 0) who->pid = 0;
  if (stub >= 0) who->pid = introduced(stub, who->pid);
  return stub;
}

void stub_welcome(void) {
  struct ucred who;
  const int stub = broker_is_handed ? take_handed(&who) : take_connected(&who);
  if (stub < 0) return;
  struct run *run = broker_runs;
  while (run < broker_runs + RUNS_MAX && run->state != FREE) run++;
  if (run == broker_runs + RUNS_MAX) {
    /* It runs its command itself. */
    front_tell_numbers(TOLD_REFUSED, TOO_MANY, (uint32_t)who.pid, who.uid);
    close(stub);
    return;
  }
  *run = (struct run){.state = NEW, .stub = stub, .control = -1, .streams = {-1, -1, -1}, .id = ++last_id, .pid = who.pid, .uid = who.uid, .until = now_ns() / 1000000 + REQUEST_MS};
  run_watch(stub, run, false);
}

/* Who connects and says nothing keeps no place. Returns whether there is any such. */
bool stubs_sweep(void) {
  bool any = false;
  for (struct run *run = broker_runs; run < broker_runs + RUNS_MAX; run++) {
    if (run->state != NEW) continue;
    if (run->until < now_ns() / 1000000) run_forget(run);
    else any = true;
  }
  return any;
}
