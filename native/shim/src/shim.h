/* The hook shim: one payload from stdin to the recorder, its answer back. See docs/protocol/hook-socket.md. */
#ifndef ND7_SHIM_H
#define ND7_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_PAYLOAD ((size_t)64 << 20)
#define MAX_META ((size_t)64 << 10)
#define MAX_OUTPUT ((size_t)16 << 20)

/* --- json.c: as much of JSON as it takes to see where a value ends ------------------------------------------- */

struct json_end {
  unsigned char state; /* 0: before the value */
  size_t depth;
};

/* Feeds bytes; returns the offset just past the end of the value when it ends in them, else 0. Call it with new bytes only. A number or literal ends at
 * the white space after it. Bytes that are no JSON never end, or end somewhere: the recorder judges them. */
size_t json_end_feed(struct json_end *scan, const char *bytes, size_t length);

/* Copies the string member `key` of the outermost object, when it is written without escapes and fits. Returns false otherwise, with *out empty. */
bool json_top_string(const char *bytes, size_t length, const char *key, char *out, size_t size);

/* --- conf.c -------------------------------------------------------------------------------------------------- */

struct conf {
  char *node; /* NULL: not known */
  char *main;
  bool required;
  int idle_ms, start_ms, answer_ms, node_ms;
};

/* Reads shim.conf beside this program, then $home/run/shim.conf; what is missing in both stays as it was in *conf. `required` of either holds. */
void conf_read(const char *home, struct conf *conf);

/* The home of a registration that serves all users: .nd7 in the user's folder, whatever the environment says. */
bool default_home(char *path, size_t size);

/* NULL when nobody but this user and root can write to the shim, its folder, the home and its run folder; else what is wrong, for a person. */
const char *untrusted(const char *home);

/* --- recorder.c ---------------------------------------------------------------------------------------------- */

struct request {
  const char *op; /* NULL: a hook */
  const char *home;
  const char *agent;
  const char *took;
  const char *payload;
  size_t length;
};

struct answer {
  int exit_code;
  char *bytes; /* owns the whole frame */
  const char *out;
  size_t out_length;
  const char *err;
  size_t err_length;
};

enum exchanged { ANSWERED, NO_RECORDER, NO_ANSWER };

/* Sends the request and receives the answer on a connected socket, until `deadline` (now_ms()). Returns false where no whole answer came. */
bool exchange(int fd, const struct request *request, int64_t deadline, struct answer *answer);

/* Reads an answer frame out of bytes. 1: whole, 0: more is to come, -1: no answer of this protocol. */
int answer_parse(char *bytes, size_t length, struct answer *answer);

/* Connects (starting the recorder where there is none) and exchanges. */
enum exchanged ask_recorder(const struct request *request, const struct conf *conf, struct answer *answer);

/* --- door.c -------------------------------------------------------------------------------------------------- */

/* Connects to the door of a session that may make no unix sockets: ND7_SOCKET is then `tcp:PORT`, on the loopback. -1 with errno; ENOENT where there is none. */
int door_connect(void);

/* --- box.c --------------------------------------------------------------------------------------------------- */

/* Whether the program was called as the first in a box. */
bool is_box(const char *called);
int box_main(int argc, char **argv);

/* --- ask.c --------------------------------------------------------------------------------------------------- */

/* Whether the program was called as what asks inside a session. */
bool is_ask(const char *called);

/* Asks the door of the session; returns the exit code: that of the answer, 2 where nobody answers. */
int ask(int argc, char **argv);

/* --- fallback.c ---------------------------------------------------------------------------------------------- */

/* Runs the Node hook with the payload; its output goes straight to ours. Returns its exit code, -1 where it could not run, crashed or hung. */
int run_node_hook(const struct request *request, const struct conf *conf, const char *why);

/* Notes a payload that nobody recorded in run/missed and answers as the policy says. Returns the exit code. */
int give_up(const struct request *request, const struct conf *conf, const char *reason);

/* --- exec.c: the stub, by the name of a shell ------------------------------------------------------------------ */

bool is_shell(const char *name);
int exec_main(int argc, char **argv);

/* --- io.c ---------------------------------------------------------------------------------------------------- */

int64_t now_ms(void); /* monotonic */

/* Waits until `deadline` for an event of poll(2) on fd. False: the time is over. */
bool wait_for(int fd, short events, int64_t deadline);

/* Writes all of it, whether or not the descriptor blocks. */
bool write_all(int fd, const void *bytes, size_t length, int64_t deadline);

/* path = home "/" name, false where it does not fit. */
bool join(char *path, size_t size, const char *home, const char *name);

/* Variables that say which session, project and user settings a hook belongs to; ended by NULL. */
extern const char *const AGENT_ENVIRONMENT[];

/* The whole environment of a Node process that the shim starts: the recorder (why NULL) or a hook. */
char **node_environment(const char *home, const char *why);

#endif
