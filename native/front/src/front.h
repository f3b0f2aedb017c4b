/* nd7 as it stands on PATH: `run` by a session host, which is resident, everything else by Node. See docs/protocol/session-host.md. */
#ifndef ND7_FRONT_H
#define ND7_FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- place.c: which Node, which program, which home ---------------------------------------------------------- */

struct place {
  char *node;       /* the Node that nd7 was attached with, else the first on PATH; NULL: none */
  char *main;       /* the CLI; NULL: not known */
  const char *home; /* $ND7_HOME or ~/.nd7, absolute; NULL: not known */
  int start_ms;     /* how long a host may take to start: Node has loaded its modules by then, on a busy machine too */
};

void place_find(struct place *place);

/* Becomes the CLI with the same arguments. Returns only to say what is wrong: ends with 1. */
_Noreturn void become_cli(const struct place *place, int argc, char **argv);

/* Whether a variable of the environment is one that Node or its loader reads at its start, so that a Node that runs already would not obey it. */
bool is_for_a_start(const char *variable);

/* --- frames.c: what front and host say ----------------------------------------------------------------------- */

#define PROTOCOL 2u
#define FRAME_MAX ((size_t)16 << 20)
/* A launch may fail where namespaces or notifications are refused, and is tried another way then, and in a weaker tier. */
#define ATTEMPTS_MAX 6
/* Plan, sockets of the session, supervisor, broker. */
#define CHANNELS 4

enum to_host { TO_REQUEST = 1, TO_LAUNCHED, TO_EXITED, TO_PRINTED };
enum from_host { FROM_REFUSE = 1, FROM_LAUNCH, FROM_SAY, FROM_FLUSH, FROM_SIGNAL, FROM_END, FROM_PREPARE };

struct frame {
  uint32_t kind;
  const unsigned char *body;
  size_t length;
};

/* Reads a frame off the front of bytes. Returns how many bytes it takes, 0 where more are to come, -1 where it is none. */
ssize_t frame_parse(const unsigned char *bytes, size_t length, struct frame *frame);

struct launch_order {
  uint32_t attempt;
  const char *path; /* absolute */
};
/* What frames mean; false where the body is not what the kind says. */
bool launch_parse(const struct frame *frame, struct launch_order *order);
struct end_order {
  bool by_signal;
  int value; /* 0–255, or a signal */
};
bool end_parse(const struct frame *frame, struct end_order *order);
bool signal_parse(const struct frame *frame, int *number);

/* The request, as one frame in memory of its own; NULL where there is no memory or it is too long. */
unsigned char *request_make(int argc, char **argv, char **environment, const char *cwd, uint32_t umask, uint32_t terminals, size_t *length);
/* A frame of two numbers' worth: kind and one value. */
bool send_number(int fd, uint32_t kind, uint32_t value);

/* --- host.c: the host's socket ------------------------------------------------------------------------------- */

/* Connects to the host of a home twice: where descriptors go (`passing`), and where frames go (`control`); starts one where there is none. False: there is
 * none to be had. */
bool host_connect(const struct place *place, int *passing, int *control);

/* --- session.c ----------------------------------------------------------------------------------------------- */

/* Has a host run this command line, and ends as the program ends. Returns where that cannot be: nothing has been started then. */
void run_by_host(const struct place *place, int argc, char **argv);

#endif
