/* Calls on a caller's socket, done on a copy of it with an address that was read once. */
#ifndef ND7_SOCKETS_H
#define ND7_SOCKETS_H

#include "observe.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ADDRESS_MAX 128u

union address {
  struct sockaddr head;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
  struct sockaddr_un unix_;
  unsigned char bytes[ADDRESS_MAX + 1];
};

/* --- connect.c ------------------------------------------------------------------------------------------------------ */

/* A copy of what one of the caller's descriptors stands for. 0 or an errno. */
int caller_socket(const struct call *call, int number, int *fd);
/* What the second and third argument say, ended by NUL. 0 or an errno. */
int caller_address(const struct call *call, union address *address, socklen_t *length);
int domain_of(int fd);
/* Whether it is a path, and not a name of the abstract kind or none. */
bool is_path(const union address *address, socklen_t length);

struct dial {
  struct call call;
  struct asker asker;
  int fd;
  union address address;
  socklen_t length;
  int object; /* what a path leads to; -1 */
};
/* Connects, and answers the call, now or when it is done; what the dial holds is closed. */
void dial(struct call *call, struct dial *d);
/* Answers it without, and closes what it holds. */
void dial_fail(struct call *call, struct dial *d, int error);

/* --- connected.c ---------------------------------------------------------------------------------------------------- */

/* Finds out who connects, where that is to something that nd7 serves. Before the connection is made. */
void asker_begin(const struct call *call, struct dial *d);
/* Tells the front of it, once: as soon as the connection has an end of its own, and before the call is answered. */
void asker_tell(struct dial *d);

#endif
