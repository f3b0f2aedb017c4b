/* What was granted since the session's start, and by which grant a place may be changed. The front's frames are obeyed one after the other by a thread of their
 * own. The table changes under the lock of all names, alone: a call is done wholly with a grant or wholly without. */
#define _GNU_SOURCE
#include "observe.h"

#include "kernel.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct grant grants[GRANTS_MAX];
static size_t count;
static atomic_uint writes;
/* The root of the disk outside, once there was a grant to write. */
static int outside = -1;

bool grants_any(void) { return atomic_load(&writes) > 0; }

struct grant *grants_next(const struct grant *after) {
  const size_t i = after == NULL ? 0 : (size_t)(after - grants) + 1;
  return i < count ? &grants[i] : NULL;
}

static bool is_at_or_below(const char *path, size_t length, const char *above, size_t above_length) {
  return length >= above_length && memcmp(path, above, above_length) == 0 && (length == above_length || path[above_length] == '/');
}

static uint32_t parts_of(const char *path) {
  uint32_t parts = 0;
  for (; *path != '\0'; path++) parts += *path == '/';
  return parts;
}

/* --- places ----------------------------------------------------------------------------------------------------- */

static struct grant *with_id(uint32_t id) {
  for (size_t i = 0; i < count; i++)
    if (grants[i].id == id) return &grants[i];
  return NULL;
}

/* What programs that save a file at once write first and rename to it: `<name>.tmp.` and what makes it one of many (digits, hex, dots), beside the name. */
static bool is_draft_of(const char *path, size_t length, const struct grant *g) {
  static const char MARK[] = ".tmp.";
  const size_t head = g->length + sizeof MARK - 1;
  if (length <= head || length > head + 40 || memcmp(path, g->path, g->length) != 0 || memcmp(path + g->length, MARK, sizeof MARK - 1) != 0) return false;
  for (size_t i = head; i < length; i++)
    if (strchr("0123456789abcdef.-", path[i]) == NULL) return false;
  return true;
}

/* The grant to write that names most of the path. */
static const struct grant *writable_at(const char *path, size_t length) {
  const struct grant *best = NULL;
  for (size_t i = 0; i < count; i++) {
    const struct grant *g = &grants[i];
    const bool is_named = is_at_or_below(path, length, g->path, g->length) && (g->below || length == g->length);
    if (g->what != GRANT_WRITE || !(is_named || (!g->below && is_draft_of(path, length, g)))) continue;
    if (best == NULL || g->length > best->length) best = g;
  }
  return best;
}

static bool same_object(int a, int b) {
  struct stat one, two;
  return fstat(a, &one) == 0 && fstat(b, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

static int open_outside(const char *path, size_t length, uint64_t flags) {
  char relative[PATH_MAX + 1];
  if (length >= sizeof relative) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(relative, length <= 1 ? "." : path + 1, length <= 1 ? 1 : length - 1);
  relative[length <= 1 ? 1 : length - 1] = '\0';
  struct k_open_how how = {.flags = flags | O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = K_RESOLVE_NO_SYMLINKS | K_RESOLVE_NO_MAGICLINKS};
  return (int)syscall(NR_OPENAT2, outside, relative, &how, sizeof how);
}

/* The folder of the disk outside that is the place's own, or, where the view hides that folder, the one that holds the very object which stands at the place. */
static int folder_outside(const struct place *place, int object) {
  const size_t length = place->path_length - place->name_length - 1;
  const int folder = open_outside(place->path, length, O_DIRECTORY);
  if (folder < 0) return -1;
  if (place->folder >= 0 && same_object(folder, place->folder)) return folder;
  char name[NAME_MAX + 1];
  if (place->name_length <= NAME_MAX) {
    memcpy(name, place->name, place->name_length);
    name[place->name_length] = '\0';
    const int there = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    const int here = object >= 0 ? object : openat(place->folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    const bool same = there >= 0 && here >= 0 && same_object(there, here);
    if (there >= 0) close(there);
    if (here >= 0 && here != object) close(here);
    if (same) return folder;
  }
  close(folder);
  return -1;
}

static bool stand_in(struct place *place, int object) {
  const int folder = folder_outside(place, object);
  if (folder < 0) return false;
  if (place->folder >= 0) close(place->folder);
  place->folder = folder;
  return true;
}

void grant_apply(struct place *place, int object) {
  place->grant = 0;
  if (!grants_any() || !place->is_plain || place->path[0] != '/') return;
  const struct grant *grant = writable_at(place->path, place->path_length);
  if (grant != NULL && stand_in(place, object)) place->grant = grant->id;
}

bool grant_object(const struct place *place, int *object) {
  const int there = openat(place->folder, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  struct stat s;
  if (there < 0 || !same_object(there, *object) || fstat(there, &s) != 0 || !S_ISREG(s.st_mode)) {
    if (there >= 0) close(there);
    return false;
  }
  close(*object);
  *object = there;
  return true;
}

void grant_align(struct place *place) {
  if (place->grant == 0 && place->is_plain && is_writable(place->path, place->path_length)) (void)stand_in(place, -1);
}

void grant_lift(const struct place *place, const struct names_answer *answer, enum rule_kind kind, struct rule *rule) {
  const struct grant *grant = with_id(place->grant);
  if (grant == NULL) return;
  const bool has_leaf = answer->leaf != NAMES_NONE, has_mask = answer->mask != NAMES_NONE;
  const bool is_exact = grant->length == place->path_length;
  /* What is protected or masked below the path that was granted stays so: it was not named. */
  const bool lifts_leaf = has_leaf && answer->leaf_parts <= grant->parts, lifts_mask = has_mask && answer->mask_parts <= grant->parts;
  struct rule granted = {.outcome = RULE_RECORD, .index = RULE_IS_GRANT | grant->id, .mediator = NAMES_NO_MEDIATOR, .is_lifted = lifts_leaf || lifts_mask};
  bool may = false;
  switch (rule->outcome) {
    case RULE_FREE:
    case RULE_RECORD: may = true; break;
    /* A link could lead elsewhere when the grant has ended. */
    case RULE_REFUSE: may = lifts_leaf && answer->treatment == NAMES_REFUSE && kind != IS_LINK; break;
    case RULE_MEDIATE: may = is_exact; break;
    case RULE_MASK: may = lifts_mask && (!has_leaf || lifts_leaf || answer->treatment == NAMES_RECORD) && kind != IS_LINK; break;
  }
  if (may) *rule = granted;
  /* It could not be masked where it is made, which is on the disk outside. */
  else if (rule->outcome == RULE_MASK) rule->outcome = RULE_REFUSE;
}

/* --- changes ---------------------------------------------------------------------------------------------------- */

/* nd7's own folder, in which the canary lies; "" where nothing is known of it. */
static size_t own_folder(const char **path) {
  *path = observe.plan->canary;
  const char *slash = *path == NULL ? NULL : strrchr(*path, '/');
  return slash == NULL ? 0 : (size_t)(slash - *path);
}

/* What no grant reaches, whatever the front says. */
static bool is_never(const char *path, size_t length) {
  static const char *const OWN[] = {"/proc", "/dev", "/sys"};
  for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++)
    if (is_at_or_below(path, length, OWN[i], strlen(OWN[i]))) return true;
  const char *home;
  const size_t home_length = own_folder(&home);
  return home_length > 0 && (is_at_or_below(path, length, home, home_length) || is_at_or_below(home, home_length, path, length));
}

static void grant_free(struct grant *grant) {
  if (grant->source >= 0) close(grant->source);
  free(grant->path);
}

/* What other grants show at or below a path is shown anew: it lay on what has gone, or lies below what has come. */
static void show_others(const struct grant *than) {
  for (struct grant *g = NULL; (g = grants_next(g)) != NULL;) {
    if (g->id == than->id || g->source < 0 || !is_at_or_below(g->path, g->length, than->path, than->length)) continue;
    struct grant before = *g;
    g->tree = -1;
    g->skeleton = NULL;
    g->made = 0;
    /* A grant that cannot be shown any more is not told of: what it shows is less, never more. */
    (void)grant_show(g);
    grant_hide(&before);
  }
}

static int widen(struct grant *grant) {
  if (is_never(grant->path, grant->length)) return EPERM;
  if (with_id(grant->id) != NULL) return EEXIST;
  if (count == GRANTS_MAX) return ENOSPC;
  outside = outside_root();
  if (outside < 0) return -outside;
  int error = grant_find(grant);
  if (error == 0) error = grant_show(grant);
  if (error != 0) return error;
  names_lock(true);
  grants[count++] = *grant;
  if (grant->what == GRANT_WRITE) {
    if (grant->below) names_hold_below(observe.names, grant->id, grant->path, grant->length);
    atomic_fetch_add(&writes, 1);
  }
  names_unlock();
  show_others(grant);
  return 0;
}

static int narrow(uint32_t id) {
  struct grant *found = with_id(id);
  if (found == NULL) return ENOENT;
  struct grant grant = *found;
  names_lock(true);
  memmove(found, found + 1, sizeof *found * (size_t)(&grants[count] - (found + 1)));
  count--;
  if (grant.what == GRANT_WRITE) {
    names_hold_below(observe.names, grant.id, NULL, 0);
    atomic_fetch_sub(&writes, 1);
  }
  names_unlock();
  grant_hide(&grant);
  show_others(&grant);
  grant_free(&grant);
  return 0;
}

/* --- the front's frames ------------------------------------------------------------------------------------------ */

struct order {
  struct order *next;
  bool is_narrow;
  struct grant grant;
};

#define ORDERS_MAX 1024u
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ordered = PTHREAD_COND_INITIALIZER;
static struct order *first, **last = &first;
static size_t waiting;

static bool put(struct order *order) {
  if (order == NULL) return false;
  pthread_mutex_lock(&lock);
  const bool has_room = waiting < ORDERS_MAX;
  if (has_room) {
    waiting++;
    *last = order;
    last = &order->next;
    pthread_cond_signal(&ordered);
  }
  pthread_mutex_unlock(&lock);
  return has_room;
}

bool grants_widen(const struct widening *widening) {
  struct order *order = calloc(1, sizeof *order);
  char *path = strdup(widening->path);
  if (order == NULL || path == NULL) return false;
  order->grant = (struct grant){.id = widening->id, .what = widening->what, .below = widening->below, .parts = parts_of(path), .length = strlen(path), .path = path, .source = -1, .tree = -1};
  return put(order);
}

bool grants_narrow(uint32_t id) {
  struct order *order = calloc(1, sizeof *order);
  if (order != NULL) *order = (struct order){.is_narrow = true, .grant.id = id};
  return put(order);
}

static struct order *get(void) {
  pthread_mutex_lock(&lock);
  while (first == NULL) pthread_cond_wait(&ordered, &lock);
  struct order *order = first;
  first = order->next;
  if (first == NULL) last = &first;
  waiting--;
  pthread_mutex_unlock(&lock);
  return order;
}

static void *work(void *nothing) {
  (void)nothing;
  if (unshare(CLONE_FS) != 0 || fchdir(observe.fds) != 0) _exit(125);
  for (;;) {
    struct order *order = get();
    const uint32_t id = order->grant.id;
    if (order->is_narrow) {
      channel_narrowed(id, narrow(id));
    } else {
      const int error = widen(&order->grant);
      if (error != 0) grant_free(&order->grant);
      channel_widened(id, error);
    }
    free(order);
  }
  return NULL;
}

void grants_start(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL) != 0) fail("observe", "thread");
}
