/* Numbers and structures of the kernel's interface that older headers lack. They are the same on x86_64 and aarch64. */
#ifndef ND7_KERNEL_H
#define ND7_KERNEL_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_PIDFD_SEND_SIGNAL 424
#define NR_IO_URING_SETUP 425
#define NR_OPEN_TREE 428
#define NR_MOVE_MOUNT 429
#define NR_FSOPEN 430
#define NR_FSCONFIG 431
#define NR_FSMOUNT 432
#define NR_PIDFD_OPEN 434
#define NR_CLOSE_RANGE 436
#define NR_OPENAT2 437
#define NR_PIDFD_GETFD 438
#define NR_MOUNT_SETATTR 442
#define NR_LANDLOCK_CREATE_RULESET 444
#define NR_LANDLOCK_ADD_RULE 445
#define NR_LANDLOCK_RESTRICT_SELF 446

#define K_OPEN_TREE_CLONE 1u
#define K_OPEN_TREE_CLOEXEC ((unsigned)O_CLOEXEC)
#define K_AT_RECURSIVE 0x8000u
#define K_AT_EMPTY_PATH 0x1000u
#define K_MOVE_MOUNT_F_EMPTY_PATH 0x4u
#define K_MOVE_MOUNT_T_EMPTY_PATH 0x40u
#define K_FSOPEN_CLOEXEC 1u
#define K_FSMOUNT_CLOEXEC 1u
#define K_FSCONFIG_SET_STRING 1u
#define K_FSCONFIG_CMD_CREATE 6u
#define K_ATTR_RDONLY 0x1u
#define K_ATTR_NOSUID 0x2u
#define K_ATTR_NODEV 0x4u
#define K_ATTR_NOEXEC 0x8u
#define K_CLOSE_RANGE_CLOEXEC 4u
#define K_RESOLVE_NO_MAGICLINKS 0x2u
#define K_RESOLVE_NO_SYMLINKS 0x4u

struct k_mount_attr {
  uint64_t attr_set, attr_clr, propagation, userns_fd;
};
struct k_open_how {
  uint64_t flags, mode, resolve;
};
struct k_landlock_ruleset {
  uint64_t fs, net, scoped;
};
struct k_landlock_port {
  uint64_t allowed, port;
};
struct k_landlock_path {
  uint64_t allowed;
  int32_t parent;
} __attribute__((packed));

#define K_LANDLOCK_SCOPE_ABSTRACT 1u
#define K_LANDLOCK_SCOPE_SIGNAL 2u

#endif
