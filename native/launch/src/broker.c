/* The broker: outside. It takes commands from stubs, asks the front about each, and has the zygote run them. Of who speaks it says what the kernel says; what is
 * run, with which environment and where, the front alone says. */
#define _GNU_SOURCE
#include "broker.h"
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
#include <unistd.h>

struct run broker_runs[RUNS_MAX];
static int zygote, reader;
int broker_poller, broker_listener;
bool broker_is_handed;

/* --- the front -------------------------------------------------------------------------------------------------- */

void put32(unsigned char *to, uint32_t value) {
  for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (8 * i));
}

/* Whole frames only; with a front that has gone the session ends, and this process. */
void front_tell(enum told kind, uint32_t id, const void *body, size_t length, const void *text, size_t text_length) {
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

void front_tell_numbers(enum told kind, uint32_t id, uint32_t first, uint32_t second) {
  unsigned char body[8];
  put32(body, first);
  put32(body + 4, second);
  front_tell(kind, id, body, sizeof body, NULL, 0);
}

/* --- keepers ---------------------------------------------------------------------------------------------------- */

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
    run_hand_back(run);
    return;
  }
  if (run->state == RUNNING) {
    unsigned char lost[64] = {SIGKILL, 0, 0, 0, 1};
    front_tell(TOLD_ENDED, run->id, lost, sizeof lost, NULL, 0);
    run_answer(run, EXEC_ENDED, SIGKILL, "", 0);
  }
  front_tell(TOLD_GONE, run->id, NULL, 0, NULL, 0);
  run_forget(run);
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
  /* A keeper that has ended before it read all is told by ECONNRESET once, ahead of what it has said: that is still to be heard. */
  if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET)) return;
  struct ucred who = {0};
  const struct cmsghdr *header = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
  if (header != NULL && header->cmsg_type == SCM_CREDENTIALS) memcpy(&who, CMSG_DATA(header), sizeof who);
  if (n != (ssize_t)sizeof packet) {
    keeper_has_gone(run);
  } else if (packet.kind == KEEPER_IS) {
    run->keeper = who.pid;
    if (broker_is_handed) give_list(run);
  } else if (packet.kind == KEEPER_BEGAN) {
    run->began = true;
    front_tell_numbers(TOLD_BEGAN, run->id, (uint32_t)run->keeper, (uint32_t)who.pid);
    for (int number = 1; number <= 64; number++)
      if ((run->held >> (number - 1) & 1) != 0) run_pass(run, KEEPER_SIGNAL, number);
    if (run->stub < 0) run_pass(run, KEEPER_KILL, 0);
  } else if (packet.kind == KEEPER_STOPPED) {
    run_answer(run, EXEC_STOPPED, packet.value, "", 0);
  } else if (packet.kind == KEEPER_ENDED && run->state == RUNNING) {
    unsigned char body[64] = {0};
    put32(body, (uint32_t)packet.value);
    for (int i = 0; i < 7; i++) {
      put32(body + 8 + 8 * i, (uint32_t)packet.usage[i]);
      put32(body + 12 + 8 * i, (uint32_t)(packet.usage[i] >> 32));
    }
    /* The record is told before the agent goes on. */
    front_tell(TOLD_ENDED, run->id, body, sizeof body, NULL, 0);
    run_answer(run, EXEC_ENDED, packet.value, "", 0);
    run->state = ENDED;
    end_shut(&run->stub);
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
    run_hand_back(run);
    return;
  }
  /* From here on a stub whose broker has gone does not run it once more. */
  run_answer(run, EXEC_TAKEN, 0, "", 0);
  const bool sent = setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0 && send_order(run, frame, to, ends[1]);
  close(ends[1]);
  run_close_streams(run);
  if (!sent) {
    close(ends[0]);
    run_hand_back(run);
    return;
  }
  run->control = ends[0];
  run->state = RUNNING;
  run_watch(run->control, run, true);
}

static void obey(const struct exec_frame *frame) {
  struct run *run = broker_runs;
  while (run < broker_runs + RUNS_MAX && (run->state != ASKED || run->id != frame->id)) run++;
  if (run == broker_runs + RUNS_MAX) return;
  if (run->stub < 0) {
    /* Nobody waits for it any more: it is not begun. */
    front_tell(TOLD_GONE, run->id, NULL, 0, NULL, 0);
    run_forget(run);
  } else if (frame->kind == ORDER_RUN || frame->kind == ORDER_RUN_READER) {
    start(run, frame);
  } else if (frame->kind == ORDER_DIRECT) {
    run_hand_back(run);
  } else {
    run_answer(run, EXEC_REFUSED, 0, frame->body, frame->length);
    front_tell(TOLD_GONE, run->id, NULL, 0, NULL, 0);
    run_forget(run);
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

static _Noreturn void serve(void) {
  for (bool waiting = false;; waiting = stubs_sweep()) {
    struct epoll_event events[32];
    const int n = epoll_wait(broker_poller, events, 32, waiting ? 1000 : -1);
    for (int i = 0; i < n; i++) {
      const uint64_t data = events[i].data.u64;
      if (data == 0) front_speaks();
      else if (data == 1) stub_welcome();
      else if (data == 2) {
        /* Whatever comes from there: it says nothing, it ends. */
        end_shut(&zygote);
        front_tell(TOLD_NO_ZYGOTE, 0, NULL, 0, NULL, 0);
      } else if (data == 3) {
        end_shut(&reader);
      } else {
        struct run *run = &broker_runs[(data - 8) / 2];
        const bool is_control = (data & 1) != 0;
        /* It may have been closed by an event before this one. */
        if (is_control && run->control >= 0) keeper_speaks(run);
        if (!is_control && run->stub >= 0) stub_speaks(run);
      }
    }
  }
}

static void stand_apart(void) {
  descriptors_keep((const int[]){zygote, reader, broker_listener, BROKER_CHANNEL}, 4);
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
  broker_listener = held->listener;
  zygote = held->zygote;
  reader = held->reader;
  broker_is_handed = held->is_handed;
  stand_apart();
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != launcher) _exit(0);
  broker_poller = epoll_create1(EPOLL_CLOEXEC);
  const int watched[] = {BROKER_CHANNEL, broker_listener, zygote, reader};
  for (unsigned i = 0; i < 4; i++) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
    if (watched[i] >= 0 && epoll_ctl(broker_poller, EPOLL_CTL_ADD, watched[i], &event) != 0) _exit(125);
  }
  serve();
}
