#define _GNU_SOURCE
#include "observe.h"

#include "launch.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) (1u << (capability))

/* Of this thread alone: the kernel keeps capabilities by thread. */
static int set(uint32_t effective, uint32_t permitted) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  const struct __user_cap_data_struct sets[2] = {{.effective = effective, .permitted = permitted}};
  return (int)syscall(SYS_capset, &header, sets);
}

/* Nothing but root's reading of callers where there is no user namespace whose capabilities these would be. */
static uint32_t held(void) { return !is_bare() ? BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_ADMIN) : geteuid() == 0 ? BIT(CAP_SYS_PTRACE) : 0; }

void rights_settle(void) {
  if (set(0, held()) != 0) fail("observe", "capset");
}

void rights_leave(void) {
  if (set(0, 0) != 0) fail("observe", "capset");
}

void rights_raise(enum right right) { (void)set(right == RIGHT_MOUNT ? BIT(CAP_SYS_ADMIN) : BIT(CAP_SYS_PTRACE), held()); }

/* Going on with a right that nobody counts on would be worse than ending. */
void rights_lower(void) {
  if (set(0, held()) != 0) _exit(125);
}
