/* How eagerly this program runs. Each piece that comes wakes it, and it would interrupt whom it works for: where many connections are at work at once, programs and servers
 * have more to say by the time that they are done, and a wake that waits for that moves all of it. A processor that is free it gets at once in either case. On a machine where far
 * more wants to run than there are processors it would wait for the turns of all those others, so it does not there. */
#define _GNU_SOURCE
#include "relay.h"

#include <sched.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define WINDOW_MS 8
/* With fewer at once each waits for the piece that is on its way, and nothing else is done meanwhile. */
#define MANY 4u

/* By the place of a connection: the window that it was last at work in. Places are taken from the front, so that connections one after another are one. */
static uint32_t seen[LINKS_MAX];
static uint32_t window = 1, at_work;
static int64_t since;
/* Who started nd7 so that it yields to others has said so for this program too. */
static bool is_ours, is_patient;

/* Programs that want to run, on the average of a minute, above which the machine is crowded; in the kernel's unit. */
static unsigned long crowd;

void pace_begin(void) {
  cpu_set_t processors;
  const int count = sched_getaffinity(0, sizeof processors, &processors) == 0 ? CPU_COUNT(&processors) : 1;
  crowd = 2UL * (unsigned long)count << SI_LOAD_SHIFT;
  is_ours = syscall(SYS_sched_getscheduler, 0) == SCHED_OTHER;
}

static bool is_crowded(void) {
  struct sysinfo now;
  return sysinfo(&now) != 0 || now.loads[0] > crowd;
}

void pace_seen(uint32_t place) {
  at_work += seen[place] != window;
  seen[place] = window;
}

void pace_look(void) {
  const int64_t now = now_ms(), took = now - since;
  if (!is_ours || took < WINDOW_MS) return;
  /* Long ago says nothing of now. */
  const bool many = at_work >= MANY && took < 2 * WINDOW_MS && !is_crowded();
  since = now;
  at_work = 0;
  window++;
  if (many == is_patient) return;
  const struct sched_param none = {0};
  /* Where that is not allowed it stays as it was. */
  is_ours = syscall(SYS_sched_setscheduler, 0, many ? SCHED_BATCH : SCHED_OTHER, &none) == 0;
  is_patient = many;
}
