/* Names whose content decides: the front reads what is to stand there, and exactly that is written, into a file that nobody else has open. */
#define _GNU_SOURCE
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTENT_MAX ((size_t)16 << 20)

struct content {
  unsigned char *bytes;
  size_t length;
  struct stat stat;
};

static void content_free(struct content *content) { free(content->bytes); }

/* Reads a regular file whole, once. */
static int content_read(const struct place *place, struct content *content) {
  *content = (struct content){.bytes = NULL};
  const int fd = act_open(place, place->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  if (fd < 0) return errno;
  int error = fstat(fd, &content->stat) != 0 ? errno : !S_ISREG(content->stat.st_mode) || (uint64_t)content->stat.st_size > CONTENT_MAX ? EACCES : 0;
  size_t room = (size_t)content->stat.st_size + 1;
  if (error == 0 && (content->bytes = malloc(room)) == NULL) error = ENOMEM;
  while (error == 0) {
    const ssize_t n = read(fd, content->bytes + content->length, room - content->length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error = errno;
    if (n <= 0) break;
    content->length += (size_t)n;
    if (content->length < room) continue;
    /* It grows while it is read. */
    unsigned char *more = room > CONTENT_MAX ? NULL : realloc(content->bytes, room * 2);
    if (more == NULL) {
      error = EACCES;
    } else {
      content->bytes = more;
      room *= 2;
    }
  }
  close(fd);
  return error;
}

static int write_all(int fd, const unsigned char *bytes, size_t length) {
  while (length > 0) {
    const ssize_t n = write(fd, bytes, length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes += n;
    length -= (size_t)n;
  }
  return 0;
}

/* Puts a fresh file in the place of a name. Its own name until then begins as no call of the session may begin one. */
static int install(const struct place *to, const unsigned char *bytes, size_t length, mode_t mode) {
  char name[48];
  uint64_t random[2];
  if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) return EIO;
  snprintf(name, sizeof name, OWN_PREFIX "%016llx%016llx", (unsigned long long)random[0], (unsigned long long)random[1]);
  const int fd = act_open(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  int error = write_all(fd, bytes, length);
  if (error == 0 && fchmod(fd, mode) != 0) error = errno;
  close(fd);
  if (error == 0 && act_rename(to, name, to, to->name, 0) != 0) error = errno;
  if (error != 0) (void)act_unlink(to, name, 0);
  return error;
}

/* Removes what was renamed, if it is still what was read. */
static void take_away(const struct place *from, const struct stat *read) {
  struct stat now;
  if (fstatat(from->folder, from->name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == read->st_ino && now.st_dev == read->st_dev)
    (void)act_unlink(from, from->name, 0);
}

/* Whether a place still has the path that the front was asked about. Under the lock. */
static bool still_at(struct place *place) {
  char path[2 * PATH_MAX];
  size_t length;
  if (path_of(place->folder, path, PATH_MAX, &length) != 0) return false;
  if (length > 1) path[length++] = '/';
  return length + place->name_length == place->path_length && memcmp(path, place->path, length) == 0;
}

int mediate_bytes(const struct call *call, struct place *to, const struct rule *rule, enum rule_call what, const unsigned char *bytes, size_t length, mode_t mode) {
  struct content before = {.bytes = NULL};
  unsigned char *given = NULL;
  size_t given_length = 0;
  const int unread = content_read(to, &before);
  int error = unread != 0 && unread != ENOENT ? EACCES : 0;
  if (error == 0) {
    const struct question question = {.what = what,
                                      .rule = rule->index,
                                      .path = to->path,
                                      .is_there = unread == 0,
                                      .before = before.bytes,
                                      .before_length = before.length,
                                      .after = bytes,
                                      .after_length = length};
    error = channel_ask(call, &question, &given, &given_length);
  }
  if (error == 0) {
    names_lock(false);
    error = still_at(to) ? install(to, given != NULL ? given : bytes, given != NULL ? given_length : length, mode) : EACCES;
    names_unlock();
  }
  free(given);
  content_free(&before);
  return error;
}

int mediate_rename(const struct call *call, struct place *from, struct place *to, const struct rule *rule) {
  struct content after;
  if (from->has_slash || to->has_slash) return ENOTDIR;
  int error = content_read(from, &after);
  if (error == 0 && !call_waits(call)) error = EACCES;
  if (error == 0) error = mediate_bytes(call, to, rule, CALL_RENAME_TO, after.bytes, after.length, after.stat.st_mode & 07777);
  if (error == 0) {
    names_lock(false);
    take_away(from, &after.stat);
    names_unlock();
  }
  content_free(&after);
  return error;
}
