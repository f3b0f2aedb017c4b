/* The broker: outside. It takes commands from stubs, asks the front about each, and has the zygote run them. Of who speaks it says what the kernel says; what is
 * run, with which environment and where, the front alone says. */
#define _GNU_SOURCE
#include "exec.h"
#include "launch.h"

#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNS_MAX 256u
/* A stub sends what it has as soon as it is connected. */
#define REQUEST_MS 5000

enum state { FREE, NEW, ASKED, RUNNING, ENDED };
struct run {
  enum state state;
  int stub, control; /* -1: closed */
  int streams[3];
  uint32_t id, flags;
  pid_t pid, keeper; /* as they are called here */
  uid_t uid;
  bool began;
  uint64_t held; /* signals that came before there was anybody to have them */
  int64_t until;
};
static struct run runs[RUNS_MAX];
static uint32_t last_id;
static int poller, zygote, reader;
/* Where stubs come: a socket in the door's folder, or, where the supervisor makes their connections, what it hands over. */
static int listener;
static bool is_handed;

enum told { TOLD_ASK = 1, TOLD_BEGAN, TOLD_ENDED, TOLD_GONE, TOLD_DIRECT, TOLD_REFUSED, TOLD_NO_ZYGOTE };
enum refused { NO_REQUEST = 1, TOO_MANY };

/* --- the front -------------------------------------------------------------------------------------------------- */

static void put32(unsigned char *to, uint32_t value) {
  for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (8 * i));
}

/* Whole frames only; with a front that has gone the session ends, and this process. */
static void tell(enum told kind, uint32_t id, const void *body, size_t length, const void *text, size_t text_length) {
  unsigned char head[12];
  put32(head, (uint32_t)(8 + length + text_length));
  put32(head + 4, kind);
  put32(head + 8, id);
  struct iovec parts[] = {{head, sizeof head}, {(void *)(uintptr_t)body, length}, {(void *)(uintptr_t)text, text_length}};
  for (size_t at = 0; at < 3;) {
    const struct msghdr message = {.msg_iov = parts + at, .msg_iovlen = 3 - at};
    ssize_t n = sendmsg(BROKER_CHANNEL, &message, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) _exit(0);
    for (; at < 3 && (size_t)n >= parts[at].iov_len; at++) n -= (ssize_t)parts[at].iov_len;
    if (at == 3) return;
    parts[at].iov_base = (char *)parts[at].iov_base + n;
    parts[at].iov_len -= (size_t)n;
  }
}

static void tell_numbers(enum told kind, uint32_t id, uint32_t first, uint32_t second) {
  unsigned char body[8];
  put32(body, first);
  put32(body + 4, second);
  tell(kind, id, body, sizeof body, NULL, 0);
}

/* --- one command -------------------------------------------------------------------------------------------------- */

static void watch(int fd, const struct run *run, bool is_control) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = 8 + 2 * (uint64_t)(run - runs) + is_control};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0) _exit(125);
}

static void shut(int *fd) {
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

static void close_streams(struct run *run) {
  for (int i = 0; i < 3; i++) {
    close_handed(run->streams[i]);
    run->streams[i] = -1;
  }
}

static void forget(struct run *run) {
  shut(&run->stub);
  shut(&run->control);
  close_streams(run);
  run->state = FREE;
}

/* A stub that does not read has filled its own socket: it hears no more. */
static void answer(struct run *run, enum exec_answer kind, int value, const void *text, size_t length) {
  struct exec_reply reply = {.kind = kind, .value = value};
  memcpy(reply.text, text, length < sizeof reply.text ? length : sizeof reply.text - 1);
  if (run->stub >= 0) (void)!send(run->stub, &reply, sizeof reply, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The command does not run here, and has not begun to. */
static void hand_back(struct run *run) {
  tell_numbers(TOLD_DIRECT, run->id, 0, 0);
  answer(run, EXEC_DIRECT, 0, "", 0);
  forget(run);
}

static void pass(struct run *run, enum keeper_kind kind, int value) {
  const struct keeper_packet packet = {.kind = kind, .value = value};
  if (run->control >= 0) (void)!send(run->control, &packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void stub_has_gone(struct run *run) {
  shut(&run->stub);
  /* Where the front has been asked it is not needed to answer any more; it answers all the same. */
  if (run->state == NEW) forget(run);
  if (run->state == RUNNING) pass(run, KEEPER_KILL, 0);
}

/* Takes the request of a stub, with what came beside it. */
static void take_request(struct run *run, const unsigned char *bytes, size_t length, const int *fds, size_t count) {
  struct exec_request request;
  const bool whole = exec_request_parse(bytes, length, &request);
  unsigned wanted = 0;
  for (unsigned i = 0; whole && i < 3; i++) wanted += request.flags >> i & 1;
  if (!whole || wanted != count) {
    for (size_t i = 0; i < count; i++) close_handed(fds[i]);
    tell_numbers(TOLD_REFUSED, NO_REQUEST, (uint32_t)run->pid, run->uid);
    answer(run, EXEC_REFUSED, 0, "that is no request", 18);
    forget(run);
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
  tell(TOLD_ASK, run->id, body, sizeof body, request.text, request.length);
}

#define FDS_MOST 8

/* Reads one packet of a stub. Returns false where it is done with. */
static void stub_speaks(struct run *run) {
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
    if (run->began) pass(run, KEEPER_SIGNAL, signal.number);
    else run->held |= 1ull << (signal.number - 1);
  }
}

/* The list of its children, by which a keeper kills its tree: where the filter asks about what is read, it could not open that itself, since nobody looks into
 * it. Numbers of processes are the same here and there only where there are no namespaces. */
static void give_list(const struct run *run) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task/%d/children", run->keeper, run->keeper);
  const int list = open(path, O_RDONLY | O_CLOEXEC);
  if (list < 0) return;
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof list)];
  } control = {0};
  struct keeper_packet packet = {.kind = KEEPER_LIST};
  struct iovec part = {.iov_base = &packet, .iov_len = sizeof packet};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof list);
  memcpy(CMSG_DATA(header), &list, sizeof list);
  (void)!sendmsg(run->control, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  close(list);
}

static void keeper_has_gone(struct run *run) {
  if (run->state == RUNNING && !run->began) {
    /* Nothing was executed: nothing is done twice. */
    hand_back(run);
    return;
  }
  if (run->state == RUNNING) {
    unsigned char lost[64] = {SIGKILL, 0, 0, 0, 1};
    tell(TOLD_ENDED, run->id, lost, sizeof lost, NULL, 0);
    answer(run, EXEC_ENDED, SIGKILL, "", 0);
  }
  tell(TOLD_GONE, run->id, NULL, 0, NULL, 0);
  forget(run);
}

static void keeper_speaks(struct run *run) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(struct ucred))];
  } control = {0};
  struct keeper_packet packet;
  struct iovec part = {.iov_base = &packet, .iov_len = sizeof packet};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  const ssize_t n = recvmsg(run->control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  struct ucred who = {0};
  const struct cmsghdr *header = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
  if (header != NULL && header->cmsg_type == SCM_CREDENTIALS) memcpy(&who, CMSG_DATA(header), sizeof who);
  if (n != (ssize_t)sizeof packet) {
    keeper_has_gone(run);
  } else if (packet.kind == KEEPER_IS) {
    run->keeper = who.pid;
    if (is_handed) give_list(run);
  } else if (packet.kind == KEEPER_BEGAN) {
    run->began = true;
    tell_numbers(TOLD_BEGAN, run->id, (uint32_t)run->keeper, (uint32_t)who.pid);
    for (int number = 1; number <= 64; number++)
      if ((run->held >> (number - 1) & 1) != 0) pass(run, KEEPER_SIGNAL, number);
    if (run->stub < 0) pass(run, KEEPER_KILL, 0);
  } else if (packet.kind == KEEPER_STOPPED) {
    answer(run, EXEC_STOPPED, packet.value, "", 0);
  } else if (packet.kind == KEEPER_ENDED && run->state == RUNNING) {
    unsigned char body[64] = {0};
    put32(body, (uint32_t)packet.value);
    for (int i = 0; i < 7; i++) {
      put32(body + 8 + 8 * i, (uint32_t)packet.usage[i]);
      put32(body + 12 + 8 * i, (uint32_t)(packet.usage[i] >> 32));
    }
    /* The record is told before the agent goes on. */
    tell(TOLD_ENDED, run->id, body, sizeof body, NULL, 0);
    answer(run, EXEC_ENDED, packet.value, "", 0);
    run->state = ENDED;
    shut(&run->stub);
  }
}

/* --- what the front says -------------------------------------------------------------------------------------------- */

static int block_of(const struct exec_frame *frame) {
  const int fd = memfd_create("nd7-exec", MFD_CLOEXEC);
  for (size_t done = 0; fd >= 0 && done < frame->length;) {
    const ssize_t n = write(fd, frame->body + done, frame->length - done);
    if (n < 0 && errno != EINTR) {
      close(fd);
      return -1;
    }
    if (n > 0) done += (size_t)n;
  }
  return fd;
}

static bool send_order(struct run *run, const struct exec_frame *frame, int to, int keeper) {
  int fds[5] = {keeper, block_of(frame)};
  size_t count = 2;
  for (int i = 0; i < 3; i++)
    if (run->streams[i] >= 0) fds[count++] = run->streams[i];
  if (fds[1] < 0) return false;
  struct exec_order_packet packet = {.flags = run->flags, .length = (uint32_t)frame->length};
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof fds)];
  } control = {0};
  struct iovec part = {.iov_base = &packet, .iov_len = sizeof packet};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(count * sizeof(int))};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(count * sizeof(int));
  memcpy(CMSG_DATA(header), fds, count * sizeof(int));
  const bool sent = sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof packet;
  close(fds[1]);
  return sent;
}

static void start(struct run *run, const struct exec_frame *frame) {
  int ends[2];
  const int yes = 1;
  /* Where there is no other one any more, it reads what the session reads. */
  const int to = frame->kind == ORDER_RUN_READER && reader >= 0 ? reader : zygote;
  if (to < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    hand_back(run);
    return;
  }
  /* From here on a stub whose broker has gone does not run it once more. */
  answer(run, EXEC_TAKEN, 0, "", 0);
  const bool sent = setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0 && send_order(run, frame, to, ends[1]);
  close(ends[1]);
  close_streams(run);
  if (!sent) {
    close(ends[0]);
    hand_back(run);
    return;
  }
  run->control = ends[0];
  run->state = RUNNING;
  watch(run->control, run, true);
}

static void obey(const struct exec_frame *frame) {
  struct run *run = runs;
  while (run < runs + RUNS_MAX && (run->state != ASKED || run->id != frame->id)) run++;
  if (run == runs + RUNS_MAX) return;
  if (run->stub < 0) {
    /* Nobody waits for it any more: it is not begun. */
    tell(TOLD_GONE, run->id, NULL, 0, NULL, 0);
    forget(run);
  } else if (frame->kind == ORDER_RUN || frame->kind == ORDER_RUN_READER) {
    start(run, frame);
  } else if (frame->kind == ORDER_DIRECT) {
    hand_back(run);
  } else {
    answer(run, EXEC_REFUSED, 0, frame->body, frame->length);
    tell(TOLD_GONE, run->id, NULL, 0, NULL, 0);
    forget(run);
  }
}

static void front_speaks(void) {
  static unsigned char *bytes;
  static size_t length, room;
  if (room - length < 65536) {
    unsigned char *more = realloc(bytes, room += 65536);
    if (more == NULL) _exit(125);
    bytes = more;
  }
  const ssize_t n = recv(BROKER_CHANNEL, bytes + length, room - length, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) _exit(0);
  length += (size_t)n;
  struct exec_frame frame;
  size_t size, at = 0;
  int whole;
  while ((whole = exec_frame_parse(bytes + at, length - at, &frame, &size)) > 0) {
    obey(&frame);
    at += size;
  }
  if (whole < 0) _exit(125);
  memmove(bytes, bytes + at, length -= at);
}

/* --- the process ------------------------------------------------------------------------------------------------------ */

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
  const ssize_t n = recvmsg(listener, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return -1;
  /* With the supervisor the session ends. */
  const struct cmsghdr *header = n != (ssize_t)sizeof pid ? NULL : CMSG_FIRSTHDR(&message);
  if (header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) _exit(0);
  memcpy(&stub, CMSG_DATA(header), sizeof stub);
  *who = (struct ucred){.pid = (pid_t)pid, .uid = geteuid(), .gid = getegid()};
  return stub;
}

static int take_connected(struct ucred *who) {
  const int stub = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  socklen_t size = sizeof *who;
  if (stub >= 0 && getsockopt(stub, SOL_SOCKET, SO_PEERCRED, who, &size) != 0) who->pid = 0;
  if (stub >= 0) who->pid = introduced(stub, who->pid);
  return stub;
}

static void welcome(void) {
  struct ucred who;
  const int stub = is_handed ? take_handed(&who) : take_connected(&who);
  if (stub < 0) return;
  struct run *run = runs;
  while (run < runs + RUNS_MAX && run->state != FREE) run++;
  if (run == runs + RUNS_MAX) {
    /* It runs its command itself. */
    tell_numbers(TOLD_REFUSED, TOO_MANY, (uint32_t)who.pid, who.uid);
    close(stub);
    return;
  }
  *run = (struct run){.state = NEW, .stub = stub, .control = -1, .streams = {-1, -1, -1}, .id = ++last_id, .pid = who.pid, .uid = who.uid, .until = now_ns() / 1000000 + REQUEST_MS};
  watch(stub, run, false);
}

/* Who connects and says nothing keeps no place. Returns whether there is any such. */
static bool sweep(void) {
  bool any = false;
  for (struct run *run = runs; run < runs + RUNS_MAX; run++) {
    if (run->state != NEW) continue;
    if (run->until < now_ns() / 1000000) forget(run);
    else any = true;
  }
  return any;
}

static _Noreturn void serve(void) {
  for (bool waiting = false;; waiting = sweep()) {
    struct epoll_event events[32];
    const int n = epoll_wait(poller, events, 32, waiting ? 1000 : -1);
    for (int i = 0; i < n; i++) {
      const uint64_t data = events[i].data.u64;
      if (data == 0) front_speaks();
      else if (data == 1) welcome();
      else if (data == 2) {
        /* Whatever comes from there: it says nothing, it ends. */
        shut(&zygote);
        tell(TOLD_NO_ZYGOTE, 0, NULL, 0, NULL, 0);
      } else if (data == 3) {
        shut(&reader);
      } else {
        struct run *run = &runs[(data - 8) / 2];
        const bool is_control = (data & 1) != 0;
        /* It may have been closed by an event before this one. */
        if (is_control && run->control >= 0) keeper_speaks(run);
        if (!is_control && run->stub >= 0) stub_speaks(run);
      }
    }
  }
}

static void stand_apart(void) {
  descriptors_keep((const int[]){zygote, reader, listener, BROKER_CHANNEL}, 4);
  report_fd = -1;
  if (setsid() < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) _exit(125);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; fd++)
    if (null < 0 || dup2(null, fd) != fd) _exit(125);
  close(null);
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  const struct rlimit none = {0};
  setrlimit(RLIMIT_CORE, &none);
}

_Noreturn void broker_run(const struct broker_held *held, pid_t launcher) {
  listener = held->listener;
  zygote = held->zygote;
  reader = held->reader;
  is_handed = held->is_handed;
  stand_apart();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != launcher) _exit(0);
  poller = epoll_create1(EPOLL_CLOEXEC);
  const int watched[] = {BROKER_CHANNEL, listener, zygote, reader};
  for (unsigned i = 0; i < 4; i++) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
    if (watched[i] >= 0 && epoll_ctl(poller, EPOLL_CTL_ADD, watched[i], &event) != 0) _exit(125);
  }
  serve();
}
