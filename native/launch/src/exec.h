/* Commands of an agent that run as children of this program instead of as its own. docs/protocol/exec.md has the bytes. */
#ifndef ND7_EXEC_H
#define ND7_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct plan;
struct inside;

/* --- the stub and the broker: whole packets on the socket `exec` of the session's door -------------------------- */

#define EXEC_MAGIC "nd7exec\1"
#define EXEC_HEADER ((size_t)12)
/* The longest argument of a program: no shell was ever given a longer text. */
#define EXEC_TEXT_MAX ((size_t)128 << 10)

enum exec_flag {
  EXEC_OPEN = 7,      /* one bit for each of the three streams that is open, and then handed over */
  EXEC_LOGIN = 8,     /* the shell was asked to be a login shell */
  EXEC_TERMINAL = 16, /* the stub led its terminal's session, and has given the terminal up */
  EXEC_ITSELF = 32,   /* the stub runs the text itself, and only tells of it */
};
#define EXEC_FLAGS 63u

struct exec_request {
  uint32_t flags;
  const char *text; /* not ended by NUL, and has none */
  size_t length;
};

/* From the stub, afterwards: a signal that it got. */
struct exec_signal {
  uint32_t kind; /* EXEC_SIGNAL */
  int32_t number;
};
#define EXEC_SIGNAL 1u

/* To the stub. */
enum exec_answer { EXEC_TAKEN = 1, EXEC_ENDED, EXEC_STOPPED, EXEC_DIRECT, EXEC_REFUSED };
struct exec_reply {
  uint32_t kind;
  int32_t value;  /* ENDED: a wait status; STOPPED: a signal */
  char text[512]; /* REFUSED: why, ended by NUL */
};

/* --- exec-frames.c: pure ----------------------------------------------------------------------------------------- */

bool exec_request_parse(const unsigned char *bytes, size_t length, struct exec_request *request);

/* A program to run, as the front has put it together. */
struct exec_block {
  uint32_t folder;  /* the pid, inside, of the process whose working folder it starts in */
  uint32_t mask;    /* umask */
  uint64_t ignored; /* signals that it starts with ignored: bit n - 1 for signal n */
  const char *program;
  char **argv, **envp; /* ended by NULL; the caller frees them */
};
#define EXEC_BLOCK_MAX ((size_t)4 << 20)

/* NULL when the bytes are a block, else what is wrong. Strings lie in the bytes. */
const char *exec_block_parse(unsigned char *bytes, size_t length, struct exec_block *block);

/* A frame of the front. */
enum exec_order { ORDER_RUN = 1, ORDER_DIRECT, ORDER_REFUSE, ORDER_RUN_READER };
struct exec_frame {
  uint32_t kind, id;
  const unsigned char *body;
  size_t length;
};
/* 1: the bytes begin with a whole frame, whose size is *size; 0: more is to come; -1: they are none. */
int exec_frame_parse(const unsigned char *bytes, size_t length, struct exec_frame *frame, size_t *size);

/* --- broker.c: outside ------------------------------------------------------------------------------------------- */

/* Where the front and the broker speak; inherited where a plan has a broker. */
#define BROKER_CHANNEL 6

/* What others hold of it; -1: there is none of the kind. */
struct broker_ends {
  int zygote; /* what the zygote hears */
  int reader; /* what that one hears whose commands are asked about what they read, where the plan has a filter for it */
  int door;   /* without namespaces: what the supervisor hands stubs over on, for the process of a u32 each */
};
/* Makes the broker of a session, which ends with the launcher. Without it all ends are -1. */
void broker_start(const struct plan *plan, struct broker_ends *ends);
void broker_leave(const struct broker_ends *ends);

/* What its own process holds: where stubs come (or are handed over), what the zygotes hear; -1: there is none. */
struct broker_held {
  int listener, zygote, reader;
  bool is_handed;
};
_Noreturn void broker_run(const struct broker_held *held, pid_t launcher);

/* --- zygote.c: inside ---------------------------------------------------------------------------------------------- */

/* Makes the zygote: a child of init that is confined as this process is. Without one there is no broker. `null`: /dev/null to read, opened before the filter
 * could ask about that. */
void zygote_start(int link, int null);
/* The same with the plan's other filter, before this process has one; its calls are handed to the supervisor. */
void reader_start(const struct plan *plan, const struct inside *inside, int null);

/* What the broker asks the zygote for. Descriptors: the keeper's socket, the block, and the open ones of the three streams. */
struct exec_order_packet {
  uint32_t flags;
  uint32_t length; /* of the block */
};

/* --- keeper.c: inside, one for each command ------------------------------------------------------------------------ */

enum keeper_kind { KEEPER_IS = 1, KEEPER_BEGAN, KEEPER_STOPPED, KEEPER_ENDED, KEEPER_SIGNAL, KEEPER_KILL, KEEPER_LIST };
struct keeper_packet {
  uint32_t kind;
  int32_t value;
  uint64_t usage[7]; /* ENDED: user and system time in µs, KiB at most, minor and major faults, blocks in and out */
};

/* Runs a block with the three streams (-1: closed) and stays until the last process of its tree has gone. */
_Noreturn void keeper_run(int control, uint32_t flags, const struct exec_block *block, const int streams[3]);

#endif
