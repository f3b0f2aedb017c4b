/* A table of names in memory. Only names*.c look into it. */
#ifndef ND7_NAMES_TABLE_H
#define ND7_NAMES_TABLE_H

#include "names.h"

#include <string.h>

/* Most components of a pattern, and most patterns that one mask lets out, as in libs/policy. */
#define PATTERN_MAX 8u
#define EXCEPTS_MAX 512u
/* A path of NAMES_PATH_MAX bytes has no more. */
#define PARTS_MAX (NAMES_PATH_MAX / 2)

struct text {
  const char *bytes;
  uint32_t length;
};

/* Indexes of strings, or of whatever else is counted. */
struct list {
  const uint32_t *items;
  uint32_t count;
};

struct mask {
  struct list under, pattern, not_below, except_paths;
  struct list excepts; /* of lists: patterns */
  bool except_held;
};

enum leaf_at { AT_ANYWHERE = 0, AT_GIT_DIR = 1, AT_FOLDER = 2 };

/* Layers whose word stands for itself have a voice each; all others share voice 0. */
#define VOICES 4u

struct leaf {
  enum leaf_at at;
  struct list under, pattern, not_below, except_paths;
  bool below;
  enum names_treatment treatment;
  enum names_mediator mediator;
  uint32_t voice;
};

/* Patterns' components by their text, so that a name is compared with few of them. */
struct index {
  uint32_t *slots; /* of the exact ones: index of the string + 1, by hash; 0: empty */
  uint32_t slot_mask;
  uint32_t *wild; /* those with a star */
  uint32_t wild_count;
  struct list *last;  /* by string: the rules whose pattern ends with it */
  struct list *inner; /* by string: the rules in whose pattern it stands before the end; for leaves only */
  uint32_t *numbers;
};

struct names {
  struct text *strings;
  uint32_t string_count;
  struct list *lists;
  uint32_t list_count;
  struct mask *masks;
  uint32_t mask_count;
  struct leaf *leaves;
  uint32_t leaf_count;
  struct index mask_index, leaf_index;
  struct list places;  /* every folder and path that a rule names */
  struct list guarded; /* folders in which a leaf that is not only recorded holds at that place alone */
  struct text held[NAMES_HELD]; /* folders below which leaves hold besides those that they name, unless these are the leaf's only place */
  uint32_t held_ids[NAMES_HELD], held_count;
  uint32_t *numbers, *place_numbers; /* what the lists point into */
  char *bytes;
};

/* A path taken apart. */
struct path {
  const char *bytes; /* as it is compared */
  size_t length;
  const char *raw; /* as the disk has it; the same but where it is no UTF-8 */
  uint32_t count;
  uint32_t end[PARTS_MAX], raw_end[PARTS_MAX]; /* where each component ends; it begins behind the slash before */
  struct text folded[PARTS_MAX];
  uint32_t folded_count; /* so many have been folded */
  char *arena; /* what folding writes into */
  size_t arena_left;
  bool too_long; /* a fold did not fit */
  char own[3 * NAMES_PATH_MAX];
  char folds[13 * NAMES_PATH_MAX];
};

static inline struct text text_of(const struct names *names, uint32_t string) { return names->strings[string]; }

/* The folders below which a leaf holds. */
static inline uint32_t unders_of(const struct names *names, const struct leaf *leaf) { return leaf->under.count + (leaf->at == AT_FOLDER ? 0 : names->held_count); }

static inline struct text under_of(const struct names *names, const struct leaf *leaf, uint32_t u) {
  return u < leaf->under.count ? text_of(names, leaf->under.items[u]) : names->held[u - leaf->under.count];
}

static inline struct text part_of(const struct path *path, uint32_t i) {
  const uint32_t start = i == 0 ? 1 : path->end[i - 1] + 1;
  return (struct text){path->bytes + start, path->end[i] - start};
}

static inline bool same_text(struct text a, struct text b) { return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0; }

/* Whether `path` is `folder` or lies under it, by components. */
static inline bool is_within(const char *path, size_t length, struct text folder) {
  if (folder.length == 1) return true;
  return length >= folder.length && memcmp(path, folder.bytes, folder.length) == 0 && (length == folder.length || path[folder.length] == '/');
}

static inline uint32_t hash_text(struct text text) {
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < text.length; i++) hash = (hash ^ (unsigned char)text.bytes[i]) * 16777619u;
  return hash;
}

/* Takes a path apart; false where it is none. */
bool path_split(struct path *path, const char *bytes, size_t length);

/* The first `count` components as the disk has them. */
static inline size_t raw_length(const struct path *path, uint32_t count) { return count == 0 ? 1 : path->raw_end[count - 1]; }

/* How many components of the path a folder has that is the path or lies above it. */
uint32_t parts_in(const struct path *path, struct text folder);

/* A component as it is compared with protected names. */
struct text folded_part(struct path *path, uint32_t i);

bool text_is(struct text text, const char *word);

/* Whether one of the paths lets something out: it lies above `path`, or is it, and below the first `parts` components or at them. */
bool is_excepted(const struct names *names, struct list paths, const struct path *path, uint32_t parts);

/* Which first components of a mask's pattern have matched the names so far, as bits: begun with closure(…, 1), led on by step. */
uint32_t closure(const struct names *names, struct list pattern, uint32_t reached);
uint32_t step(const struct names *names, struct list pattern, uint32_t reached, struct text name);
bool is_final(struct list pattern, uint32_t reached);

/* Whether a component of a pattern, in which a star is any run of bytes, matches a name. */
bool part_matches(struct text pattern, struct text name);

/* Whether everything below `a`, seen with one set of facts, is judged as it would be below `b`, seen with another. */
bool same_below(const struct names *names, const struct names_disk *disk_a, const char *a, size_t a_length, const struct names_disk *disk_b, const char *b,
                size_t b_length);

/* Whether a folder at or below a .git goes from one path to another by which a pointer in it can come to mean another folder, though nothing that it holds is judged
 * otherwise: a `commondir` says how many folders up the repository is whose configuration and hooks git takes. What goes along with its .git keeps it, and so
 * does what gets another name where it lies in `modules` or `worktrees`. */
bool leaves_git(const char *a, size_t a_length, const char *b, size_t b_length);

/* --- names-fold.c ---------------------------------------------------------------------------------------------- */

/* Writes a name as `foldName` of libs/policy has it; its length, SIZE_MAX where there is no room. The name is well-formed UTF-8. */
size_t fold_name(const char *name, size_t length, char *to, size_t room);

/* Writes bytes with U+FFFD in place of what is no UTF-8, as the WHATWG's decoder does (and Node with it); the new length. Three times the room is enough. */
size_t utf8_mend(const char *bytes, size_t length, char *to);
bool utf8_is_well_formed(const char *bytes, size_t length);

#endif
