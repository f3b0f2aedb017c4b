/* The broker's two halves: the commands that stubs bring, and who runs them. */
#ifndef ND7_BROKER_H
#define ND7_BROKER_H

#include "exec.h"

#include <sys/types.h>

#define RUNS_MAX 256u

enum state { FREE, NEW, ASKED, RUNNING, ENDED };
struct run {
  enum state state;
  int stub, control; /* -1: closed */
  int streams[3];
  uint32_t id, flags;
  pid_t pid, keeper; /* as they are called here */
  uid_t uid;
  bool began;
  uint64_t held; /* signals that came before there was anybody to have them */
  int64_t until;
};

enum told { TOLD_ASK = 1, TOLD_BEGAN, TOLD_ENDED, TOLD_GONE, TOLD_DIRECT, TOLD_REFUSED, TOLD_NO_ZYGOTE };
enum refused { NO_REQUEST = 1, TOO_MANY };

/* --- broker.c: the front, the zygote, and the process itself ------------------------------------------------------ */

extern struct run broker_runs[RUNS_MAX];
extern int broker_poller;
/* Where stubs come: a socket in the door's folder, or, where the supervisor makes their connections, what it hands over. */
extern int broker_listener;
extern bool broker_is_handed;

/* Whole frames only; with a front that has gone the session ends, and this process. */
void front_tell(enum told kind, uint32_t id, const void *body, size_t length, const void *text, size_t text_length);
void front_tell_numbers(enum told kind, uint32_t id, uint32_t first, uint32_t second);
/* Four bytes, the lowest first. */
void put32(unsigned char *to, uint32_t value);

/* --- broker-stubs.c: commands, and the stubs that bring them ------------------------------------------------------- */

/* Ends the process where that fails. */
void run_watch(int fd, const struct run *run, bool is_control);
/* -1 from then on. */
void end_shut(int *fd);
void run_close_streams(struct run *run);
void run_forget(struct run *run);
/* To the stub, which may have gone. */
void run_answer(struct run *run, enum exec_answer kind, int value, const void *text, size_t length);
/* The command does not run here, and has not begun to. */
void run_hand_back(struct run *run);
/* To the keeper, where there is one. */
void run_pass(struct run *run, enum keeper_kind kind, int value);
/* Takes one that has come. */
void stub_welcome(void);
/* Reads one packet of a stub. */
void stub_speaks(struct run *run);
/* Who connects and says nothing keeps no place. Returns whether there is any such. */
bool stubs_sweep(void);

#endif
