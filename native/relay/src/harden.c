/* What the relay may still do once it serves: whoever found a fault in it has sockets, and neither files nor programs. */
#define _GNU_SOURCE
#include "relay.h"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "no filter for this processor"
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)
/* Goes on where it is the value, and else so many instructions further. */
#define SAME(value, further) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, further)
#define ALLOW(call) SAME(__NR_##call, 1), ANSWER(SECCOMP_RET_ALLOW)

#if !defined(__SANITIZE_ADDRESS__)
/* The lower half of an argument is all that the kernel reads of an int. */
static struct sock_filter filter[] = {
    LOAD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
    LOAD(nr),
#ifdef __NR_epoll_wait
    ALLOW(epoll_wait),
#endif
#ifdef __NR_poll
    ALLOW(poll),
#endif
    ALLOW(recvfrom),
    ALLOW(sendto),
    ALLOW(epoll_pwait),
    ALLOW(epoll_ctl),
    ALLOW(sendmsg),
    ALLOW(accept4),
    ALLOW(connect),
    ALLOW(close),
    ALLOW(shutdown),
    ALLOW(getsockname),
    ALLOW(getsockopt),
    ALLOW(dup),
    ALLOW(ppoll),
    ALLOW(clock_gettime),
    ALLOW(sysinfo),
    ALLOW(exit_group),
    ALLOW(restart_syscall),
    /* Itself, and to yield to others or not. */
    SAME(__NR_sched_setscheduler, 7),
    LOAD(args[0]),
    SAME(0, 4),
    LOAD(args[1]),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SCHED_BATCH, 1, 0),
    SAME(SCHED_OTHER, 1),
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
    SAME(__NR_socket, 9),
    LOAD(args[0]),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 1, 0),
    SAME(AF_INET6, 5),
    LOAD(args[1]),
    SAME(SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 3),
    LOAD(args[2]),
    SAME(0, 1),
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
    /* The two options that it sets: by others a socket's owner routes, marks and filters. */
    SAME(__NR_setsockopt, 9),
    LOAD(args[1]),
    SAME(IPPROTO_TCP, 3),
    LOAD(args[2]),
    SAME(TCP_NODELAY, 5),
    ANSWER(SECCOMP_RET_ALLOW),
    SAME(SOL_SOCKET, 3),
    LOAD(args[2]),
    SAME(SO_LINGER, 1),
    ANSWER(SECCOMP_RET_ALLOW),
    ANSWER(SECCOMP_RET_KILL_PROCESS),
};
#endif

/* Root's too: a socket's options alone would let it rule this machine's network. */
static bool has_no_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
  return syscall(SYS_capset, &header, none) == 0;
}

void harden(void) {
  /* It ends with its starter by its channels, which one that is stopped does not read: the kernel kills that one too. */
  const bool is_plain = has_no_capabilities() && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
#if defined(__SANITIZE_ADDRESS__)
  /* What finds faults asks for more. */
  if (is_plain) return;
#else
  const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
  if (is_plain && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0) return;
#endif
  dprintf(STDERR_FILENO, "nd7-relay: this kernel does not let a program give up its rights\n");
  _exit(1);
}
