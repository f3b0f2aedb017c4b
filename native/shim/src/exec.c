/* The exec stub: what an agent takes for its shell. It hands the text and the three streams to the session's broker, stands for the command while that runs,
 * and ends as it ended. Whatever else it is asked for, and where there is no broker, it becomes the shell. docs/protocol/exec.md. */
#define _GNU_SOURCE
#include "shim.h"

#include "exec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Those that somebody sends to a shell and means what runs in it. */
static const int PASSED[] = {SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH};

/* A front that is busy, or stopped at the terminal, does not hold a command up that runs here anyway. */
#define HEARD_MS 2000

static sigset_t original;
static char folder[PATH_MAX]; /* of this name: the door */

static const char *base(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

bool is_shell(const char *name) { return strcmp(base(name), "bash") == 0 || strcmp(base(name), "zsh") == 0; }

static void say(const char *text, const char *more) {
  char line[PATH_MAX + 128];
  const int n = snprintf(line, sizeof line, "nd7: %s%s\n", text, more);
  if (n > 0) (void)!write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* Becomes the shell that this stands for: what the link beside it leads to. */
static _Noreturn void become_shell(char **argv) {
  char path[2 * PATH_MAX], shell[PATH_MAX];
  snprintf(path, sizeof path, "%s/shell", folder);
  const ssize_t n = readlink(path, shell, sizeof shell - 1);
  if (n > 0) shell[n] = '\0';
  else snprintf(shell, sizeof shell, "/bin/%s", base(argv[0]));
  const char *named = getenv("SHELL");
  if (named != NULL && strcmp(named, argv[0]) == 0) setenv("SHELL", shell, 1);
  sigprocmask(SIG_SETMASK, &original, NULL);
  argv[0] = shell;
  execv(shell, argv);
  say(shell, errno == ENOENT ? ": it is not there" : ": it cannot be executed");
  _exit(errno == ENOENT ? 127 : 126);
}

/* Whether the arguments are a text and nothing besides, as an agent gives them. */
static bool is_text(int argc, char **argv, uint32_t *flags) {
  bool has_text = false;
  int at = 1;
  for (; at < argc - 1; at++) {
    if (strcmp(argv[at], "-l") == 0) *flags |= EXEC_LOGIN;
    else if (strcmp(argv[at], "-c") == 0 && !has_text) has_text = true;
    else if ((strcmp(argv[at], "-lc") == 0 || strcmp(argv[at], "-cl") == 0) && !has_text) has_text = true, *flags |= EXEC_LOGIN;
    else return false;
  }
  return has_text && at == argc - 1 && argv[at][0] != '\0' && argv[at][0] != '-';
}

/* In the folder of this name first: a session without a view of its own has its door there. */
static int connect_to_broker(void) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const int door = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/exec", door);
  const int size = 512 << 10;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  const bool connected = fd >= 0 && door >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0;
  if (door >= 0) close(door);
  if (connected) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

static bool send_request(int fd, uint32_t flags, const char *text) {
  unsigned char head[EXEC_HEADER];
  memcpy(head, EXEC_MAGIC, 8);
  for (int i = 0; i < 4; i++) head[8 + i] = (unsigned char)(flags >> (8 * i));
  int streams[3];
  size_t count = 0;
  for (int i = 0; i < 3; i++)
    if ((flags & (1u << i)) != 0) streams[count++] = i;
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof streams)];
  } control = {0};
  struct iovec parts[] = {{head, sizeof head}, {(void *)(uintptr_t)text, strlen(text)}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  if (count > 0) {
    message.msg_control = &control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(header), streams, count * sizeof(int));
  }
  return sendmsg(fd, &message, MSG_NOSIGNAL) > 0;
}

/* A terminal belongs to one session: where this process leads it, the command is to lead it instead. Returns the descriptor of the terminal, -1: there is none. */
static int give_up_terminal(uint32_t *flags, int signals) {
  const int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) return -1;
  if (getsid(0) != getpid()) {
    *flags |= EXEC_ITSELF;
    return terminal;
  }
  if (ioctl(terminal, TIOCNOTTY) == 0) *flags |= EXEC_TERMINAL;
  /* It tells the group of the terminal so by these two: this process. */
  struct signalfd_siginfo info;
  while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) continue;
  return terminal;
}

static _Noreturn void run_directly(int terminal, uint32_t flags, char **argv) {
  if ((flags & EXEC_TERMINAL) != 0) (void)!ioctl(terminal, TIOCSCTTY, 0);
  become_shell(argv);
}

/* Ends as the command ended, so that whoever waits sees the same. */
static _Noreturn void end_like(int status) {
  if (!WIFSIGNALED(status)) _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 126);
  const struct rlimit none = {0};
  setrlimit(RLIMIT_CORE, &none);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, WTERMSIG(status));
  signal(WTERMSIG(status), SIG_DFL);
  kill(getpid(), WTERMSIG(status));
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  _exit(128 + WTERMSIG(status));
}

static void pass_signals(int broker, int signals) {
  struct signalfd_siginfo info;
  while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
    const struct exec_signal packet = {.kind = EXEC_SIGNAL, .number = (int32_t)info.ssi_signo};
    (void)!send(broker, &packet, sizeof packet, MSG_NOSIGNAL);
  }
}

/* Stands for the command until its end. Returns where the command is to be run here. */
static void stand_for(int broker, int signals) {
  bool taken = false;
  struct pollfd polled[] = {{.fd = broker, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
  for (;;) {
    if (poll(polled, 2, -1) < 0) continue;
    if (polled[1].revents != 0) pass_signals(broker, signals);
    if (polled[0].revents == 0) continue;
    struct exec_reply reply = {0};
    const ssize_t n = recv(broker, &reply, sizeof reply, MSG_DONTWAIT);
    /* A broker that has closed its end before it read all is told by ECONNRESET once, ahead of what it has said. */
    if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET)) continue;
    if (n != (ssize_t)sizeof reply) {
      if (!taken) return;
      /* It may have run, and is not run twice. */
      say("the command was killed: ", "nd7’s broker has gone");
      end_like(SIGKILL);
    }
    reply.text[sizeof reply.text - 1] = '\0';
    if (reply.kind == EXEC_TAKEN) taken = true;
    if (reply.kind == EXEC_DIRECT) return;
    if (reply.kind == EXEC_ENDED) end_like(reply.value);
    if (reply.kind == EXEC_STOPPED) kill(getpid(), SIGSTOP);
    if (reply.kind == EXEC_REFUSED) {
      say("the command was not run: ", reply.text);
      _exit(126);
    }
  }
}

/* The front looks at who has told it of a command, and at nobody who has ended already. */
static void wait_until_heard(int broker) {
  struct pollfd polled = {.fd = broker, .events = POLLIN};
  (void)poll(&polled, 1, HEARD_MS);
}

int exec_main(int argc, char **argv) {
  const char *slash = strrchr(argv[0], '/');
  snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 8 : (int)(slash - argv[0]), slash == NULL ? "/run/nd7" : argv[0]);
  sigset_t blocked;
  sigemptyset(&blocked);
  for (size_t i = 0; i < sizeof PASSED / sizeof *PASSED; i++) sigaddset(&blocked, PASSED[i]);
  sigprocmask(SIG_BLOCK, &blocked, &original);
  uint32_t flags = 0;
  if (!is_text(argc, argv, &flags)) become_shell(argv);
  for (int fd = 0; fd < 3; fd++)
    if (fcntl(fd, F_GETFD) >= 0) flags |= 1u << fd;
  /* What is opened from here on must not take the place of a stream that is closed. */
  for (int fd = 0; fd < 3; fd++)
    if ((flags & (1u << fd)) == 0 && open("/", O_PATH | O_CLOEXEC) != fd) become_shell(argv);
  const int signals = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK), broker = connect_to_broker();
  if (broker < 0 || signals < 0) become_shell(argv);
  const int terminal = give_up_terminal(&flags, signals);
  if ((flags & EXEC_ITSELF) != 0) flags &= ~(uint32_t)EXEC_OPEN;
  const bool sent = send_request(broker, flags, argv[argc - 1]);
  if (sent && (flags & EXEC_ITSELF) != 0) wait_until_heard(broker);
  else if (sent) stand_for(broker, signals);
  run_directly(terminal, flags, argv);
}
