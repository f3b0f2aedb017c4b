/* The supervisor of a session: outside its pid namespace, answers the calls that make or move names. docs/protocol/observe.md, docs/adr/0016. */
#ifndef ND7_OBSERVE_H
#define ND7_OBSERVE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "names.h"

struct plan;

/* --- life.c: the process ------------------------------------------------------------------------------------- */

/* Where the front and the supervisor speak; inherited where a plan has a table of names. */
#define OBSERVE_CHANNEL 5

/* What init hands over, in this order: its namespaces, and an empty file that nobody may read. */
enum { HANDED_MOUNTS, HANDED_NETWORK, HANDED_BLANK, HANDED_USERS, HANDED_MOST };

/* Becomes the supervisor. `life`: to the launcher, who hears one byte when the calls are answered, and whose end is this process's. `hand`: descriptors come
 * from init, then the listener from the agent. */
_Noreturn void observe_run(const struct plan *plan, int life, int hand);
/* The same in a session without namespaces, whose first process is a child of this one. `broker`: where stubs are handed over, -1: there is none. */
_Noreturn void observe_bare(const struct plan *plan, int life, int hand, pid_t first, int broker);

/* In init and in the agent: hands descriptors over to the supervisor. */
bool observe_hand(int hand, const int *descriptors, size_t count);

/* What every thread reads and none changes once they run. */
struct observe {
  const struct plan *plan;
  struct names *names;
  struct names_disk disk;
  int listener;
  int asking; /* that of commands for which what is read is asked about; -1: there are none such */
  int proc; /* the /proc outside, in which callers and this process have their pids */
  int fds;  /* the folder in it that has this process's descriptors: what a descriptor stands for has a path there */
  int root; /* the session's root folder */
  int blank;
  pid_t first; /* where there are no namespaces, the session's first process; else 0 */
  int broker;  /* then, where stubs of commands are handed over to the broker; -1: there is none */
};
extern struct observe observe;

/* --- call.c: a call that waits, and its answer ---------------------------------------------------------------- */

struct call {
  int listener; /* by which it came and is answered */
  uint64_t id;
  uint64_t args[6];
  pid_t pid; /* of the thread */
  int number;
  bool answered;
};

/* Answers one call after the other, in each thread; returns when no process is left that could make one. */
/* Answers what comes by a listener, until nobody is left who could call. */
void call_loop(int listener);
/* Whether the caller still waits: what was read of its memory and its /proc was its own. */
bool call_waits(const struct call *call);
void call_fail(struct call *call, int error); /* 0: the call returns 0 */
/* The kernel carries it out, whatever its arguments are by then: only where nothing is decided. */
void call_continue(struct call *call);
/* Puts another descriptor in the place of one of the caller's. 0 or an errno; the call waits on. */
int call_replace(const struct call *call, int number, int fd, bool close_on_exec);
/* Gives the caller a descriptor and closes it here. */
void call_give(struct call *call, int fd, bool close_on_exec);
/* Whether a signal that its program handles has come for the caller: it would have broken off a call that waits. */
bool call_is_signalled(const struct call *call);

/* --- caller.c: what is read from a caller; each returns 0 or an errno ------------------------------------------ */

int caller_text(const struct call *call, uint64_t address, char to[PATH_MAX]);
int caller_bytes(const struct call *call, uint64_t address, void *to, size_t length);
int caller_folder(const struct call *call, int dirfd, int *fd); /* O_PATH of a folder: its working folder or one of its descriptors */
int caller_object(const struct call *call, int number, int *fd); /* O_PATH of what one of its descriptors stands for */
int caller_numbers(const struct call *call, pid_t *process, pid_t *thread); /* its pids as its own pid namespace has them */
void caller_name(const struct call *call, char to[16]);
/* The beginning of a file of the caller's /proc folder, ended by NUL. */
int caller_file(const struct call *call, const char *what, char *to, size_t size);
/* In such a text the value behind a name at the beginning of a line, NULL when there is none. */
const char *value_of(const char *text, const char *name);

/* --- umask.c --------------------------------------------------------------------------------------------------------- */

/* Makes this thread create as the caller would. */
int caller_umask(const struct call *call);
/* The caller is about to set one: what was known is forgotten. */
void caller_umask_changes(const struct call *call, mode_t mask);
/* It makes another call, and so has set it. */
void caller_goes_on(const struct call *call);

/* --- resolve.c: from a caller's path to a folder and a name in it ----------------------------------------------- */

struct place {
  int folder;         /* O_PATH; -1: none. Of the disk as it is outside where a grant lets the session write there */
  int seen;           /* then the folder as the session has it, from which links go on; -1: that is `folder` */
  uint32_t grant;     /* the id of that grant, 0: none does */
  const char *name;   /* the last component as it was written, with slashes that follow it; into `text` */
  size_t name_length; /* without them */
  bool is_plain;      /* not "." nor ".." */
  bool has_slash;
  size_t path_length;
  char path[2 * PATH_MAX]; /* real path of the folder, "/", the name */
  char text[PATH_MAX];
};

/* The last component is not followed. Returns 0 or an errno; `place->folder` is the caller's to close by place_close. */
int place_find(const struct call *call, int dirfd, const char *path, struct place *place);
/* The folder as the session has it. */
int seen_folder(const struct place *place);
/* The place that a link leads to which is the last component of `place`. */
int place_follow(const struct call *call, const char *target, struct place *place);
/* The place that the real path of an object names; its folder is only held where a grant lets the session write there. */
int place_of(int object, struct place *place);
void place_close(struct place *place);
/* What a whole path leads to, as O_PATH; links are followed, the last one only with `follow`. `magic`: it ended in a link of /proc that is no path. */
int object_find(const struct call *call, int dirfd, const char *path, bool wants_folder, bool follow, int *fd, bool *magic);
/* Step by step, as the caller would see it: for paths that lead through /proc. */
int object_walk(const struct call *call, int from, const char *path, bool follow, int *fd, bool *magic);
/* The real path of what a descriptor stands for. */
int path_of(int fd, char *to, size_t size, size_t *length);
bool is_on_proc(int fd);
/* "N", for calls that take a path: below observe.fds, where every thread has its working folder. */
struct fd_path {
  char text[16];
};
struct fd_path path_to(int fd);

/* --- split.c: pure ---------------------------------------------------------------------------------------------- */

/* Splits a path that is not empty: `*name` begins its last component, `*length` is that without slashes behind it. */
void path_split_last(const char *path, const char **name, size_t *length);

/* --- rule.c: what the table says of a place ---------------------------------------------------------------------- */

enum rule_call { CALL_OPEN = 1, CALL_FOLDER, CALL_NODE, CALL_LINK, CALL_HARD_LINK, CALL_RENAME_TO, CALL_RENAME_FROM, CALL_UNLINK, CALL_TRUNCATE, CALL_RMDIR, CALL_MODE, CALL_TIMES, CALL_OWNER, CALL_ATTRIBUTE, CALL_CONNECT, CALL_BIND };
enum rule_kind { IS_FILE, IS_FOLDER, IS_LINK, IS_OTHER };

/* An index of a mask, not of a leaf; the id of a grant. */
#define RULE_IS_MASK 0x80000000u
#define RULE_IS_GRANT 0x40000000u
#define GRANT_ID_MAX 0x3fffffffu

struct rule {
  enum { RULE_FREE, RULE_RECORD, RULE_MASK, RULE_MEDIATE, RULE_REFUSE } outcome;
  uint32_t index;
  enum names_mediator mediator;
  bool is_lifted; /* it is protected, and a grant names it or something in it */
};

/* Names of this program's own, beside what they replace. */
#define OWN_PREFIX ".nd7~"

/* `kind`: what stands or will stand at the place. */
struct rule rule_of(const struct place *place, enum rule_kind kind);
/* Whether what is done at the place may turn its folder into a git directory: then it is done alone, and looked at. */
bool rule_wants_alone(const struct place *place);
int rule_git_dir(const struct call *call, const struct place *place, enum rule_call what);
/* Whether a path lies in a folder in which the session may make files. */
bool is_writable(const char *path, size_t length);
/* The same of a place, which may be granted. */
bool may_change(const struct place *place);
/* The length of the innermost such folder's path, 0: there is none. */
size_t writable_root(const char *path, size_t length);

/* Everything that changes names holds this: shared; alone what moves folders. */
void names_lock(bool alone);
void names_unlock(void);

/* --- channel.c: the front ---------------------------------------------------------------------------------------- */

enum event_verdict { EVENT_REFUSED = 1, EVENT_RECORDED, EVENT_MASKED };

void channel_ready(uint32_t facts);
void channel_event(const struct call *call, enum event_verdict verdict, enum rule_call what, int error, uint32_t rule, const char *path);

/* What `nd7 learn` is told: real path (empty: it is not there) and path as it was said, or an address. */
void channel_learned(const struct call *call, uint32_t what, int error, const char *real, const char *said);

/* More processes than one stands below another. */
#define ASKER_LINE_MAX 256u
struct end {
  uint32_t address; /* IPv4 */
  uint16_t port;
};
/* Who connects, and those above up to the session's first process; of count 0 nobody can tell. */
struct asker {
  bool is_wanted;
  struct end to;
  char program[16];
  size_t count;
  struct {
    pid_t pid;
    uint64_t start;
  } line[ASKER_LINE_MAX];
};
/* A connection to something that nd7 serves has this end, and comes from this asker. */
void channel_connected(const struct asker *asker, const struct end *from);

struct question {
  enum rule_call what;
  uint32_t rule;
  const char *path;
  bool is_there;
  const unsigned char *before, *after;
  size_t before_length, after_length;
};
/* Asks and waits. 0 or an errno; where the front gives other bytes to write, `*given` holds them and is the caller's to free. */
int channel_ask(const struct call *call, const struct question *question, unsigned char **given, size_t *given_length);
/* Reads what has come from the front; false when it has gone. */
bool channel_read(void);
void channel_widened(uint32_t id, int error);
void channel_narrowed(uint32_t id, int error);

/* --- frames.c: pure ---------------------------------------------------------------------------------------------- */

#define FRAME_MAX ((size_t)33 << 20)
struct answer {
  uint32_t id;
  int error;
  bool is_given;
  const unsigned char *bytes;
  size_t length;
};
/* One grant that is to hold from now on. */
enum grant_what { GRANT_READ = 1, GRANT_WRITE = 2, GRANT_SOCKET = 4 };
struct widening {
  uint32_t id;
  enum grant_what what;
  bool below;
  const char *path; /* plain: absolute, no empty, "." and ".." parts, not the root */
};
/* The length of the frame whose first 4 bytes these are, 0: there is no such frame. */
size_t frame_length(const unsigned char bytes[4]);
enum frame { FRAME_WRONG, FRAME_ANSWER, FRAME_WIDEN, FRAME_NARROW };
union frame_content {
  struct answer answer;
  struct widening widening;
  uint32_t narrowed;
};
/* Reads a frame without its length, of a length that frame_length gave. What it gives points into the bytes. */
enum frame frame_read(const unsigned char *bytes, size_t length, union frame_content *content);

/* --- outside.c: the disk as it is outside, which no program of the session can name --------------------------------- */

/* Starts the thread that has that view. Before the session's is entered. */
void outside_start(void);

/* --- grant.c: what was granted since the start ----------------------------------------------------------------------- */

void grants_start(void);
/* Hands a frame of the front on; false where there are too many that wait. */
bool grants_widen(const struct widening *widening);
bool grants_narrow(uint32_t id);
/* Whether there is a grant to write at all. */
bool grants_any(void);
/* Where a grant lets the session write at a place that was just found: its folder becomes that of the disk outside. `object`: what stands there, -1: look. */
void grant_apply(struct place *place, int object);
/* Whether a folder that the session could not write in is one that a grant lets it write in. */
bool grant_reaches(int folder);
/* The file or folder that stands at a place with a grant, on the disk outside, in place of `*object`, which is the same; false where it is another, or none. */
bool grant_object(const struct place *place, int *object);
/* The folder of the disk outside in place of one that the session may write to anyway, so that both ends of a call are on one mount. */
void grant_align(struct place *place);
/* Whether a socket was granted by its name. */
bool grants_socket(const struct stat *s);
/* What of the table is lifted at a place with a grant. */
void grant_lift(const struct place *place, const struct names_answer *answer, enum rule_kind kind, struct rule *rule);

/* Whether a grant names a place at or below a path of so many bytes: what is hidden or protected by that path is not at that place. */
bool grant_names(uint32_t id, size_t length);
/* T2: whether a grant lets be read what lies at a real path, though what hides it there is a path of so many bytes (0: none does). */
bool grant_reads(const char *path, size_t length, size_t hidden);

/* --- hands.c: T2: what is done where a grant lets it be done -------------------------------------------------------------------- */

/* In the supervisor's process, before it is under the session's rules: a thread that stays outside of them, does nothing itself, and makes others. */
void hands_start(const struct plan *plan);
/* From here on there are these rules, which are taken over; -1: no hands. All names are locked, alone. 0 or an errno, and then there are none. */
int hands_renew(int rules);
/* The calls of their names, with errno, at a place (a name in its folder), with what grants give where one lets the session write there. */
int act_open(const struct place *place, const char *name, int flags, mode_t mode);
int act_mkdir(const struct place *place, mode_t mode);
int act_mknod(const struct place *place, mode_t mode, dev_t device);
int act_symlink(const char *target, const struct place *place);
int act_link(int folder, const char *name, const struct place *to, int flags);
int act_rename(const struct place *from, const char *name, const struct place *to, const char *to_name, unsigned flags);
int act_unlink(const struct place *place, const char *name, int flags);
/* The same of what a descriptor O_PATH stands for, which is granted. */
int act_reopen(int object, int flags);
int act_truncate(int object, int64_t length);

/* --- the calls, each answered ------------------------------------------------------------------------------------- */

void do_open(struct call *call, int dirfd, uint64_t path, int flags, mode_t mode);
void do_truncate(struct call *call, uint64_t path, int64_t length);
/* The terminal of the caller, as O_PATH: /dev/tty means that of who opens it. */
int own_terminal(const struct call *call, int *object);
void do_mkdir(struct call *call, int dirfd, uint64_t path, mode_t mode);
void do_mknod(struct call *call, int dirfd, uint64_t path, mode_t mode, dev_t device);
void do_symlink(struct call *call, uint64_t target, int dirfd, uint64_t path);
void do_link(struct call *call, int from_dirfd, uint64_t from, int to_dirfd, uint64_t to, int flags);
void do_rename(struct call *call, int from_dirfd, uint64_t from, int to_dirfd, uint64_t to, unsigned flags);
/* Answered only where a grant concerns them; else the kernel goes on with them. */
void do_unlink(struct call *call, int dirfd, uint64_t path, int flags);
void do_mode(struct call *call, int dirfd, uint64_t path, mode_t mode);
void do_times(struct call *call, int dirfd, uint64_t path, uint64_t times, int flags);

/* --- reach.c: sockets, where the session has a network of its own --------------------------------------------------- */

void do_connect(struct call *call);
void do_bind(struct call *call);
/* The name, behind its first NUL, of a socket that is connected to nd7's own: the caller's process, and a number that no other has. */
#define INTRODUCTION "nd7-caller-%010d-%016llx"
#define INTRODUCTION_READ "nd7-caller-%10d-"

/* --- floor.c: what mounts alone do not hold ------------------------------------------------------------------------ */

/* Starts the thread that has the program's own Landlock domain, and waits until it has. What it is asked for before it does afterwards. */
void floor_start(void);
void floor_await(void);
/* Opens as the program could: `name` in `folder`, or what `folder` stands for when `name` is NULL. The descriptor, or -errno. */
int floor_open(int folder, const char *name, int flags, mode_t mode, mode_t mask);
int floor_truncate(int object, int64_t length);
/* Opens the pipe that `object` stands for once somebody reads from it, and answers the call then; both are taken over. */
void floor_wait(struct call *call, int object, int flags);

/* --- bare.c: what mounts and namespaces do elsewhere ---------------------------------------------------------------- */

/* True: it has answered, or will. */
bool bare_dispatch(struct call *call);
/* Where a path in a writable folder is hidden, or may only be read; whether one that is lies below it. Landlock takes nothing away again. */
size_t bare_guard(const char *path, size_t length); /* the length of the path that hides it, 0: it is not */
bool bare_is_above(const char *path, size_t length);
/* The same where it is hidden. */
size_t bare_hides(const char *path, size_t length);
/* Where the session has a folder of its own in the place of one that others use too. Takes `folder` over; returns it or the other. */
int bare_folder(int folder);
/* What is opened to read in the place of an object; itself for most. Closes the other. */
int bare_file(int object);
/* Whether what stands outside of the writable folders may be opened: a terminal of the session's, a file about its own processes. 0 or an errno. */
int bare_may_open(int object);
/* A new terminal is the session's. */
void bare_opened(int fd);
bool is_bare(void);
/* A folder that cannot be renamed or removed. */
bool bare_is_held(const struct stat *s);
/* In the supervisor: before it leaves its streams, and once it has the session's root. */
void bare_begin(void);
void bare_settle(void);

/* --- read.c, remove.c, metadata.c, target.c, sockets.c: calls that are asked only there -------------------------------------- */

/* Opens to read: `path` as it was read from the caller. */
void do_read(struct call *call, int dirfd, const char *path, int flags);
void do_remove(struct call *call, int dirfd, uint64_t path, int flags);
bool metadata_dispatch(struct call *call);
bool target_dispatch(struct call *call);
bool socket_dispatch(struct call *call);

/* --- bind.c ---------------------------------------------------------------------------------------------------------- */

struct sockaddr_un;
/* Binds the caller's socket, of which `fd` is a copy, by a path; an errno. */
int bind_unix(const struct call *call, int fd, const struct sockaddr_un *address, unsigned length);

/* --- known-sockets.c ------------------------------------------------------------------------------------------------ */

/* A unix socket that the session has bound. Takes the descriptor over; false where there are too many. */
bool sockets_remember(int held, const struct stat *s);
bool sockets_know(const struct stat *s, bool *is_door);
/* A listener of the session on the loopback, by the number of its socket. */
void sockets_listen_at(uint16_t port, ino_t number);
/* Whether all that listens on a port is the session's own, and something does. */
bool sockets_own_port(uint16_t port);
/* Whether the plan names the port. */
bool sockets_served(uint16_t port);
/* Which of nd7's own a path means, whatever lies there. */
enum own_socket { OWN_NONE, OWN_DOOR, OWN_BROKER };
enum own_socket sockets_own(const struct call *call, const char *path);
/* A socket that stands at the start and may be connected to; `is_door`: the front speaks there itself. */
void sockets_grant(const struct stat *s, bool is_door);
/* A path that means the door, whatever lies there. */
void sockets_door(const char *path);
/* Says a line to the front on the channel of descriptors, with one of them or -1. */
bool sockets_tell(const char *line, size_t length, int fd);
/* Takes what the front answers there; false when it has gone. */
bool sockets_drain(void);

/* --- door.c -------------------------------------------------------------------------------------------------------- */

/* Connects a caller's socket, of which `fd` is a copy, to one of nd7's own. 0 or an errno. */
int door_open(const struct call *call, enum own_socket which, int fd);

/* --- mediate.c ----------------------------------------------------------------------------------------------------- */

/* A rename of a file onto a mediated name, both found and the lock not held. Answers nothing: 0 or an errno. */
int mediate_rename(const struct call *call, struct place *from, struct place *to, const struct rule *rule);

/* Asks the front whether a mediated name may get this content, and gives it what was judged. The lock is not held. 0 or an errno. */
int mediate_bytes(const struct call *call, struct place *to, const struct rule *rule, enum rule_call what, const unsigned char *bytes, size_t length, mode_t mode);

/* --- pointer.c ------------------------------------------------------------------------------------------------------ */

void pointers_start(void);
/* Opens a pointer of git for writing, in a file of its own that is judged when it is closed. 0 when the call is answered, else an errno. `mode`: of a new one. */
int pointer_open(struct call *call, const struct place *place, const struct rule *rule, int flags, mode_t mode);
/* Judges those that have been closed, and waits for those that are being judged: what a program wrote is there, or refused, before its next call is answered. */
void pointers_settle(void);

/* --- mask.c -------------------------------------------------------------------------------------------------------- */

/* Lays the empty file over what stands at the place. 0 or an errno. */
int mask_lay(const struct place *place);

/* --- learn.c ------------------------------------------------------------------------------------------------------- */

/* Tells the front of what a call is about, once; true: the call is none that is performed, and has its answer. False also where the session does not learn. */
bool learn_take(struct call *call);

/* --- rights.c: capabilities of the session's user namespace, held but not in effect ------------------------------- */

enum right { RIGHT_READ_CALLER, RIGHT_MOUNT };
void rights_settle(void);
/* Leaves this thread none of them. */
void rights_leave(void);
void rights_raise(enum right right);
void rights_lower(void);

#endif
