/* Which names stand under protection: the masks and protected names of a ruleset, compiled by libs/confine/src/names, matched as `maskAt` and `leafAt` of
 * libs/policy match them. Nothing here touches the disk but by the functions of `struct names_disk`; names-walk.c alone reads folders.
 *
 * A path is absolute, without empty parts, "." and "..", at most NAMES_PATH_MAX bytes, and leads through no symbolic link; it need not end by NUL. Bytes
 * that are no UTF-8 are compared as U+FFFD, as the TypeScript side reads them. */
#ifndef ND7_NAMES_H
#define ND7_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAMES_MAGIC "nd7-name"
#define NAMES_VERSION 1u
#define NAMES_HEADER ((size_t)16)
#define NAMES_MAX ((size_t)4 << 20)
#define NAMES_PATH_MAX ((size_t)4096)
#define NAMES_NONE UINT32_MAX

/* Numbered as in the table. */
enum names_treatment {
  NAMES_RECORD = 0,  /* done, and told of */
  NAMES_MEDIATE = 1, /* the front reads the old and the new content and says what may pass */
  NAMES_REFUSE = 2,  /* EACCES */
};

enum names_mediator {
  NAMES_NO_MEDIATOR = 0,
  NAMES_GIT_CONFIG = 1,
  NAMES_GIT_POINTER = 2, /* a regular file only: a folder of this name has rules of its own, a link of this name is refused */
  NAMES_CLAUDE_STATE = 3,
};

/* What a path is. A mask and a leaf may hold both; the stricter outcome is the caller's: refuse, then mask, then mediate, then record. */
struct names_answer {
  uint32_t mask;       /* index in the ruleset's masks, NAMES_NONE: not masked */
  uint32_t mask_parts; /* how many components of the path the masked name has; it is this very name when that is all of them */
  uint32_t leaf;       /* index in the ruleset's leaves, NAMES_NONE: none decides */
  uint32_t leaf_parts; /* how many components the deciding match reaches over; fewer than all: the path lies below a protected name */
  enum names_treatment treatment;
  enum names_mediator mediator;
  bool above; /* a protected name (not one that is only recorded) can stand below this very path: no symbolic link is made here */
};

struct names_disk {
  void *with;
  /* Whether the folder is a git directory, or may become one. Absent: by its name alone. A folder that is called like one (.git, .git/modules/x,
   * .git/worktrees/x) counts as one in any case, and this is not asked. */
  bool (*is_git_dir)(void *with, const char *path, size_t length);
  /* Whether git holds what the file holds; such files are let out of masks. Absent: no file. */
  bool (*is_held)(void *with, const char *path, size_t length);
  /* Whether the folder holds a HEAD, wherever it lies: what is left of it when it is moved. Absent: none does. */
  bool (*has_head)(void *with, const char *path, size_t length);
};

struct names;

/* Reads a table. NULL and `*names` where it is one, else what is wrong with it. The bytes may go afterwards. */
const char *names_parse(const unsigned char *bytes, size_t length, struct names **names);
void names_free(struct names *names);

/* From now on what is protected at any depth is protected below this folder too, for `id`; NULL: no longer. At most NAMES_HELD folders. Nobody else looks into
 * the table meanwhile; the path stays the caller's as long as it holds. */
#define NAMES_HELD 64u
void names_hold_below(struct names *names, uint32_t id, const char *path, size_t length);

/* A path that is too long or not of the form above is answered as refused by leaf NAMES_NONE. */
void names_judge(const struct names *names, const struct names_disk *disk, const char *path, size_t length, struct names_answer *answer);

/* Whether making this name can turn its folder into a git directory (HEAD): then what lies in the folder already has to be looked at, by
 * names_becomes_git_dir. `name` is the last component. */
bool names_completes_git_dir(const char *name, size_t length);

/* --- names-walk.c: what already lies in a folder -------------------------------------------------------------- */

/* Facts of the tree below a folder that stands for "/" (a descriptor, which stays the caller's). A folder with a HEAD is taken for a git directory: git makes
 * HEAD first, and what comes before it is looked at when it is made. So is one in `modules` or `worktrees` of a git directory. A name that is made cannot be
 * told from one that git checks out, nor does it hold what the session has not seen: masks that let out what git holds let it out. */
void names_disk_at(int root, struct names_disk *disk);

enum names_move {
  NAMES_MOVE_FREE,
  NAMES_MOVE_REFUSED, /* something below would come under protection or leave it: EACCES */
  NAMES_MOVE_UNKNOWN, /* too much to look through: EXDEV, so that the program copies, name by name */
};

struct names_found {
  char path[NAMES_PATH_MAX]; /* relative to the folder, ended by NUL; what decided. Empty: the folder itself */
  struct names_answer before, after;
};

/* Looks through a folder (`folder`: a descriptor of it, which may be O_PATH) that is to be moved from `from` to `to`, without following links. Call it under
 * the lock that all changes of names take; for an exchange of two folders once for each. It looks at nothing
 * where the names alone say that all stays as it is, as for most. */
enum names_move names_may_move(const struct names *names, const struct names_disk *disk, int folder, const char *from, size_t from_length, const char *to,
                               size_t to_length, struct names_found *found);

/* Looks through a folder (`path`) in which a name of names_completes_git_dir is to be made: refused where something in it would come under protection. */
enum names_move names_becomes_git_dir(const struct names *names, const struct names_disk *disk, int folder, const char *path, size_t length,
                                      struct names_found *found);

#endif
