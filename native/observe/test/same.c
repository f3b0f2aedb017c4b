/* Random calls that make, move and open names, one line each for what came of it: `same SEED ROUNDS` in an empty folder. With a supervisor and without one
 * every line is the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Without RENAME_WHITEOUT, which makes a device of no use. */
#define RENAME_FLAGS 4u

static uint64_t state;
static char *edge; /* a page that ends where nothing is mapped */
static char base[PATH_MAX / 2];
static int folders[4];

static uint32_t roll(uint32_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 32) % below;
}

static const char *const PARTS[] = {"a", "b", "c", "d", "dir", "dir/e", "link", "loop", "gone", "far", ".", "..", "dir/..", "file", "file/x", "p", "dir/link", "up/a", "up"};
#define PART_COUNT (sizeof PARTS / sizeof *PARTS)

/* Paths of every kind: plain, doubled and trailing slashes, through links, through /proc, too long, none. */
static const char *some_path(void) {
  static char made[4][2 * PATH_MAX];
  static int turn;
  char *to = made[turn++ % 4];
  const char *one = PARTS[roll(PART_COUNT)], *two = PARTS[roll(PART_COUNT)];
  switch (roll(40)) {
    case 0: return "";
    case 1: return NULL;
    case 2: return (const char *)16;
    case 3:
      memset(to, 'n', 300);
      to[300] = '\0';
      return to;
    case 4:
      memset(to, 'a', PATH_MAX);
      to[PATH_MAX] = '\0';
      return to;
    case 5:
      for (int i = 0; i < PATH_MAX / 2 - 1; i++) memcpy(to + 2 * i, "./", 2);
      strcpy(to + PATH_MAX - 2, "q");
      return to;
    case 6: snprintf(to, PATH_MAX, "/proc/self/cwd/%s", one); return to;
    case 7: snprintf(to, PATH_MAX, "/proc/self/fd/%d", (int)roll(12)); return to;
    case 8: snprintf(to, PATH_MAX, "/dev/fd/%d", folders[roll(4)]); return to;
    case 9: snprintf(to, PATH_MAX, "/proc/self/root%s/%s", base, one); return to;
    case 10: snprintf(to, PATH_MAX, "/proc/thread-self/fd/%d/%s", folders[roll(4)], one); return to;
    case 11: snprintf(to, PATH_MAX, "%s/%s", base, one); return to;
    case 12: snprintf(to, PATH_MAX, "%s//%s", one, two); return to;
    case 13: snprintf(to, PATH_MAX, "%s/", one); return to;
    case 14: snprintf(to, PATH_MAX, "%s/.", one); return to;
    case 15: return roll(2) == 0 ? "/" : "//";
    case 16: return roll(2) == 0 ? "/usr/none" : "/etc/passwd";
    case 17: return roll(2) == 0 ? "/dev/null" : "/proc/self/environ";
    case 18: return roll(2) == 0 ? "/proc/version" : "/proc/self/exe";
    case 19:
      /* Ends at the end of what is mapped, or goes over it. */
      snprintf(edge + 4096 - 2, 2, "a");
      if (roll(2) == 0) edge[4095] = 'b';
      return edge + 4096 - 2;
    case 20: return "/tmp/same-x";
    case 21: snprintf(to, PATH_MAX, "/dev/fd/../fd/%d/%s", folders[roll(4)], one); return to;
    default: break;
  }
  if (roll(3) > 0) return one;
  snprintf(to, PATH_MAX, "%s/%s", one, two);
  return to;
}

static int some_folder(void) {
  const uint32_t which = roll(10);
  if (which < 5) return AT_FDCWD;
  if (which == 5) return 77;
  if (which == 6) return -5;
  return folders[roll(4)];
}

static int some_flags(void) {
  static const int ACCESS[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_WRONLY};
  static const int MORE[] = {O_CREAT, O_EXCL, O_TRUNC, O_NOFOLLOW, O_DIRECTORY, O_CLOEXEC, O_APPEND, O_NONBLOCK, O_PATH, O_TMPFILE, O_NOCTTY, O_SYNC, O_NOATIME};
  int flags = ACCESS[roll(8) == 0 ? 3 : roll(3)];
  if (roll(3) > 0) flags |= O_CREAT;
  for (uint32_t n = roll(3); n > 0; n--) flags |= MORE[roll(sizeof MORE / sizeof *MORE)];
  return flags;
}

static mode_t some_mode(void) {
  static const mode_t MODES[] = {0644, 0600, 0777, 0, 04755, 02755, 01777, 0100644, 070000};
  return MODES[roll(sizeof MODES / sizeof *MODES)];
}

/* What came of a call, and what stands at its path now. */
static void say(const char *what, long result, const char *path) {
  int error = result < 0 ? errno : 0;
  /* Of a change in /proc Landlock says no before /proc itself does. */
  if ((error == EPERM || (error == 0 && strncmp(what, "rename", 6) == 0)) && path > (const char *)4096 && (strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/dev/fd", 7) == 0)) error = EACCES;
  struct stat s = {0};
  const int there = path != NULL && path > (const char *)4096 && lstat(path, &s) == 0;
  printf("%s %d %o %d\n", what, error, there ? s.st_mode : 0, there ? (int)s.st_nlink : 0);
}

static void name(const char *path) { printf("%.60s ", path <= (const char *)4096 ? "nowhere" : path < edge || path >= edge + 4096 ? path : "the edge"); }

static void open_one(const char *path) {
  const int flags = some_flags(), by_folder = (int)roll(2), folder = by_folder ? some_folder() : AT_FDCWD;
  const mode_t mode = some_mode();
  /* A pipe that nobody has open is not waited for. */
  struct stat s;
  const int is_pipe = path > (const char *)4096 && fstatat(folder, path, &s, 0) == 0 && S_ISFIFO(s.st_mode);
  const long fd = by_folder ? syscall(SYS_openat, folder, path, flags | (is_pipe ? O_NONBLOCK : 0), mode) : open(path, flags | (is_pipe ? O_NONBLOCK : 0), mode);
  printf("open %d ", folder);
  name(path);
  printf("%o %ld ", flags, fd);
  if (fd >= 0 && fstat((int)fd, &s) == 0) {
    const int link = (int)s.st_nlink, now = fcntl((int)fd, F_GETFL) & ~O_NOFOLLOW, own = fcntl((int)fd, F_GETFD);
    printf("%o %d %o %d ", s.st_mode, link, now, own);
    if ((flags & O_TMPFILE) == O_TMPFILE && roll(2) == 0) {
      char from[40];
      const char *to = some_path();
      snprintf(from, sizeof from, "/proc/self/fd/%ld", fd);
      say("name", linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW), to);
    }
  }
  say("", fd, path);
  if (fd >= 0) close((int)fd);
}

static void one(void) {
  const char *path = some_path(), *other = some_path();
  const int folder = some_folder(), second = some_folder();
  printf("%d ", folder);
  name(path);
  printf("%d ", second);
  name(other);
  struct stat s;
  static const int LINK_FLAGS[] = {0, 0, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH, 1};
  static const mode_t KINDS[] = {S_IFIFO, S_IFREG, S_IFSOCK, 0, S_IFDIR, S_IFLNK, S_IFCHR};
  switch (roll(16)) {
    case 0: say("mkdir", mkdirat(folder, path, some_mode()), path); break;
    case 1: say("mknod", mknodat(folder, path, KINDS[roll(7)] | some_mode(), 0), path); break;
    case 2: say("symlink", symlinkat(other, folder, path), path); break;
    case 3: say("link", linkat(folder, path, second, other, LINK_FLAGS[roll(5)]), other); break;
    case 4:
    case 5: say("rename", renameat(folder, path, second, other), other); break;
    case 6: say("renameat2", renameat2(folder, path, second, other, roll(RENAME_FLAGS)), other); break;
    case 7: say("truncate", truncate(path, (long)roll(9) - 1), path); break;
    case 8: say("unlink", unlinkat(folder, path, roll(3) == 0 ? AT_REMOVEDIR : 0), path); break;
    case 9: umask((mode_t)(roll(8) << 6 | roll(8) << 3 | roll(8))); break;
    case 10:
      /* A pipe that nobody has open is not waited for. */
      if (path <= (const char *)4096 || stat(path, &s) != 0 || !S_ISFIFO(s.st_mode)) say("creat", creat(path, some_mode()), path);
      break;
    case 11: say("rmdir", unlinkat(AT_FDCWD, path, AT_REMOVEDIR), path); break;
    default: open_one(path);
  }
}

int main(int argc, char **argv) {
  state = argc > 1 ? strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1 : 1;
  /* Outside of a session it would be at the machine's own files. */
  if (prctl(PR_GET_SECCOMP) != 2) return 3;
  const long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 1000;
  edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (edge == MAP_FAILED || munmap(edge + 4096, 4096) != 0 || getcwd(base, sizeof base) == NULL) return 2;
  if (mkdir("dir", 0755) != 0 || mkdir("dir/sub", 0755) != 0 || symlink("dir", "link") != 0 || symlink("loop", "loop") != 0 || symlink("nowhere/x", "gone") != 0 ||
      symlink("../../dir/new", "dir/sub/far") != 0 || symlink("..", "dir/up") != 0 || symlink("file", "dir/link") != 0)
    return 2;
  folders[0] = open(".", O_RDONLY | O_DIRECTORY);
  folders[1] = open("dir", O_PATH | O_DIRECTORY);
  folders[2] = open("/etc/passwd", O_RDONLY);
  folders[3] = open("dir/sub", O_RDONLY);
  for (long i = 0; i < rounds; i++) {
    printf("%ld ", i);
    one();
    /* So that there is something to find. */
    if (roll(12) == 0) (void)!mkdir(PARTS[roll(PART_COUNT)], 0755);
    if (roll(12) == 0) close(open(PARTS[roll(PART_COUNT)], O_CREAT | O_WRONLY | O_NONBLOCK, 0644));
    if (roll(30) == 0) (void)!symlink(PARTS[roll(PART_COUNT)], PARTS[roll(PART_COUNT)]);
  }
  return 0;
}
