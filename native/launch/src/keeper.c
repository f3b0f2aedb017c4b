/* The keeper of one command: its parent, which sees how it ends, and the place to which whatever it leaves behind comes back, so that its tree stays one. */
#define _GNU_SOURCE
#include "exec.h"
#include "launch.h"

#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static void woken(int signal) { (void)signal; }

static void tell(int control, struct keeper_packet packet) { (void)!send(control, &packet, sizeof packet, MSG_NOSIGNAL); }

static void set_signals(uint64_t ignored) {
  for (int number = 1; number < NSIG; number++) signal(number, (ignored >> (number - 1) & 1) != 0 ? SIG_IGN : SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Puts the streams in their places; they all lie above them. */
static bool place(const int streams[3]) {
  for (int fd = 0; fd < 3; fd++)
    if (streams[fd] < 0 ? close(fd) != 0 : dup2(streams[fd], fd) != fd) return false;
  return true;
}

static void take_terminal(void) {
  for (int fd = 0; fd < 3; fd++)
    if (isatty(fd) && ioctl(fd, TIOCSCTTY, 0) == 0) return;
}

static _Noreturn void become(int control, uint32_t flags, const struct exec_block *block, const int streams[3], pid_t keeper) {
  char folder[40];
  snprintf(folder, sizeof folder, "/proc/%u/cwd", block->folder);
  /* A keeper that is killed takes its command along. */
  if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != keeper) _exit(126);
  if (!place(streams)) _exit(126);
  if ((flags & EXEC_TERMINAL) != 0) take_terminal();
  /* By the process whose folder it is: a path could lead somewhere else, and a folder that was removed has none. */
  if (chdir(folder) != 0) {
    dprintf(STDERR_FILENO, "nd7: the working folder of the command is not there: %s\n", strerror(errno));
    _exit(126);
  }
  umask((mode_t)block->mask);
  set_signals(block->ignored);
  tell(control, (struct keeper_packet){.kind = KEEPER_BEGAN});
  if (syscall(NR_CLOSE_RANGE, 3u, ~0u, 0) != 0) _exit(126);
  execve(block->program, block->argv, block->envp);
  const int error = errno;
  dprintf(STDERR_FILENO, "nd7: %s: %s\n", block->program, strerror(error));
  _exit(error == ENOENT ? 127 : 126);
}

static void tell_end(int control, int status, const struct rusage *used) {
  const struct keeper_packet packet = {.kind = KEEPER_ENDED,
                                       .value = status,
                                       .usage = {(uint64_t)used->ru_utime.tv_sec * 1000000 + (uint64_t)used->ru_utime.tv_usec,
                                                 (uint64_t)used->ru_stime.tv_sec * 1000000 + (uint64_t)used->ru_stime.tv_usec, (uint64_t)used->ru_maxrss,
                                                 (uint64_t)used->ru_minflt, (uint64_t)used->ru_majflt, (uint64_t)used->ru_inblock, (uint64_t)used->ru_oublock}};
  tell(control, packet);
}

/* Collects what has changed. Returns whether anything of the tree is left. */
static bool reap(int control, pid_t *shell) {
  for (;;) {
    int status;
    struct rusage used;
    const pid_t pid = wait4(-1, &status, WNOHANG | WUNTRACED, &used);
    if (pid == 0) return true;
    if (pid < 0 && errno != EINTR) return false;
    if (pid != *shell) continue;
    if (WIFSTOPPED(status)) {
      tell(control, (struct keeper_packet){.kind = KEEPER_STOPPED, .value = WSTOPSIG(status)});
    } else {
      tell_end(control, status, &used);
      *shell = 0;
    }
  }
}

/* The list of this process's children, where the broker has given it. */
static int list = -1;

static void kill_children(void) {
  char text[4096];
  const ssize_t n = pread(list, text, sizeof text - 1, 0);
  if (n <= 0) return;
  text[n] = '\0';
  /* The last number may be cut off: the next round has it. */
  char *end = n == (ssize_t)sizeof text - 1 ? strrchr(text, ' ') : NULL;
  if (end != NULL) *end = '\0';
  for (char *at = text; *at != '\0';) {
    const long pid = strtol(at, &end, 10);
    if (end == at) return;
    if (pid > 1) kill((pid_t)pid, SIGKILL);
    at = *end == ' ' ? end + 1 : end;
  }
}

/* Kills the command and, as they come back to this process, all that it has made. */
static _Noreturn void kill_tree(int control, pid_t *shell) {
  if (list < 0) list = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  const struct timespec pause = {.tv_nsec = 500000};
  if (*shell > 0) kill(-*shell, SIGKILL);
  while (reap(control, shell)) {
    if (*shell > 0) kill(*shell, SIGKILL);
    kill_children();
    nanosleep(&pause, NULL);
  }
  _exit(0);
}

static ssize_t receive(int control, struct keeper_packet *packet) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof list)];
  } handed = {0};
  struct iovec part = {.iov_base = packet, .iov_len = sizeof *packet};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &handed, .msg_controllen = sizeof handed};
  const ssize_t n = recvmsg(control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const struct cmsghdr *header = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
  if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) memcpy(&list, CMSG_DATA(header), sizeof list);
  return n;
}

static void obey(int control, pid_t *shell) {
  struct keeper_packet packet;
  const ssize_t n = receive(control, &packet);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const bool killed = n != (ssize_t)sizeof packet || packet.kind == KEEPER_KILL;
  if (killed) kill_tree(control, shell);
  if (packet.kind == KEEPER_SIGNAL && *shell > 0 && packet.value > 0 && packet.value < NSIG) kill(-*shell, packet.value);
}

_Noreturn void keeper_run(int control, uint32_t flags, const struct exec_block *block, const int streams[3]) {
  sigset_t children, none;
  sigemptyset(&none);
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  const struct sigaction action = {.sa_handler = woken};
  sigaction(SIGCHLD, &action, NULL);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) _exit(125);
  tell(control, (struct keeper_packet){.kind = KEEPER_IS});
  const pid_t keeper = getpid();
  pid_t shell = fork();
  if (shell < 0) _exit(125);
  if (shell == 0) become(control, flags, block, streams, keeper);
  for (int fd = 0; fd < 3; fd++)
    if (streams[fd] >= 0) close(streams[fd]);
  struct pollfd polled = {.fd = control, .events = POLLIN};
  while (reap(control, &shell))
    if (ppoll(&polled, 1, NULL, &none) > 0) obey(control, &shell);
  _exit(0);
}
