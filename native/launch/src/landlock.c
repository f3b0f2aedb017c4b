#define _GNU_SOURCE
#include "launch.h"

#include "kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Landlock's LANDLOCK_ACCESS_FS_*: 13 rights in the first version, then REFER, TRUNCATE, IOCTL_DEV and RESOLVE_UNIX. */
#define ALL_V1 ((1ull << 13) - 1)
#define REFER (1ull << 13)
#define TRUNCATE (1ull << 14)
#define IOCTL_DEV (1ull << 15)
/* To connect to a unix socket by its path. Those that this domain has bound need no right. */
#define RESOLVE_UNIX (1ull << 16)
/* EXECUTE, WRITE_FILE, READ_FILE: what can be granted for a file besides TRUNCATE and IOCTL_DEV. */
#define ON_FILES (7ull | TRUNCATE | IOCTL_DEV)

/* EXECUTE, READ_FILE, READ_DIR */
#define LOOKS (1ull | 4ull | 8ull)
#define READ_FILE 4ull
#define WRITE_FILE 2ull
#define MAKE_REG (1ull << 8)
#define EXECUTE 1ull
#define MAKE_CHAR (1ull << 6)
#define MAKE_BLOCK (1ull << 11)
/* As in the folders that a session writes to: what is moved from one to the other is to have the same rights there. */
#define WRITES ((ALL_V1 | REFER | TRUNCATE | IOCTL_DEV) & ~(MAKE_CHAR | MAKE_BLOCK))
#define NET_ALL 3ull
#define NET_CONNECT 2ull
/* LANDLOCK_RULE_NET_PORT */
#define RULE_PORT 2

int landlock_abi(void) {
  const long abi = syscall(NR_LANDLOCK_CREATE_RULESET, NULL, 0, 1);
  return abi < 0 ? 0 : (int)abi;
}

int landlock_used(const struct plan *plan) {
  const int abi = landlock_abi();
  return plan->landlock_most != 0 && abi > (int)plan->landlock_most ? (int)plan->landlock_most : abi;
}

static uint64_t handled_by(int abi) { return ALL_V1 | (abi >= 2 ? REFER : 0) | (abi >= 3 ? TRUNCATE : 0) | (abi >= 5 ? IOCTL_DEV : 0); }

static int ruleset(const struct k_landlock_ruleset *attributes, int abi) {
  /* Versions know a structure that is so long; a longer one is fine where its tail is zero. */
  const size_t size = abi >= 6 ? sizeof *attributes : abi >= 4 ? 16 : 8;
  const int rules = (int)syscall(NR_LANDLOCK_CREATE_RULESET, attributes, size, 0);
  if (rules < 0) fail("landlock", "create_ruleset");
  return rules;
}

static void enforce(int rules) {
  if (syscall(NR_LANDLOCK_RESTRICT_SELF, rules, 0) != 0) fail("landlock", "restrict_self");
  close(rules);
}

/* `may_lack`: what has gone since the plan was made, or cannot be reached by this user, needs no rule. */
static void grant(int rules, const char *path, uint64_t rights, bool may_lack) {
  const int at = path_open(path);
  struct stat s;
  if (at < 0 && may_lack) return;
  if (at < 0 || fstat(at, &s) != 0) fail("landlock", path);
  struct k_landlock_path beneath = {.allowed = rights, .parent = at};
  if (!S_ISDIR(s.st_mode)) beneath.allowed &= ON_FILES;
  if (beneath.allowed != 0 && syscall(NR_LANDLOCK_ADD_RULE, rules, 1, &beneath, 0) != 0) fail("landlock", path);
  close(at);
}

static void grant_ports(int rules, const struct plan *plan) {
  for (size_t i = 0; i < plan->ports_count; i++) {
    const struct plan_ports *ports = &plan->ports[i];
    for (uint32_t port = ports->first; port <= ports->last; port += ports->step) {
      const struct k_landlock_port one = {.allowed = NET_CONNECT, .port = port};
      if (syscall(NR_LANDLOCK_ADD_RULE, rules, RULE_PORT, &one, 0) != 0) fail("landlock", "a port");
    }
  }
}

/* The host's terminals are one folder: the session has its own by name, and of the others the supervisor opens those that the session has made. */
static void grant_terminals(int rules, uint64_t handled, enum layer layer) {
  const uint64_t rights = (READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV) & handled;
  char path[64];
  for (int fd = 0; fd < 3; fd++)
    if (isatty(fd) && ttyname_r(fd, path, sizeof path) == 0) grant(rules, path, rights, true);
  if (layer == LAYER_SESSION) grant(rules, "/dev/pts", rights, true);
}

/* The rules of a layer, which nobody is under yet. */
static int rules_of(const struct plan *plan, enum layer layer) {
  const int abi = landlock_used(plan);
  if (abi < (int)plan->landlock_min) {
    errno = 0;
    fail("landlock", "the kernel's version of it is older than the plan needs");
  }
  if (layer != LAYER_SESSION) report("landlock\t%d", abi);
  /* Elsewhere the supervisor connects, and the filter here lets a unix socket be made only where this holds. */
  const uint64_t handled = handled_by(abi) | (layer == LAYER_ALONE && abi >= 9 ? RESOLVE_UNIX : 0);
  const bool is_program = layer != LAYER_SESSION;
  const struct k_landlock_ruleset attributes = {
      .fs = handled,
      .net = abi < 4 ? 0 : layer == LAYER_PROGRAM ? NET_ALL : layer == LAYER_ALONE ? NET_CONNECT : 0,
      .scoped = is_program && abi >= 6 ? K_LANDLOCK_SCOPE_ABSTRACT | K_LANDLOCK_SCOPE_SIGNAL : 0,
  };
  const int rules = ruleset(&attributes, abi);
  for (size_t i = 0; i < plan->rule_count; i++) {
    const struct plan_rule *rule = &plan->rules[i];
    const bool is_root = (rule->rights & MAKE_REG) != 0;
    grant(rules, rule->path, rule->rights & handled & (layer == LAYER_PROGRAM && is_root ? LOOKS : ~0ull), layer != LAYER_ALL);
  }
  if (layer != LAYER_ALL) grant_terminals(rules, handled, layer);
  /* Before the fourth version it has no word for them: the filter then lets no socket of the internet be made. */
  if (layer == LAYER_ALONE && abi >= 4) grant_ports(rules, plan);
  return rules;
}

void landlock_apply(const struct plan *plan, enum layer layer) { enforce(rules_of(plan, layer)); }

int landlock_widened(const struct plan *plan) { return rules_of(plan, LAYER_SESSION); }

int landlock_add(const struct plan *plan, int rules, int at, bool writes) {
  struct stat s;
  if (fstat(at, &s) != 0) return errno;
  struct k_landlock_path beneath = {.allowed = (writes ? WRITES : LOOKS & ~EXECUTE) & handled_by(landlock_used(plan)), .parent = at};
  if (!S_ISDIR(s.st_mode)) beneath.allowed &= ON_FILES;
  return syscall(NR_LANDLOCK_ADD_RULE, rules, 1, &beneath, 0) == 0 ? 0 : errno;
}

int landlock_enter(int rules) { return syscall(NR_LANDLOCK_RESTRICT_SELF, rules, 0) == 0 ? 0 : errno; }

void landlock_never(const struct plan *plan) {
  const int abi = landlock_used(plan);
  const struct k_landlock_ruleset attributes = {
      .fs = EXECUTE | MAKE_CHAR | MAKE_BLOCK | (abi >= 2 ? REFER : 0),
      .net = abi >= 4 ? NET_ALL : 0,
      .scoped = abi >= 6 ? K_LANDLOCK_SCOPE_ABSTRACT | K_LANDLOCK_SCOPE_SIGNAL : 0,
  };
  const int rules = ruleset(&attributes, abi);
  /* Whoever does not grant it has taken it. */
  if (abi >= 2) grant(rules, "/", REFER, false);
  enforce(rules);
}

void landlock_keep_signals(void) {
  const struct k_landlock_ruleset attributes = {.scoped = K_LANDLOCK_SCOPE_SIGNAL};
  enforce(ruleset(&attributes, 6));
}
