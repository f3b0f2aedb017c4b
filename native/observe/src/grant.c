/* What was granted since the session's start, and by which grant a place may be changed. What is asked for comes one after the other (grant-orders.c). The table
 * changes under the lock of all names, alone: a call is done wholly with a grant or wholly without. */
#define _GNU_SOURCE
#include "grant.h"

#include "kernel.h"
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

static struct grant grants[GRANTS_MAX];
static size_t count;
static atomic_uint writes;
/* The root of the disk outside, once there was a grant to write. */
static int outside = -1;

bool grants_any(void) { return atomic_load(&writes) > 0; }

static bool is_at_or_below(const char *path, size_t length, const char *above, size_t above_length) {
  return length >= above_length && memcmp(path, above, above_length) == 0 && (length == above_length || path[above_length] == '/');
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

/* T2: what is hidden below a granted folder stays so, whoever hides it: it was not named. */
static bool stays_closed(const struct grant *g, const char *path, size_t length) {
  const struct plan *plan = observe.plan;
  for (size_t i = 0; is_bare() && i < plan->mount_count; i++) {
    const struct plan_mount *m = &plan->mounts[i];
    const size_t n = strlen(m->path);
    if (m->view == VIEW_COVER && n > g->length && is_at_or_below(m->path, n, g->path, g->length) && is_at_or_below(path, length, m->path, n)) return true;
  }
  return false;
}

/* The grant to write that names most of the path. */
static const struct grant *writable_at(const char *path, size_t length) {
  const struct grant *best = NULL;
  for (size_t i = 0; i < count; i++) {
    const struct grant *g = &grants[i];
    const bool is_named = is_at_or_below(path, length, g->path, g->length) && (g->below || length == g->length);
    if (g->what != GRANT_WRITE || !(is_named || (!g->below && is_draft_of(path, length, g))) || stays_closed(g, path, length)) continue;
    if (best == NULL || g->length > best->length) best = g;
  }
  return best;
}

/* What stands at a place, as O_PATH; -1: nothing. */
static int object_in(int folder, const struct place *place) {
  char name[NAME_MAX + 1];
  if (folder < 0 || place->name_length > NAME_MAX) return -1;
  memcpy(name, place->name, place->name_length);
  name[place->name_length] = '\0';
  return openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_read_only(int fd) {
  struct statfs fs;
  return fstatfs(fd, &fs) != 0 || (fs.f_flags & ST_RDONLY) != 0;
}

/* Whether a folder of the disk outside may stand in for the place's own: it is the same, and over the name nothing is laid that hides it. Where the view hides the
 * folder, or a grant names this very path, what the session sees at the name has to be the very object, or nothing. `writable`: the session may write to what it
 * sees already. */
static bool is_its_folder(const struct place *place, int folder, int object, bool is_named, bool writable) {
  const int there = object_in(folder, place), here = object >= 0 ? object : object_in(place->folder, place);
  const bool same_folder = place->folder >= 0 && same_object(folder, place->folder), same = there >= 0 && here >= 0 && same_object(there, here);
  bool is_its = same_folder ? is_named || same || here < 0 || there < 0 : same;
  if (writable && (is_read_only(place->folder) || (here >= 0 && is_read_only(here)))) is_its = false;
  if (there >= 0) close(there);
  if (here >= 0 && here != object) close(here);
  return is_its;
}

static bool stand_in(struct place *place, int object, bool is_named, bool writable) {
  const int folder = object_at(outside, place->path, place->path_length - place->name_length - 1);
  if (folder < 0) return false;
  if (!is_its_folder(place, folder, object, is_named, writable)) {
    close(folder);
    return false;
  }
  place->seen = place->folder;
  place->folder = folder;
  return true;
}

void grant_apply(struct place *place, int object) {
  place->grant = 0;
  if (!grants_any() || !place->is_plain || place->path[0] != '/') return;
  const struct grant *grant = writable_at(place->path, place->path_length);
  if (is_bare()) {
    if (grant != NULL) place->grant = grant->id;
    return;
  }
  if (grant != NULL && stand_in(place, object, grant->length == place->path_length, false)) place->grant = grant->id;
}

bool grants_socket(const struct stat *s) {
  bool found = false;
  names_lock(false);
  for (size_t i = 0; i < count && !found; i++) {
    struct stat own;
    found = grants[i].what == GRANT_SOCKET && grants[i].source >= 0 && fstat(grants[i].source, &own) == 0 && own.st_dev == s->st_dev && own.st_ino == s->st_ino;
  }
  names_unlock();
  return found;
}

bool grant_reaches(int folder) {
  char path[PATH_MAX];
  size_t length;
  names_lock(false);
  const bool reaches = path_of(folder, path, sizeof path, &length) == 0 && !is_writable(path, length) && writable_at(path, length) != NULL;
  names_unlock();
  return reaches;
}

bool grant_object(const struct place *place, int *object) {
  struct stat own;
  /* Without a view it is the same there. */
  if (is_bare()) return fstat(*object, &own) == 0 && (S_ISREG(own.st_mode) || S_ISDIR(own.st_mode));
  const int there = openat(place->folder, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  struct stat s;
  if (there < 0 || !same_object(there, *object) || fstat(there, &s) != 0 || !(S_ISREG(s.st_mode) || S_ISDIR(s.st_mode))) {
    if (there >= 0) close(there);
    return false;
  }
  close(*object);
  *object = there;
  return true;
}

bool grant_names(uint32_t id, size_t length) {
  const struct grant *grant = with_id(id);
  return grant != NULL && grant->length >= length;
}

/* Whether what hides or masks a path is named by the grant itself: what is hidden below it stays so. */
static bool uncovers(const struct grant *g, const char *path, size_t length, size_t hidden) {
  static const struct names_disk no_facts;
  struct names_answer answer;
  if (g->what == GRANT_SOCKET || hidden > g->length || !is_at_or_below(path, length, g->path, g->length) || !(g->below || length == g->length) || stays_closed(g, path, length)) return false;
  names_judge(observe.names, &no_facts, path, length, &answer);
  return answer.mask == NAMES_NONE || answer.mask_parts <= g->parts;
}

bool grant_reads(const char *path, size_t length, size_t hidden) {
  for (size_t i = 0; i < count; i++)
    if (uncovers(&grants[i], path, length, hidden)) return true;
  return false;
}

void grant_align(struct place *place) {
  if (is_bare()) return;
  if (place->grant == 0 && place->is_plain && is_writable(place->path, place->path_length)) (void)stand_in(place, -1, false, true);
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
  /* One path is one file: a link or a folder in its place would be more than what was granted. */
  if (!grant->below && (kind == IS_LINK || kind == IS_FOLDER)) {
    rule->outcome = RULE_REFUSE;
    return;
  }
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

void grant_free(struct grant *grant) {
  bool is_watched = false;
  for (size_t i = 0; i < count; i++) is_watched = is_watched || grants[i].watch == grant->watch;
  if (!is_watched) watch_remove(grant->watch);
  if (grant->source >= 0) close(grant->source);
  free(grant->path);
}

/* What other grants show at or below a path is shown anew: it lay on what has gone, or lies below what has come. */
static void show_others(const struct grant *than, bool was_mounted) {
  if (!was_mounted) return;
  for (size_t i = 0; i < count; i++) {
    struct grant *g = &grants[i];
    if (g->id == than->id || g->source < 0 || !is_at_or_below(g->path, g->length, than->path, than->length)) continue;
    struct grant before = *g;
    /* A grant that cannot be shown any more is not told of: what it shows is less, never more. */
    (void)grant_show(g);
    grant_hide(&before);
  }
}

/* The session's own rules, and what is granted of files and folders. For one file those of the folder that it lies in: it is made there, and saved by another
 * name beside it first; which names that may be is looked at above. */
static int hands_for_grants(void) {
  bool any = false;
  for (size_t i = 0; i < count; i++) any = any || grants[i].what != GRANT_SOCKET;
  if (!any) return hands_renew(-1);
  const int rules = landlock_widened(observe.plan);
  for (size_t i = 0; i < count; i++) {
    const struct grant *g = &grants[i];
    if (g->what == GRANT_SOCKET) continue;
    const bool is_file = g->what == GRANT_WRITE && !g->below;
    const size_t slash = (size_t)(strrchr(g->path, '/') - g->path);
    const int folder = is_file ? object_at(observe.root, g->path, slash == 0 ? 1 : slash) : -1;
    const int at = is_file ? folder : g->source;
    /* What has gone since is not there to be opened either. */
    if (at >= 0) (void)landlock_add(observe.plan, rules, at, g->what == GRANT_WRITE);
    if (folder >= 0) close(folder);
  }
  return hands_renew(rules);
}

/* Shows what lies at the path of a file now, or nothing where nothing of its kind does. */
void grant_refresh(uint32_t id) {
  struct grant *grant = with_id(id);
  if (grant == NULL || grant->watch < 0) return;
  struct grant now = {.what = grant->what, .below = grant->below, .length = grant->length, .path = grant->path, .source = -1};
  if (grant_find(&now) != 0 && now.source >= 0) {
    close(now.source);
    now.source = -1;
  }
  if (now.source < 0 ? grant->source < 0 : grant->source >= 0 && same_object(now.source, grant->source)) {
    if (now.source >= 0) close(now.source);
    return;
  }
  if (!is_bare()) grant_hide(grant);
  names_lock(true);
  if (grant->source >= 0) close(grant->source);
  grant->source = now.source;
  if (is_bare()) (void)hands_for_grants();
  names_unlock();
  if (!is_bare()) (void)grant_show(grant);
}

int grant_widen(struct grant *grant) {
  /* Who reads does so by itself there, unless the filter asks about that: nothing would come of it. */
  if (is_bare() && grant->what == GRANT_READ && (observe.plan->flags & PLAN_READS) == 0 && observe.asking < 0) return EOPNOTSUPP;
  if (is_never(grant->path, grant->length)) return EPERM;
  if (with_id(grant->id) != NULL) return EEXIST;
  if (count == GRANTS_MAX) return ENOSPC;
  outside = outside_root();
  if (outside < 0) return -outside;
  watch_add(grant);
  int error = grant_find(grant);
  if (error == 0 && !is_bare()) error = grant_show(grant);
  if (error != 0) return error;
  names_lock(true);
  grants[count++] = *grant;
  if (is_bare() && (error = hands_for_grants()) != 0) {
    count--;
    (void)hands_for_grants();
    names_unlock();
    return error;
  }
  if (grant->what == GRANT_WRITE) {
    if (grant->below) names_hold_below(observe.names, grant->id, grant->path, grant->length);
    atomic_fetch_add(&writes, 1);
  }
  names_unlock();
  show_others(grant, grant->tree >= 0);
  /* It may be another since it was looked at, and nobody was told. */
  grant_refresh(grant->id);
  return 0;
}

int grant_narrow(uint32_t id) {
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
  /* Where new ones cannot be made there are none, and nothing is granted. */
  if (is_bare()) (void)hands_for_grants();
  names_unlock();
  const bool was_mounted = grant.tree >= 0;
  if (!is_bare()) grant_hide(&grant);
  show_others(&grant, was_mounted);
  grant_free(&grant);
  return 0;
}

void grants_moved(int watch, const char *name) {
  names_lock(false);
  for (size_t i = 0; i < count; i++) {
    const struct grant *g = &grants[i];
    if (g->watch >= 0 && (name == NULL || (g->watch == watch && strcmp(strrchr(g->path, '/') + 1, name) == 0))) order_refresh(g->id);
  }
  names_unlock();
}
