/* nd7-relay: moves the bytes of tunnels that the proxy has let through. It takes connections at the listeners of a session, asks its front about each, dials the
 * addresses that the front names, and joins the two ends. Of what it moves it reads a hello, to see whether it is plainly for the host that
 * the front has named: whom a program means, and whether it may, the front says. */
#ifndef ND7_RELAY_H
#define ND7_RELAY_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Descriptors that the front starts this program with: frames, and Node's own channel for handles. */
enum { FRONT_CHANNEL = 3, HANDLE_CHANNEL = 4 };
#define LISTENERS_MAX 64u
/* Connections at once. */
#define LINKS_MAX 1024u
/* So many addresses of a name are dialled. */
#define ADDRESSES_MAX 16u
/* What is read at a time, and the most that waits for an end which does not read. */
#define CHUNK ((size_t)64 << 10)
#define NAME_MAX_LENGTH ((size_t)253)
/* The most that the front is shown of what a program says first; a hello of TLS is no longer. */
#define FIRST_MAX ((size_t)5 + (1 << 14))

/* --- frames.c: what the front says. Touches nothing but memory. -------------------------------------------------- */

#define FRAME_HEAD ((size_t)12)
#define FRAME_MAX ((size_t)4096)

enum told {
  TOLD_ASK = 1,  /* listener u32; address u32 and port u32 that it was reached at, and the program's; what the program says, of which nothing is taken yet */
  TOLD_HELLO,    /* all that came through the tunnel so far */
  TOLD_SILENT,   /* what was still wanted of that did not come in time */
  TOLD_FAILED,   /* errno u32 of the address dialled last; 0: none answered in time */
  TOLD_ENDED,    /* the number means another connection from now on; where the other end was there: bytes u64 that went out, u64 that came in, milliseconds u32 */
};
enum order {
  ORDER_HAND = 1, /* give the connection to the front as it is */
  ORDER_WAIT,     /* ask again when the program has said something */
  ORDER_DIAL,     /* struct dial */
  ORDER_NEED,     /* u32: show the hello when so many bytes are there */
  ORDER_GO,       /* the hello is right: pass on what came, and all that comes */
  ORDER_CUT,      /* u32: 1 where the program is to see a reset */
  ORDER_LAST,     /* bytes, the last that the program hears */
  ORDER_OVER,     /* of no connection: end all, and tell of it at once */
};

struct address {
  unsigned char bytes[16]; /* IPv6, or IPv4 as ::ffff:… */
  uint16_t port;
};
struct dial {
  bool hello;       /* nothing goes out before the front has seen a hello */
  bool established; /* the program is told when the other end is there */
  uint32_t head;    /* so many bytes of what the program said are the request's */
  /* A hello that is plainly for this host needs no look of the front's; where it is empty, each does. */
  char name[NAME_MAX_LENGTH];
  size_t name_length;
  size_t count;
  struct address addresses[ADDRESSES_MAX];
};

struct frame {
  uint32_t kind, id;
  const unsigned char *body;
  size_t length;
};
/* The size of the frame that the bytes begin with, 0 where more are needed, -1 where it is none. */
ssize_t frame_parse(const unsigned char *bytes, size_t length, struct frame *frame);
bool number_parse(const struct frame *frame, uint32_t *number);
bool dial_parse(const struct frame *frame, struct dial *dial);
void put32(unsigned char *to, uint32_t value);
void put64(unsigned char *to, uint64_t value);
uint32_t get32(const unsigned char *from);

/* --- hello.c: touches nothing but memory. --------------------------------------------------------------------------- */

bool hello_is_for(const unsigned char *bytes, size_t length, const char *name, size_t name_length);

/* --- front.c ---------------------------------------------------------------------------------------------------- */

/* What went through a connection whose other end was there. */
struct moved {
  uint64_t bytes[2]; /* out, in */
  uint32_t ms;
};

/* Ends the program where the front has gone. Of ends of connections the front hears with the next word, or a moment later. */
void front_tell(enum told kind, uint32_t id, const void *body, size_t length, const void *bytes, size_t bytes_length);
void front_number(enum told kind, uint32_t id, uint32_t number);
/* `moved`: NULL where there was no other end. */
void front_ended(uint32_t id, const struct moved *moved);
/* Tells of ends now. */
void front_flush(void);
/* Tells of ends that have waited long enough. Returns milliseconds until others have, -1: there are none. */
int front_look(void);
/* Gives the front a connection. The descriptor stays the caller's. */
void front_hand(uint32_t id, uint32_t listener, int fd);
/* Takes what the front has said. */
void front_hear(void);
/* The next listener that the front gives; ends the program where none comes. */
int front_listener(void);
/* Reads and drops Node's acknowledgements of handles. */
void front_acknowledged(void);

/* --- link.c: one connection -------------------------------------------------------------------------------------- */

enum state {
  FREE,
  FIRST,    /* the program has said nothing yet (timed) */
  ASKED,    /* the front decides; nothing is taken of what the program said */
  DIALLING, /* (timed) */
  HELLO,    /* what the program says is kept until the front has seen it (timed) */
  JOINED,
  LAST, /* told its last, it may end by itself (timed) */
};
/* From one end to the other: 0 is out, 1 in. */
struct flow {
  bool heard; /* something came while nothing was read: no event tells of it again */
  bool ending; /* an end was seen: read until it is there */
  bool ended, shut;
  uint32_t at, length; /* what waits in the link's store for this direction */
  uint64_t moved; /* bytes that the other side has taken */
};
struct link {
  enum state state;
  uint32_t generation, listener;
  struct sockaddr_in from; /* the program's end */
  bool at_once;   /* asked about before the program has said anything */
  uint32_t seen;  /* bytes of what it said that were there when the front was asked */
  bool is_shown; /* HELLO: the front is looking */
  uint32_t needs; /* HELLO: bytes that the front wants to see */
  int64_t until;  /* timed states: milliseconds */
  int64_t since;  /* when the other end was there; 0: not yet */
  int ends[2];    /* the program, the other */
  struct flow flows[2];
  /* DIALLING */
  struct dial dial;
  size_t next; /* address */
  size_t won;  /* the address that is the other end */
  int64_t next_at;
  int tries[ADDRESSES_MAX];
  int last_error;
};
extern struct link links[LINKS_MAX];

/* What an event is of. The address that answered first is the other end from then on. */
enum slot { SLOT_PROGRAM, SLOT_OTHER, SLOT_TRIES };
#define TAG_FRONT UINT64_MAX
#define TAG_HANDLES (UINT64_MAX - 1)
#define TAG_LISTENERS (UINT64_MAX - 1000)

void links_begin(int poller, uint32_t most, int64_t patience);
/* A new connection at a listener; at some the front is asked before the program has said anything. */
void link_take(int fd, const struct sockaddr_in *from, uint32_t listener, bool at_once);
void link_obey(const struct frame *frame);
void link_event(uint64_t tag, uint32_t events);
/* Looks at what has taken too long. Returns milliseconds until it wants to look again, -1: nothing is timed. */
int links_look(void);
int64_t now_ms(void);

/* What link.c and its parts have in common. */
void link_enter(struct link *link, enum state state);
void link_drop(struct link *link);
void link_reset(struct link *link);
void link_watch(const struct link *link, int fd, unsigned slot, int operation); /* of epoll */
void link_joined(struct link *link); /* the other end is there */
uint32_t link_id(const struct link *link);
unsigned char *link_store(const struct link *link, unsigned direction);

/* --- dial.c ------------------------------------------------------------------------------------------------------ */

void dial_begin(struct link *link);
void dial_event(struct link *link, size_t attempt, bool has_failed);
/* Starts the next address where it is time to; fails where all time is over. */
void dial_look(struct link *link, int64_t now);
void dial_end(struct link *link, int kept);

/* --- flow.c ------------------------------------------------------------------------------------------------------ */

/* Moves what there is in one direction. The link may be gone afterwards. */
void flow_move(struct link *link, unsigned direction);
/* The same for what waits already, with nothing more read. Whether all of it is gone. */
bool flow_flush(struct link *link, unsigned direction);

/* --- pace.c ------------------------------------------------------------------------------------------------------ */

void pace_begin(void);
/* A connection has something to do, by its place among all. */
void pace_seen(uint32_t place);
/* Decides for the next moment whether this program interrupts others. */
void pace_look(void);

/* --- harden.c ---------------------------------------------------------------------------------------------------- */

/* From here on the program can move bytes of sockets and connect, and nothing else. */
void harden(void);

#endif
