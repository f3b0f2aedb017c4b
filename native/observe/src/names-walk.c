#define _GNU_SOURCE
#include "names-table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Entries looked at and folders gone down at most, in one move: some 20 ms. */
#define ENTRIES_MAX 20000u
#define DEPTH_MAX 100u

/* --- facts of the disk ------------------------------------------------------------------------------------------ */

#define NR_OPENAT2 437
#define K_RESOLVE_NO_SYMLINKS 0x4u
#define K_RESOLVE_BENEATH 0x8u

/* Whether it has; `otherwise` where it cannot be looked into: its mode changes without asking, so that it could be a moment later. */
static bool has_head_or(int root, const char *path, size_t length, bool otherwise) {
  char name[NAMES_PATH_MAX + 1];
  if (length > NAMES_PATH_MAX) return false;
  memcpy(name, length == 1 ? "." : path + 1, length == 1 ? 1 : length - 1);
  name[length == 1 ? 1 : length - 1] = '\0';
  const struct {
    uint64_t flags, mode, resolve;
  } how = {O_PATH | O_DIRECTORY | O_CLOEXEC, 0, K_RESOLVE_NO_SYMLINKS | K_RESOLVE_BENEATH};
  const int folder = (int)syscall(NR_OPENAT2, root, name, &how, sizeof how);
  struct stat stat;
  const int error = folder >= 0 && fstatat(folder, "HEAD", &stat, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
  if (folder >= 0) close(folder);
  if (error != 0) return error != ENOENT && error != ENOTDIR && otherwise;
  /* A socket is bound without asking, and is no HEAD. */
  return !S_ISSOCK(stat.st_mode);
}

/* What is moved keeps what cannot be seen of it: both before and after it has none, and a name that is protected for another reason still counts. */
static bool has_head(void *with, const char *path, size_t length) { return has_head_or((int)(intptr_t)with, path, length, false); }

/* Where the folder above ends; 0 for the root. */
static size_t above(const char *path, size_t length) {
  const char *slash = length <= 1 ? NULL : memrchr(path, '/', length);
  return slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
}

/* The last component; the path is not the root. */
static struct text last_of(const char *path, size_t length) {
  const size_t parent = above(path, length), start = parent == 1 ? 1 : parent + 1;
  return (struct text){path + start, (uint32_t)(length - start)};
}

static bool folds_to(struct text name, const char *word) {
  char folded[NAMES_PATH_MAX];
  const size_t size = utf8_is_well_formed(name.bytes, name.length) ? fold_name(name.bytes, name.length, folded, sizeof folded) : 0;
  return size == strlen(word) && memcmp(folded, word, size) == 0;
}

/* Whether it lies in `modules` or `worktrees` of a git directory, as the facts have it. */
static bool lies_in_one(const struct names_disk *disk, const char *path, size_t length) {
  const size_t parent = above(path, length), outer = parent <= 1 ? 0 : above(path, parent);
  if (outer == 0) return false;
  const struct text name = last_of(path, parent);
  return (folds_to(name, "modules") || folds_to(name, "worktrees")) && disk->is_git_dir(disk->with, path, outer);
}

static bool is_git_dir(void *with, const char *path, size_t length) {
  const struct names_disk self = {.with = with, .is_git_dir = is_git_dir};
  return has_head_or((int)(intptr_t)with, path, length, true) || (length > 1 && folds_to(last_of(path, length), ".git")) || lies_in_one(&self, path, length);
}

static bool is_held(void *with, const char *path, size_t length) {
  (void)with, (void)path, (void)length;
  return true;
}

void names_disk_at(int root, struct names_disk *disk) { *disk = (struct names_disk){(void *)(intptr_t)root, is_git_dir, is_held, has_head}; }

/* --- facts of a folder that is elsewhere, or is another thing, afterwards --------------------------------------- */

struct moved {
  const struct names_disk *disk;
  struct text from, to;
};

/* Of what is there now, by what was seen of it: what could not be looked into is not taken for protected already. */
static bool is_git_dir_before(void *with, const char *path, size_t length) {
  const struct names_disk *disk = ((const struct moved *)with)->disk, self = {.with = with, .is_git_dir = is_git_dir_before};
  if (disk == NULL || disk->is_git_dir == NULL) return false;
  if (disk->has_head == NULL) return disk->is_git_dir(disk->with, path, length);
  return disk->has_head(disk->with, path, length) || (length > 1 && folds_to(last_of(path, length), ".git")) || lies_in_one(&self, path, length);
}

static bool is_git_dir_after(void *with, const char *path, size_t length) {
  const struct moved *moved = with;
  const struct names_disk *disk = moved->disk, self = {.with = with, .is_git_dir = is_git_dir_after};
  if (disk == NULL || disk->is_git_dir == NULL) return false;
  if (!is_within(path, length, moved->to)) return disk->is_git_dir(disk->with, path, length);
  /* What lies at the new place lies at the old one still; the new place may make it one. */
  char before[2 * NAMES_PATH_MAX];
  const size_t rest = length - moved->to.length;
  memcpy(before, moved->from.bytes, moved->from.length);
  memcpy(before + moved->from.length, path + moved->to.length, rest);
  return (disk->has_head != NULL && disk->has_head(disk->with, before, moved->from.length + rest)) || lies_in_one(&self, path, length);
}

static bool is_held_after(void *with, const char *path, size_t length) {
  const struct names_disk *disk = ((const struct moved *)with)->disk;
  return disk != NULL && disk->is_held != NULL && disk->is_held(disk->with, path, length);
}

static bool is_git_dir_now(void *with, const char *path, size_t length) {
  const struct moved *moved = with;
  const struct names_disk *disk = moved->disk, self = {.with = with, .is_git_dir = is_git_dir_now};
  if (length == moved->to.length && memcmp(path, moved->to.bytes, length) == 0) return true;
  return is_git_dir_before(with, path, length) || (disk != NULL && lies_in_one(&self, path, length));
}

/* --- looking through -------------------------------------------------------------------------------------------- */

struct walk {
  const struct names *names;
  const struct names_disk *before_disk, *after_disk;
  char before[NAMES_PATH_MAX + 1], after[NAMES_PATH_MAX + 1];
  size_t before_root, after_root; /* where the path relative to the folder begins, with its slash */
  uint32_t entries;
  bool leaves_git; /* see names-table.h */
  struct names_found *found;
};

/* A folder is no pointer of git's: what is in it has rules of its own. */
static bool is_guarded(const struct names_answer *answer, bool is_folder) {
  return answer->leaf_parts > 0 && answer->treatment != NAMES_RECORD && !(is_folder && answer->mediator == NAMES_GIT_POINTER);
}

static bool is_same(const struct names_answer *before, const struct names_answer *after, unsigned char type) {
  if ((before->mask == NAMES_NONE) != (after->mask == NAMES_NONE)) return false;
  if (type == DT_LNK && after->above && !before->above) return false;
  const bool was = is_guarded(before, type == DT_DIR), is = is_guarded(after, type == DT_DIR);
  return was == is && (!is || (before->treatment == after->treatment && before->mediator == after->mediator));
}

/* What says where the rest of a repository is, from a folder of it. */
static bool is_commondir(const struct names_answer *answer, const char *name, size_t length) {
  return answer->leaf_parts > 0 && answer->mediator == NAMES_GIT_POINTER && folds_to((struct text){name, (uint32_t)length}, "commondir");
}

static size_t extend(char *path, size_t length, const char *name, size_t size) {
  if (length + 1 + size > NAMES_PATH_MAX) return 0;
  path[length] = '/';
  memcpy(path + length + 1, name, size);
  path[length + 1 + size] = '\0';
  return length + 1 + size;
}

static unsigned char type_of(int folder, const struct dirent *entry) {
  struct stat stat;
  if (entry->d_type != DT_UNKNOWN) return entry->d_type;
  if (fstatat(folder, entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) != 0) return DT_UNKNOWN;
  return S_ISDIR(stat.st_mode) ? DT_DIR : S_ISLNK(stat.st_mode) ? DT_LNK : DT_REG;
}

static enum names_move look_into(struct walk *walk, int folder, size_t before, size_t after, uint32_t depth);

static enum names_move look_at(struct walk *walk, int folder, const struct dirent *entry, size_t before, size_t after, uint32_t depth) {
  const size_t size = strlen(entry->d_name);
  before = extend(walk->before, before, entry->d_name, size);
  after = extend(walk->after, after, entry->d_name, size);
  if (before == 0 || after == 0 || ++walk->entries > ENTRIES_MAX) return NAMES_MOVE_UNKNOWN;
  const unsigned char type = type_of(folder, entry);
  if (type == DT_UNKNOWN) return NAMES_MOVE_UNKNOWN;
  struct names_found *found = walk->found;
  names_judge(walk->names, walk->before_disk, walk->before, before, &found->before);
  names_judge(walk->names, walk->after_disk, walk->after, after, &found->after);
  const bool is_led_away = walk->leaves_git && type != DT_DIR && is_commondir(&found->before, entry->d_name, size);
  if (is_led_away || !is_same(&found->before, &found->after, type)) {
    memcpy(found->path, walk->after + walk->after_root + 1, after - walk->after_root);
    return NAMES_MOVE_REFUSED;
  }
  if (type != DT_DIR) return NAMES_MOVE_FREE;
  if (!walk->leaves_git && same_below(walk->names, walk->before_disk, walk->before, before, walk->after_disk, walk->after, after)) return NAMES_MOVE_FREE;
  const int inner = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return inner < 0 ? NAMES_MOVE_UNKNOWN : look_into(walk, inner, before, after, depth + 1);
}

/* Closes `folder`. */
static enum names_move look_into(struct walk *walk, int folder, size_t before, size_t after, uint32_t depth) {
  DIR *entries = depth > DEPTH_MAX ? NULL : fdopendir(folder);
  if (entries == NULL) {
    close(folder);
    return NAMES_MOVE_UNKNOWN;
  }
  enum names_move move = NAMES_MOVE_FREE;
  errno = 0;
  for (struct dirent *entry; move == NAMES_MOVE_FREE && (entry = readdir(entries)) != NULL; errno = 0) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    move = look_at(walk, folder, entry, before, after, depth);
  }
  if (move == NAMES_MOVE_FREE && errno != 0) move = NAMES_MOVE_UNKNOWN;
  closedir(entries);
  return move;
}

static enum names_move look(struct walk *walk, int folder, const char *before, size_t before_length, const char *after, size_t after_length) {
  if (before_length > NAMES_PATH_MAX || after_length > NAMES_PATH_MAX) return NAMES_MOVE_UNKNOWN;
  memcpy(walk->before, before, before_length);
  memcpy(walk->after, after, after_length);
  walk->before[before_length] = walk->after[after_length] = '\0';
  walk->before_root = before_length;
  walk->after_root = after_length;
  walk->found->path[0] = '\0';
  if (!walk->leaves_git && same_below(walk->names, walk->before_disk, before, before_length, walk->after_disk, after, after_length)) return NAMES_MOVE_FREE;
  const int readable = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return readable < 0 ? NAMES_MOVE_UNKNOWN : look_into(walk, readable, before_length, after_length, 0);
}

enum names_move names_may_move(const struct names *names, const struct names_disk *disk, int folder, const char *from, size_t from_length, const char *to,
                               size_t to_length, struct names_found *found) {
  struct moved moved = {disk, {from, (uint32_t)from_length}, {to, (uint32_t)to_length}};
  const struct names_disk before = {.with = &moved, .is_git_dir = is_git_dir_before, .is_held = is_held_after};
  const struct names_disk after = {.with = &moved, .is_git_dir = is_git_dir_after, .is_held = is_held_after};
  const bool leaves = leaves_git(from, from_length, to, to_length);
  struct walk walk = {.names = names, .before_disk = &before, .after_disk = &after, .leaves_git = leaves, .found = found};
  return look(&walk, folder, from, from_length, to, to_length);
}

enum names_move names_becomes_git_dir(const struct names *names, const struct names_disk *disk, int folder, const char *path, size_t length,
                                      struct names_found *found) {
  struct moved moved = {disk, {path, (uint32_t)length}, {path, (uint32_t)length}};
  const struct names_disk before = {.with = &moved, .is_git_dir = is_git_dir_before, .is_held = is_held_after};
  const struct names_disk after = {.with = &moved, .is_git_dir = is_git_dir_now, .is_held = is_held_after};
  struct walk walk = {.names = names, .before_disk = &before, .after_disk = &after, .found = found};
  return look(&walk, folder, path, length, path, length);
}
