#define _GNU_SOURCE
#include "launch.h"

#include "kernel.h"

#include <errno.h>
#include <sys/stat.h>

/* Landlock's LANDLOCK_ACCESS_FS_*: 13 rights in the first version, then REFER, TRUNCATE and IOCTL_DEV. */
#define ALL_V1 ((1ull << 13) - 1)
#define REFER (1ull << 13)
#define TRUNCATE (1ull << 14)
#define IOCTL_DEV (1ull << 15)
/* EXECUTE, WRITE_FILE, READ_FILE: what can be granted for a file besides TRUNCATE and IOCTL_DEV. */
#define ON_FILES (7ull | TRUNCATE | IOCTL_DEV)

int landlock_abi(void) {
  const long abi = syscall(NR_LANDLOCK_CREATE_RULESET, NULL, 0, 1);
  return abi < 0 ? 0 : (int)abi;
}

static uint64_t handled_by(int abi) { return ALL_V1 | (abi >= 2 ? REFER : 0) | (abi >= 3 ? TRUNCATE : 0) | (abi >= 5 ? IOCTL_DEV : 0); }

void landlock_apply(const struct plan *plan) {
  const int abi = landlock_abi();
  if (abi < (int)plan->landlock_min) {
    errno = 0;
    fail("landlock", "the kernel's version of it is older than the plan needs");
  }
  report("landlock\t%d", abi);
  const uint64_t handled = handled_by(abi);
  const struct k_landlock_ruleset attributes = {.fs = handled, .scoped = abi >= 6 ? K_LANDLOCK_SCOPE_ABSTRACT | K_LANDLOCK_SCOPE_SIGNAL : 0};
  /* Older versions take a shorter structure; a longer one is fine when its tail is zero. */
  const int rules = (int)syscall(NR_LANDLOCK_CREATE_RULESET, &attributes, sizeof attributes, 0);
  if (rules < 0) fail("landlock", "create_ruleset");
  for (size_t i = 0; i < plan->rule_count; i++) {
    const struct plan_rule *rule = &plan->rules[i];
    const int at = path_open(rule->path);
    struct stat s;
    if (at < 0 || fstat(at, &s) != 0) fail("landlock", rule->path);
    struct k_landlock_path beneath = {.allowed = rule->rights & handled, .parent = at};
    if (!S_ISDIR(s.st_mode)) beneath.allowed &= ON_FILES;
    if (beneath.allowed != 0 && syscall(NR_LANDLOCK_ADD_RULE, rules, 1, &beneath, 0) != 0) fail("landlock", rule->path);
    close(at);
  }
  if (syscall(NR_LANDLOCK_RESTRICT_SELF, rules, 0) != 0) fail("landlock", "restrict_self");
  close(rules);
}
