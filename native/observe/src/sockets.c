/* Connecting, binding and listening, where no network namespace bounds them: done on a copy of the caller's socket, with an address that was read once. */
#define _GNU_SOURCE
#include "sockets.h"

#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INT(index) ((int)(uint32_t)call->args[index])
/* --- the internet's families: loopback only ---------------------------------------------------------------------------- */

static bool is_mapped(const struct in6_addr *a) { return IN6_IS_ADDR_V4MAPPED(a); }

static uint32_t mapped_v4(const struct in6_addr *a) {
  uint32_t v4;
  memcpy(&v4, a->s6_addr + 12, sizeof v4);
  return ntohl(v4);
}

static void map_loopback(struct in6_addr *a) {
  static const unsigned char mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  memcpy(a->s6_addr, mapped, sizeof mapped);
}

static bool only_v6(int fd) {
  int yes = 1;
  socklen_t length = sizeof yes;
  return getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, &length) != 0 || yes != 0;
}

/* Whether an address is this machine's loopback; "any" becomes it. 0 or an errno. */
static int to_loopback(int fd, union address *address, socklen_t length, uint16_t **port) {
  if (address->head.sa_family == AF_INET && length >= sizeof address->v4) {
    const uint32_t v4 = ntohl(address->v4.sin_addr.s_addr);
    *port = &address->v4.sin_port;
    if (v4 == INADDR_ANY) address->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return v4 == INADDR_ANY || v4 == INADDR_LOOPBACK ? 0 : EADDRNOTAVAIL;
  }
  if (address->head.sa_family != AF_INET6 || length < offsetof(struct sockaddr_in6, sin6_scope_id)) return EAFNOSUPPORT;
  struct in6_addr *a = &address->v6.sin6_addr;
  *port = &address->v6.sin6_port;
  if (IN6_IS_ADDR_LOOPBACK(a)) return 0;
  if (is_mapped(a)) return mapped_v4(a) == INADDR_LOOPBACK ? 0 : EADDRNOTAVAIL;
  if (!IN6_IS_ADDR_UNSPECIFIED(a)) return EADDRNOTAVAIL;
  /* Programs that listen everywhere are reached by the older address as a rule. */
  if (only_v6(fd)) *a = in6addr_loopback;
  else map_loopback(a);
  return 0;
}

static uint16_t port_of(const union address *address) { return ntohs(address->head.sa_family == AF_INET ? address->v4.sin_port : address->v6.sin6_port); }

static int own_address(int fd, union address *address, socklen_t *length) {
  memset(address, 0, sizeof *address);
  *length = ADDRESS_MAX;
  return getsockname(fd, &address->head, length) == 0 ? 0 : errno;
}

/* As a line on which Node hears its children. */
bool sockets_tell(const char *line, size_t length, int fd) {
  static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct iovec part = {(void *)(uintptr_t)line, length};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  pthread_mutex_lock(&telling);
  const bool done = sendmsg(PLAN_CHANNEL, &message, MSG_NOSIGNAL) == (ssize_t)length;
  pthread_mutex_unlock(&telling);
  return done;
}

bool sockets_drain(void) {
  char bytes[4096];
  ssize_t n;
  /* Node acknowledges each descriptor; nothing else comes. */
  while ((n = recv(PLAN_CHANNEL, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) continue;
  return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* The front lets in only those whose port it was told: others of this machine find its listeners too. */
static int announce(int fd, const union address *to) {
  union address from;
  socklen_t length;
  char line[48];
  int error = own_address(fd, &from, &length);
  if (error == 0 && port_of(&from) == 0) {
    from = *to;
    uint16_t none = 0;
    memcpy(to->head.sa_family == AF_INET ? &from.v4.sin_port : &from.v6.sin6_port, &none, sizeof none);
    error = bind(fd, &from.head, to->head.sa_family == AF_INET ? sizeof from.v4 : sizeof from.v6) == 0 ? own_address(fd, &from, &length) : errno;
  }
  if (error != 0) return error;
  const int n = snprintf(line, sizeof line, "{\"from\":%u}\n", port_of(&from));
  return sockets_tell(line, (size_t)n, -1) ? 0 : ECONNREFUSED;
}

static int may_connect(const struct call *call, int fd, union address *address, socklen_t length) {
  uint16_t *at;
  (void)call;
  if (to_loopback(fd, address, length, &at) != 0) return ENETUNREACH;
  const uint16_t port = ntohs(*at);
  if (sockets_served(port)) return announce(fd, address);
  /* As where nobody listens. */
  return sockets_own_port(port) ? 0 : ECONNREFUSED;
}

/* --- connecting ------------------------------------------------------------------------------------------------------- */

static int connect_unix(struct call *call, struct dial *w) {
  struct stat s;
  bool magic, is_door = false;
  const char *path = w->address.unix_.sun_path;
  /* Names without a path are nobody's: they cannot be told apart. */
  if (w->length <= offsetof(struct sockaddr_un, sun_path) || path[0] == '\0') return ECONNREFUSED;
  int error;
  const enum own_socket own = sockets_own(call, path);
  if (own != OWN_NONE) {
    error = door_open(call, own, w->fd);
    if (error == 0) call_fail(call, 0);
    return error;
  }
  error = object_find(call, AT_FDCWD, path, false, true, &w->object, &magic);
  if (error == 0 && fstat(w->object, &s) != 0) error = errno;
  if (error != 0) return error;
  if (!S_ISSOCK(s.st_mode)) return ECONNREFUSED;
  if ((sockets_know(&s, &is_door) && !is_door) || grants_socket(&s)) return 0;
  char real[PATH_MAX];
  size_t length;
  if (path_of(w->object, real, sizeof real, &length) == 0) channel_event(call, EVENT_REFUSED, CALL_CONNECT, EACCES, NAMES_NONE, real);
  return EACCES;
}

static void connect_bare(struct call *call) {
  struct dial w = {.object = -1, .fd = -1};
  int error = caller_address(call, &w.address, &w.length);
  if (error == 0) error = caller_socket(call, INT(0), &w.fd);
  if (error != 0) return call_fail(call, error);
  const int domain = domain_of(w.fd);
  if (w.address.head.sa_family == AF_UNSPEC) error = domain == AF_INET || domain == AF_INET6 ? 0 : EINVAL;
  else if (domain == AF_UNIX && w.address.head.sa_family == AF_UNIX) error = connect_unix(call, &w);
  else if (domain == AF_INET || domain == AF_INET6) error = may_connect(call, w.fd, &w.address, w.length);
  else error = EAFNOSUPPORT;
  if (error == 0 && !call->answered) {
    asker_begin(call, &w);
    return dial(call, &w);
  }
  close(w.fd);
  if (w.object >= 0) close(w.object);
  if (!call->answered) call_fail(call, error);
}

/* --- binding and listening ---------------------------------------------------------------------------------------------- */

static int bind_loopback(int fd, union address *address, socklen_t length) {
  uint16_t *port;
  const int error = to_loopback(fd, address, length, &port);
  if (error != 0) return error;
  return bind(fd, &address->head, length) == 0 ? 0 : errno;
}

static void bind_bare(struct call *call) {
  union address address;
  socklen_t length;
  int fd, error = caller_address(call, &address, &length);
  if (error == 0) error = caller_socket(call, INT(0), &fd);
  if (error != 0) return call_fail(call, error);
  const int domain = domain_of(fd);
  if (domain == AF_UNIX && address.head.sa_family == AF_UNIX) error = bind_unix(call, fd, &address.unix_, length);
  else if (domain == AF_INET || domain == AF_INET6) error = bind_loopback(fd, &address, length);
  else error = EACCES;
  close(fd);
  call_fail(call, error);
}

/* A socket without an address would get one that the whole network reaches. */
static int listen_inet(int fd, int domain, int backlog) {
  union address address;
  socklen_t length;
  struct stat s;
  int error = own_address(fd, &address, &length);
  if (error == 0 && port_of(&address) == 0) {
    memset(&address, 0, sizeof address);
    address.head.sa_family = (sa_family_t)domain;
    error = bind_loopback(fd, &address, domain == AF_INET ? sizeof address.v4 : sizeof address.v6);
    if (error == 0) error = own_address(fd, &address, &length);
  }
  if (error == 0 && fstat(fd, &s) != 0) error = errno;
  if (error != 0) return error;
  sockets_listen_at(port_of(&address), s.st_ino);
  return listen(fd, backlog) == 0 ? 0 : errno;
}

static void do_listen(struct call *call) {
  int fd, error = caller_socket(call, INT(0), &fd);
  if (error != 0) return call_fail(call, error);
  const int domain = domain_of(fd);
  if (domain == AF_INET || domain == AF_INET6) error = listen_inet(fd, domain, INT(1));
  else error = listen(fd, INT(1)) == 0 ? 0 : errno;
  close(fd);
  call_fail(call, error);
}

bool socket_dispatch(struct call *call) {
  switch (call->number) {
    case SYS_connect: connect_bare(call); return true;
    case SYS_bind: bind_bare(call); return true;
    case SYS_listen: do_listen(call); return true;
    default: return false;
  }
}
