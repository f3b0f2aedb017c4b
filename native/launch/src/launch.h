/* nd7-launch: applies a plan and executes a program inside the boundary that it makes. docs/protocol/launch-plan.md has the bytes. */
#ifndef ND7_LAUNCH_H
#define ND7_LAUNCH_H

#include <stdbool.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* --- plan.c: bytes to a plan. Touches nothing but memory. --------------------------------------------------- */

#define PLAN_MAGIC "nd7-plan"
#define PLAN_VERSION 4u
#define PLAN_HEADER ((size_t)16)
#define PLAN_MAX ((size_t)8 << 20)

enum plan_flag {
  PLAN_USERNS = 1,      /* make a user namespace (else the caller has CAP_SYS_ADMIN and it is left out) */
  PLAN_PROC_WRITE = 2,  /* /proc stays writable: only for users whom the kernel refuses /proc/sys anyway */
  PLAN_STOP_FRONT = 4,  /* the parent process is the front: it stops and ends together with this program */
  PLAN_SELFTEST = 8,    /* attack the boundary from inside before the program starts */
  PLAN_CONNECT = 256,   /* the front is given connections to servers inside, as it asks for them */
  PLAN_LEARN = 64,      /* the supervisor tells the front what the session reads, runs and connects to */
  PLAN_READS = 128,     /* TIER_BARE: the filter asks about every open, also to read */
  PLAN_TERMINALS = 512, /* TIER_ALONE: the filter asks about the other end of a new terminal, where the kernel lets somebody answer */
};
#define PLAN_FLAGS (15u | PLAN_LEARN | PLAN_CONNECT | PLAN_READS | PLAN_TERMINALS)

/* What holds a session. */
enum plan_tier {
  TIER_SPACES = 1, /* T1: namespaces and a mount view, Landlock under it, the filter, a supervisor */
  TIER_BARE = 2,   /* T2: Landlock, the filter and the supervisor alone */
  TIER_ALONE = 3,  /* T3: Landlock and the filter alone */
};

enum plan_view {
  VIEW_WRITABLE, /* what lay at the path at the start is put there again, writable; it cannot be renamed */
  VIEW_SHOW,     /* what lay at `source` at the start is put at the path, read-only; it cannot be renamed */
  VIEW_COVER,    /* an empty folder or file that nobody may read lies over the path */
  VIEW_SCRATCH,  /* an empty file system in memory lies over the path, writable */
};

enum plan_attribute {
  ATTRIBUTE_NOEXEC = 1,
  ATTRIBUTE_FROZEN = 2, /* VIEW_SCRATCH: read-only once the whole view stands */
  ATTRIBUTE_CLOSED = 4, /* TIER_BARE, VIEW_COVER: Landlock hides it; what is granted above it leaves it so */
};

/* In the order of the plan, each upon what the ones before it made. */
struct plan_mount {
  enum plan_view view;
  uint32_t attributes;
  const char *path;
  const char *source; /* VIEW_SHOW */
  uint32_t mode, mebibytes; /* VIEW_SCRATCH */
};

struct plan_rule {
  const char *path;
  uint64_t rights; /* Landlock's LANDLOCK_ACCESS_FS_*, the newest numbering */
};

/* A socket of the session that the front serves from outside. */
struct plan_listener {
  uint32_t address; /* IPv4 as a number; 0: every address of the session */
  uint16_t port;
  bool datagrams; /* UDP, not TCP */
};
#define LISTENERS_MAX ((size_t)64)

/* IPv4 addresses that are the session's own besides those of its loopback device. */
struct plan_route {
  uint32_t address;
  uint8_t prefix;
};
#define ROUTES_MAX ((size_t)32)

/* TIER_ALONE: TCP ports that may be connected to, whatever the address: the first, and each that is `step` further, up to the last. */
struct plan_ports {
  uint16_t first, last, step;
};
#define PORTS_MAX ((size_t)256)

/* All strings end by NUL inside the plan's bytes, which the caller keeps as long as the plan. */
struct plan {
  uint32_t flags;
  enum plan_tier tier;
  uint32_t landlock_min;  /* refuse to start under an older Landlock ABI */
  uint32_t landlock_most; /* use nothing of a newer one; 0: all there is */
  struct plan_mount *mounts;
  size_t mount_count;
  struct plan_rule *rules;
  size_t rule_count;
  const char *cwd;
  char **argv; /* ended by NULL */
  char **envp; /* ended by NULL */
  const unsigned char *filter; /* instructions of classic BPF, 8 bytes each */
  size_t filter_count;
  const unsigned char *asking; /* TIER_BARE: the filter of commands for which what is read is asked about; NULL: there are none such */
  size_t asking_count;
  const char *canary;  /* a file that is hidden inside; NULL: none */
  const char *outside; /* a folder that is read-only inside; NULL: none */
  const unsigned char *names; /* the table of names; NULL: the session has no supervisor */
  size_t names_length;
  struct plan_listener listeners[LISTENERS_MAX]; /* handed out on PLAN_CHANNEL */
  size_t listener_count;
  struct plan_route routes[ROUTES_MAX];
  size_t route_count;
  struct plan_ports ports[PORTS_MAX];
  size_t ports_count;
  const char *broker; /* folder of the door in which commands are taken; NULL: they are not */
};

/* A socket on which Node takes handles from a child process; inherited where a plan has listeners. */
#define PLAN_CHANNEL 4

/* NULL when the bytes are a plan, else what is wrong with them. Frees nothing: the process ends or executes. */
const char *plan_parse(unsigned char *bytes, size_t length, struct plan *plan);

/* The size that a header declares, 0 when it is no header of a plan. `bytes` holds PLAN_HEADER bytes. */
size_t plan_size(const unsigned char *bytes);

/* --- report.c: what the launcher tells its front, as records of tab-separated words ended by NUL ------------- */

/* The descriptor of the plan, -1 when there is none to report to. */
extern int report_fd;
void report(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From here on records are kept, until report_together sends them in one piece: the front is woken once. */
void report_gather(void);
void report_together(void);

/* Tells the front, or the terminal where there is none, which step failed (errno is read) and ends the process with 125. */
_Noreturn void fail(const char *step, const char *what);

/* --- descriptors.c ------------------------------------------------------------------------------------------ */

/* Closes every descriptor from 3 on but those named; -1 among them is none. */
void descriptors_keep(const int *kept, size_t count);

/* --- view.c: the mount namespace ---------------------------------------------------------------------------- */

/* Returns a descriptor (O_PATH) of the empty file that lies over hidden ones. */
int view_build(const struct plan *plan);

/* --- devices.c: /dev ---------------------------------------------------------------------------------------- */

struct devices {
  int nodes[8]; /* clones, taken before the view covers them */
  int terminal; /* a clone of the session's terminal, -1: none */
  int terminal_index; /* its number under /dev/pts, -1: it is elsewhere */
  char terminal_path[64];
};
void devices_take(struct devices *devices);
void devices_place(struct devices *devices);

/* --- mounting.c: the mount calls, each of which ends the process when it fails ------------------------------- */

int tree_clone(const char *path, bool recursive);                       /* a detached copy of what lies at the path */
void tree_attach(int tree, const char *path);                           /* puts it over the path, makes the path under a scratch */
void tree_lay(int tree, int place, const char *path);                   /* puts it over what `place` stands for; `path` is for messages */
void tree_set(int tree, const char *path, uint64_t set, uint64_t clear, bool recursive); /* MOUNT_ATTR_* of a tree (path "") or of what is mounted at a path */
int tree_scratch(const char *path, uint32_t mode, uint32_t mebibytes, uint32_t inodes);  /* a detached tmpfs; `path` is for messages */
int path_open(const char *path);                                        /* O_PATH without following symbolic links anywhere; -1 with errno */

/* --- namespaces.c ------------------------------------------------------------------------------------------- */

/* Makes init: a child that is pid 1 of new namespaces. Returns as fork does; fails by fail(). */
pid_t namespaces_enter(uint32_t flags);
/* In init: identity maps (as they were before: `uid`, `gid`), loopback up. */
void namespaces_settle(uint32_t flags, uid_t uid, gid_t gid);

/* --- listeners.c -------------------------------------------------------------------------------------------- */

/* In init, once loopback is up and the routes are there: makes the plan's listeners and hands them out. */
void listeners_hand_out(const struct plan *plan);

/* --- channel-node.c ----------------------------------------------------------------------------------------- */

/* Gives the front a descriptor, which is closed here: of a type that Node knows, with a word and a number that say which it is. */
void channel_hand(const char *type, const char *word, uint32_t number, int fd);
/* Tells the front of a number without one: {"WORD":NUMBER,"error":ERRNO}. */
void channel_say(const char *word, uint32_t number, int error);

/* --- connector.c -------------------------------------------------------------------------------------------- */

/* In init: gives the connector the namespaces that it enters. */
void connector_hand(const struct plan *plan, int entry);
/* A child of the launcher: connects to servers inside as the front asks on PLAN_CHANNEL, until front or launcher are gone. */
_Noreturn void connector_run(int entry, pid_t launcher);

/* --- routes.c ----------------------------------------------------------------------------------------------- */

/* In init, once loopback is up: makes addresses the session's own. */
void routes_make(const struct plan *plan);

/* --- init.c ------------------------------------------------------------------------------------------------- */

/* Messages between the launcher and init, whole packets. */
enum message_kind { MESSAGE_STARTED = 1, MESSAGE_STOPPED, MESSAGE_ENDED, MESSAGE_SIGNAL };
struct message {
  uint32_t kind;
  int32_t value;      /* a wait status or a signal */
  int64_t nanoseconds; /* CLOCK_MONOTONIC, when it was seen */
};
int64_t now_ns(void);
struct targets;
struct session;
struct broker_ends;
/* What the first process of a session holds. */
struct inside {
  int control, gate;
  int hand; /* to the supervisor; -1: none */
  int broker; /* what the zygote hears; -1: there is none */
  int reader; /* what that of commands hears for which what is read is asked about; -1: there is none */
};
_Noreturn void init_run(const struct plan *plan, const struct targets *targets, const struct inside *inside);
/* Tells the launcher of a change of the agent. */
void init_tell(int control, uint32_t kind, int value);
/* Reads one message of the launcher; false when it has gone, and nothing may outlive it. */
bool init_obey(pid_t agent, int control);

/* --- bare.c: a session without namespaces ------------------------------------------------------------------- */

/* In the launcher: lays the rules over it that all of the session has, and makes the supervisor, where the tier has one, and below it the first process. Closes what is theirs, the
 * broker's ends too. */
void bare_start(const struct plan *plan, const struct targets *targets, struct session *session, const int control[2], const int gate[2], const struct broker_ends *broker);
/* In the launcher, when the session is over: waits until nothing of it is left. */
void bare_gone(const struct session *session, bool ended);

/* --- terminals.c -------------------------------------------------------------------------------------------- */

/* A child of the launcher, outside of the session's rules: answers what programs ask about terminals that they have made. `hand`: the listener comes by it. Ends with
 * the last of them, and with the launcher. */
_Noreturn void terminals_run(int hand, pid_t launcher);

/* --- descend.c ---------------------------------------------------------------------------------------------- */

/* Ends every process below this one but `spared`. */
void descendants_end(pid_t spared);
/* Whether a process is `first` or stands below it. */
bool is_descendant(int proc, pid_t pid, pid_t first);
/* 0: there is no such process. */
pid_t parent_of(int proc, pid_t pid);
/* Its parent, and when it began, in ticks since the machine did. False where it has gone. */
bool process_of(int proc, pid_t pid, pid_t *parent, unsigned long long *start);

/* --- introduced.c: in a child of the launcher -------------------------------------------------------------- */

/* For whom the peer of a unix socket has connected it: itself, or whom the session's supervisor says. */
pid_t introduced(int connection, pid_t peer);

/* --- agent.c ------------------------------------------------------------------------------------------------ */

/* Confines this process and executes the plan's program. `gate`: what the self-test met goes out, the word to start comes in. */
_Noreturn void agent_run(const struct plan *plan, const struct targets *targets, const struct inside *inside);

/* Puts this process under a filter for good, and hands the supervisor what it answers by, where there is one (`hand`, closed here; -1). `may_lack`: where the kernel lets
 * nobody answer, what the filter asks about fails. Whether somebody answers. */
bool filter_install(const unsigned char *filter, size_t count, int hand, bool may_lack);

/* --- landlock.c --------------------------------------------------------------------------------------------- */

enum layer {
  LAYER_ALL,     /* the plan's rules as they are */
  LAYER_SESSION, /* TIER_BARE: what launcher, supervisor and program have in common */
  LAYER_PROGRAM, /* TIER_BARE: what the program itself has of it: to write it has to ask, and it reaches no port */
  LAYER_ALONE,   /* TIER_ALONE: the plan's rules and ports, and nobody who could be asked for more */
};
int landlock_abi(void); /* 0: none */
/* What the plan lets be used of it. */
int landlock_used(const struct plan *plan);
void landlock_apply(const struct plan *plan, enum layer layer);
/* The rules of LAYER_SESSION, to be added to and then entered by a thread that is not under them yet: a descriptor. */
int landlock_widened(const struct plan *plan);
/* Reading, or writing, what lies at and below a descriptor O_PATH. 0 or an errno. */
int landlock_add(const struct plan *plan, int rules, int at, bool writes);
/* Puts this thread under them. 0 or an errno. */
int landlock_enter(int rules);
/* Takes from this thread what no grant ever gives: to execute, to make devices, ports, signals. */
void landlock_never(const struct plan *plan);
/* From here on signals go to processes of this domain only: to this one and what it makes. */
void landlock_keep_signals(void);

/* --- selftest.c --------------------------------------------------------------------------------------------- */

/* What the attempts aim at outside; made before the namespaces are entered. */
struct targets {
  int tcp, udp, abstract;
  int pathname, folder; /* TIER_ALONE: a unix socket that has a path, and the folder that it lies in; -1: there is none */
  uint16_t tcp_port, udp_port;
  char abstract_name[32], pathname_name[64];
  pid_t launcher;
  const char *canary, *outside;
  const char *late; /* where names are made that only the supervisor refuses; NULL: there is none */
  bool has_spaces;
  bool holds_modes;   /* something keeps modes outside as they are */
  bool keeps_signals; /* something keeps signals inside */
};
struct attempt {
  char name[24];
  int32_t error; /* errno of the attempt, 0: it succeeded, -1: not tried */
};
#define ATTEMPTS 14

void targets_open(struct targets *targets, const struct plan *plan);
/* When all attempts have been judged. */
void targets_close(const struct targets *targets);
/* What the agent tries inside, and the launcher outside (`inside` false), where each should succeed. */
void selftest_attempts(const struct targets *targets, struct attempt *attempts, bool inside);
void selftest_control(const struct targets *targets, struct attempt *attempts);
/* Whether the supervisor could not read what the program asked it for (a kernel or container that lets nobody look into others). */
bool selftest_is_blind(const struct targets *targets, const struct attempt *inside);
/* Outside, with what came from inside: true when nothing got through. Reports each row. */
bool selftest_judge(const struct targets *targets, const struct attempt *inside, const struct attempt *outside);

/* --- check.c ------------------------------------------------------------------------------------------------ */

/* The namespaces of a process, as its links in /proc name them. */
#define NAMESPACES ((size_t)5)
struct namespaces {
  char names[NAMESPACES][32];
  size_t known; /* as many of them, from the first on; the last is that of users, which a kernel may lack */
};
/* `pid` 0: those of this process. */
void namespaces_of(pid_t pid, struct namespaces *namespaces);
/* Outside: whether the kernel says of this process what the plan wants, and that it shares none of this one's namespaces. Reports each row. */
bool agent_checked(pid_t pid, const struct plan *plan, const struct namespaces *own);
/* The letter of /proc/PID/stat, 0 when there is no such process. */
char process_state(pid_t pid);

/* --- session.c ---------------------------------------------------------------------------------------------- */

struct session {
  const struct plan *plan;
  const struct targets *targets;
  const struct attempt *outside;
  pid_t init, front;
  int control, gate, signals;
  int observe; /* the supervisor's end is its life; -1: there is none */
  int alive;   /* TIER_BARE, TIER_ALONE: its end is that of the session's first processes; -1 */
};
extern sigset_t original_mask;

/* Blocks the signals that the session passes on, and returns the descriptor to read them from; before init is made. */
int session_signals(void);
/* Stays outside until the session has ended, and ends as the agent did. */
_Noreturn void session_follow(struct session *session);

/* --- probe.c ------------------------------------------------------------------------------------------------ */

/* Prints what this kernel gives to this user, one fact a line. */
int probe(void);

/* --- trust.c ------------------------------------------------------------------------------------------------ */

/* NULL when nobody but this user and root can change this program or its folder. */
const char *untrusted(void);

#endif
