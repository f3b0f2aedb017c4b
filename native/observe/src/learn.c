/* What a session reads, runs, writes and connects to, told to the front: for `nd7 learn`. Nothing is decided here. What the supervisor does not perform anyway is
 * continued after it was looked at, and a program can change its arguments meanwhile: what is told is what was seen, the boundary in force is what holds. */
#define _GNU_SOURCE
#include "observe.h"

#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Numbers of docs/protocol/observe.md. */
enum learned { LEARNED_NO_MORE, LEARNED_READ, LEARNED_LIST, LEARNED_LOOK, LEARNED_WRITE, LEARNED_FOLDER, LEARNED_EXEC, LEARNED_SOCKET, LEARNED_DIAL, LEARNED_BIND };

#define CWD (-1)
/* Calls that name a path, by what they mean for it: `folder` is the argument with its directory descriptor, `path` that with its text. */
static const struct watched {
  int number;
  signed char folder, path;
  unsigned char what;
  bool follows;
  bool is_performed; /* the supervisor carries it out itself, and answers it */
} WATCHED[] = {
    {SYS_mkdirat, 0, 1, LEARNED_FOLDER, false, true},
    {SYS_mknodat, 0, 1, LEARNED_WRITE, false, true},
    {SYS_symlinkat, 1, 2, LEARNED_WRITE, false, true},
    {SYS_linkat, 2, 3, LEARNED_WRITE, false, true},
    {SYS_renameat, 0, 1, LEARNED_WRITE, false, true},
    {SYS_renameat, 2, 3, LEARNED_WRITE, false, true},
    {SYS_renameat2, 0, 1, LEARNED_WRITE, false, true},
    {SYS_renameat2, 2, 3, LEARNED_WRITE, false, true},
    {SYS_truncate, CWD, 0, LEARNED_WRITE, true, true},
    {SYS_unlinkat, 0, 1, LEARNED_WRITE, false, true},
    {SYS_fchmodat, 0, 1, LEARNED_WRITE, true, true},
    {SYS_utimensat, 0, 1, LEARNED_WRITE, true, true},
    {SYS_execve, CWD, 0, LEARNED_EXEC, true, true},
    {SYS_execveat, 0, 1, LEARNED_EXEC, true, true},
    {SYS_faccessat, 0, 1, LEARNED_LOOK, true, false},
    {SYS_faccessat2, 0, 1, LEARNED_LOOK, true, false},
    {SYS_newfstatat, 0, 1, LEARNED_LOOK, true, false},
    {SYS_statx, 0, 1, LEARNED_LOOK, true, false},
    {SYS_readlinkat, 0, 1, LEARNED_LOOK, true, false},
#ifdef SYS_open
    {SYS_mkdir, CWD, 0, LEARNED_FOLDER, false, true},
    {SYS_mknod, CWD, 0, LEARNED_WRITE, false, true},
    {SYS_symlink, CWD, 1, LEARNED_WRITE, false, true},
    {SYS_link, CWD, 1, LEARNED_WRITE, false, true},
    {SYS_rename, CWD, 0, LEARNED_WRITE, false, true},
    {SYS_rename, CWD, 1, LEARNED_WRITE, false, true},
    {SYS_unlink, CWD, 0, LEARNED_WRITE, false, true},
    {SYS_rmdir, CWD, 0, LEARNED_WRITE, false, true},
    {SYS_chmod, CWD, 0, LEARNED_WRITE, true, true},
    {SYS_access, CWD, 0, LEARNED_LOOK, true, false},
    {SYS_stat, CWD, 0, LEARNED_LOOK, true, false},
    {SYS_lstat, CWD, 0, LEARNED_LOOK, true, false},
    {SYS_readlink, CWD, 0, LEARNED_LOOK, true, false},
#endif
};

/* --- each thing is told once ------------------------------------------------------------------------------------------ */

/* Half of the places are used at most; that there was more is told once. */
#define PLACES (1u << 18)
#define MOST (PLACES / 2)
static uint64_t *told;
static uint64_t seed;
static uint32_t told_count;
static bool is_full;
static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;
/* What the launcher's own self-test tries is not the program's. */
static atomic_bool has_begun;

static uint64_t hash(uint64_t h, const char *text) {
  /* FNV-1a. Who makes two texts alike hides one of its own paths from what is learned, and gains nothing by it. */
  for (;; text++) {
    h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    if (*text == '\0') return h;
  }
}

/* `*what` becomes LEARNED_NO_MORE where there is no place for it. */
static bool is_new(uint32_t *what, int error, const char *real, const char *said) {
  uint64_t h = hash(hash(seed ^ ((uint64_t)*what << 32 | (uint32_t)error), real), said) | 1;
  pthread_mutex_lock(&telling);
  bool fresh = false;
  if (told == NULL) {
    told = calloc(PLACES, sizeof *told);
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) seed = (uint64_t)(uintptr_t)told;
  }
  uint32_t at = (uint32_t)(h >> 20) % PLACES;
  while (told != NULL && told[at] != 0 && told[at] != h) at = (at + 1) % PLACES;
  if (told == NULL || (told[at] == 0 && told_count == MOST)) {
    fresh = !is_full;
    is_full = true;
    *what = LEARNED_NO_MORE;
  } else if (told[at] == 0) {
    told[at] = h;
    told_count++;
    fresh = true;
  }
  pthread_mutex_unlock(&telling);
  return fresh;
}

static void tell(const struct call *call, uint32_t what, int error, const char *real, const char *said) {
  if (!atomic_load(&has_begun) || !call_waits(call) || !is_new(&what, error, real, said)) return;
  channel_learned(call, what, error, real, said);
}

/* --- paths --------------------------------------------------------------------------------------------------------------- */

/* Room for a folder and a path in it. */
#define ROOM ((size_t)2 * PATH_MAX)

/* The path as it was said, made absolute, without "." and "..", which are taken by the text alone. False: it has no folder. */
static bool absolute(const struct call *call, int dirfd, const char *text, char to[ROOM]) {
  size_t length = 0;
  to[0] = '\0';
  if (text[0] != '/') {
    int folder;
    if (caller_folder(call, dirfd, &folder) != 0) return false;
    const int error = path_of(folder, to, PATH_MAX, &length);
    close(folder);
    if (error != 0 || to[0] != '/') return false;
    if (length == 1) length = 0;
  }
  while (*text != '\0') {
    text += strspn(text, "/");
    const size_t n = strcspn(text, "/");
    if (n == 2 && text[0] == '.' && text[1] == '.') {
      while (length > 0 && to[--length] != '/') continue;
    } else if (n > 0 && !(n == 1 && text[0] == '.')) {
      if (length + n + 2 > ROOM) return false;
      to[length++] = '/';
      memcpy(to + length, text, n);
      length += n;
    }
    to[length] = '\0';
    text += n;
  }
  if (length == 0) strcpy(to, "/");
  return true;
}

static bool is_below(const char *path, const char *folder) {
  const size_t n = strlen(folder);
  return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* What the kernel tells of processes and devices is not a matter of profiles. */
static bool is_own(const char *path) { return is_below(path, "/proc") || is_below(path, "/sys"); }

/* The real path that a name will have which is not there yet; an empty text where its folder is not there either. */
static void future_path(const struct call *call, int dirfd, const char *text, char to[ROOM]) {
  struct place *place = malloc(sizeof *place);
  names_lock(false);
  if (place != NULL && place_find(call, dirfd, text, place) == 0) {
    memcpy(to, place->path, place->path_length + 1);
    place_close(place);
  }
  names_unlock();
  free(place);
}

static void see(const struct call *call, int dirfd, const char *text, uint32_t what, bool follows) {
  char *said = malloc(ROOM), *real = malloc(ROOM);
  int object = -1;
  bool magic = false;
  struct stat s;
  size_t length;
  if (said == NULL || real == NULL || !absolute(call, dirfd, text, said) || is_own(said)) goto out;
  int error = object_find(call, dirfd, text, false, follows, &object, &magic);
  if (error == 0 && (fstat(object, &s) != 0 || path_of(object, real, PATH_MAX, &length) != 0 || real[0] != '/')) goto out;
  if (error != 0) {
    real[0] = '\0';
    if (what == LEARNED_WRITE || what == LEARNED_FOLDER) future_path(call, dirfd, text, real);
  } else if (is_own(real) || (S_ISDIR(s.st_mode) && what == LEARNED_LOOK) || what == LEARNED_FOLDER) {
    /* A folder that is there is looked at by everybody, and made by nobody. */
    goto out;
  } else if (S_ISDIR(s.st_mode) && what == LEARNED_READ) {
    what = LEARNED_LIST;
  }
  tell(call, what, error, real, said);
out:
  if (object >= 0) close(object);
  free(said);
  free(real);
}

static void see_path(const struct call *call, int dirfd, uint64_t path, uint32_t what, bool follows) {
  char text[PATH_MAX];
  if (caller_text(call, path, text) == 0) see(call, dirfd, text, what, follows);
}

/* A program that is run by its descriptor. */
static void see_object(const struct call *call, int number, uint32_t what) {
  char real[PATH_MAX];
  size_t length;
  int object;
  if (caller_object(call, number, &object) != 0) return;
  if (path_of(object, real, sizeof real, &length) == 0 && real[0] == '/' && !is_own(real)) tell(call, what, 0, real, real);
  close(object);
}

static bool opens_to_write(int flags) { return (flags & (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))) != 0; }

static bool see_open(struct call *call, int dirfd, uint64_t path, int flags) {
  const bool writes = opens_to_write(flags);
  see_path(call, dirfd, path, writes ? LEARNED_WRITE : LEARNED_READ, (flags & O_NOFOLLOW) == 0);
  if (!writes) call_continue(call);
  return !writes;
}

/* --- sockets --------------------------------------------------------------------------------------------------------------- */

static void see_address(const struct call *call, uint64_t address, uint64_t length, uint32_t what) {
  union {
    struct sockaddr head;
    struct sockaddr_un local;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    char end[sizeof(struct sockaddr_un) + 1];
  } to;
  memset(&to, 0, sizeof to);
  size_t n = (uint32_t)length;
  if (n > sizeof to.local) n = sizeof to.local;
  if (n < sizeof to.head.sa_family || caller_bytes(call, address, &to, n) != 0) return;
  char text[INET6_ADDRSTRLEN], whole[INET6_ADDRSTRLEN + 16];
  unsigned port = 0;
  if (to.head.sa_family == AF_UNIX && to.local.sun_path[0] != '\0') {
    to.end[sizeof to.end - 1] = '\0';
    see(call, AT_FDCWD, to.local.sun_path, what == LEARNED_DIAL ? LEARNED_SOCKET : LEARNED_WRITE, true);
  } else if (to.head.sa_family == AF_INET && n >= sizeof to.in && inet_ntop(AF_INET, &to.in.sin_addr, text, sizeof text) != NULL) {
    port = ntohs(to.in.sin_port);
    snprintf(whole, sizeof whole, "%s:%u", text, port);
  } else if (to.head.sa_family == AF_INET6 && n >= sizeof to.in6 && inet_ntop(AF_INET6, &to.in6.sin6_addr, text, sizeof text) != NULL) {
    port = ntohs(to.in6.sin6_port);
    snprintf(whole, sizeof whole, "[%s]:%u", text, port);
  }
  if (port != 0) tell(call, what, 0, whole, whole);
}

/* --- calls ------------------------------------------------------------------------------------------------------------------ */

#define INT(index) ((int)(uint32_t)call->args[index])

/* True: the call has its answer. */
static bool take(struct call *call) {
  const uint64_t *a = call->args;
  switch (call->number) {
    case SYS_openat: return see_open(call, INT(0), a[1], INT(2));
#ifdef SYS_open
    case SYS_open: return see_open(call, AT_FDCWD, a[0], INT(1));
    case SYS_creat: see_path(call, AT_FDCWD, a[0], LEARNED_WRITE, true); return false;
#endif
    case SYS_connect:
    case SYS_bind:
      see_address(call, a[1], a[2], call->number == SYS_bind ? LEARNED_BIND : LEARNED_DIAL);
      return false;
    default: break;
  }
  bool known = false, performed = false;
  for (size_t i = 0; i < sizeof WATCHED / sizeof *WATCHED; i++) {
    const struct watched *w = &WATCHED[i];
    if (w->number != call->number) continue;
    known = true;
    performed = w->is_performed;
    const int folder = w->folder == CWD ? AT_FDCWD : INT(w->folder);
    char text[PATH_MAX];
    const int error = caller_text(call, a[w->path], text);
    if (error == 0) see(call, folder, text, w->what, w->follows);
    else if (error == ENOENT && w->what == LEARNED_EXEC && folder != AT_FDCWD) see_object(call, folder, w->what);
  }
  if (!known || performed) return false;
  call_continue(call);
  return true;
}

bool learn_take(struct call *call) {
  if ((observe.plan->flags & PLAN_LEARN) == 0) return false;
  if (call->number == SYS_execve || call->number == SYS_execveat) atomic_store(&has_begun, true);
  return take(call);
}
