/* The umask of a caller. /proc/PID/status costs more than the rest of a call together: what it says of a thread is kept until anybody in the session sets one,
 * which is a call that is told of. Whose a pid is is held by a pidfd of the thread itself; kernels before 6.9 have none, and keep nothing. */
#define _GNU_SOURCE
#include "observe.h"

#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIDFD_THREAD ((unsigned)O_EXCL)
#define KEPT 64u

static atomic_uint age = 1;

struct kept {
  pid_t pid;
  unsigned age;
  int alive;
  mode_t mask;
};
static __thread struct kept kept[KEPT];
static __thread bool keeps_none;
static __thread int own_mask = -1;

static void become(mode_t mask) {
  if (own_mask != (int)mask) umask(mask);
  own_mask = (int)mask;
}

static int read_mask(pid_t pid, mode_t *mask) {
  char status[512];
  const struct call of = {.pid = pid};
  const int error = caller_file(&of, "status", status, sizeof status);
  const char *value = error == 0 ? value_of(status, "Umask:") : NULL;
  if (value == NULL) return error != 0 ? error : ESRCH;
  *mask = (mode_t)strtoul(value, NULL, 8) & 0777;
  return 0;
}

/* --- those that are being set -------------------------------------------------------------------------------------- */

/* Who is told of goes on a moment later. Until then a thread that shares its umask still has the old one, and that is not kept. */
#define SETTING 16u
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  pid_t pid;
  mode_t mask;
} setting[SETTING];
static atomic_uint setting_count;

static void forget(size_t at) { setting[at] = setting[atomic_fetch_sub(&setting_count, 1) - 1]; }

void caller_umask_changes(const struct call *call, mode_t mask) {
  pthread_mutex_lock(&lock);
  atomic_fetch_add(&age, 1);
  /* More than so many at once, in the moment between an answer and a call: the oldest has long gone on. */
  if (atomic_load(&setting_count) == SETTING) forget(0);
  const unsigned at = atomic_fetch_add(&setting_count, 1);
  setting[at].pid = call->pid;
  setting[at].mask = mask & 0777;
  pthread_mutex_unlock(&lock);
}

/* Whether nobody's is about to change: whoever was to set one has it, or has gone. */
static bool is_settled(void) {
  pthread_mutex_lock(&lock);
  for (size_t i = atomic_load(&setting_count); i-- > 0;) {
    mode_t mask;
    if (read_mask(setting[i].pid, &mask) != 0 || mask == setting[i].mask) forget(i);
  }
  const bool settled = atomic_load(&setting_count) == 0;
  pthread_mutex_unlock(&lock);
  return settled;
}

void caller_goes_on(const struct call *call) {
  if (atomic_load(&setting_count) == 0) return;
  pthread_mutex_lock(&lock);
  for (size_t i = atomic_load(&setting_count); i-- > 0;)
    if (setting[i].pid == call->pid) forget(i);
  pthread_mutex_unlock(&lock);
}

/* --- what is kept -------------------------------------------------------------------------------------------------- */

static bool still_there(int pidfd) { return syscall(NR_PIDFD_SEND_SIGNAL, pidfd, 0, NULL, 0) == 0; }

static void keep(const struct call *call, unsigned at_age, mode_t mask) {
  struct kept *place = &kept[(unsigned)call->pid % KEPT];
  if (place->alive > 0) close(place->alive);
  const int alive = keeps_none ? -1 : (int)syscall(NR_PIDFD_OPEN, call->pid, PIDFD_THREAD);
  if (alive < 0 && errno == EINVAL) keeps_none = true;
  *place = (struct kept){.pid = alive < 0 ? 0 : call->pid, .age = at_age, .alive = alive, .mask = mask};
}

int caller_umask(const struct call *call) {
  const unsigned at_age = atomic_load(&age);
  const struct kept *place = &kept[(unsigned)call->pid % KEPT];
  if (place->pid == call->pid && place->age == at_age && still_there(place->alive)) {
    become(place->mask);
    return 0;
  }
  mode_t mask;
  /* First: what is read after everybody has set theirs stays true. */
  const bool settled = is_settled();
  const int error = read_mask(call->pid, &mask);
  if (error != 0) return error;
  if (!call_waits(call)) return ESRCH;
  become(mask);
  if (settled) keep(call, at_age, mask);
  return 0;
}
