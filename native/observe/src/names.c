#define _GNU_SOURCE
#include "names-table.h"

#define WORDS_MAX 128u /* of 64 rules each; names_parse takes no more */

static bool has_package_folder(const struct names *names, struct list folders, const struct path *path, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++)
    for (uint32_t f = 0; f < folders.count; f++)
      if (same_text(part_of(path, i), text_of(names, folders.items[f]))) return true;
  return false;
}

/* --- masks ------------------------------------------------------------------------------------------------------ */

/* How many components the part of a path has that a mask hides, 0 for none, below one folder of the mask. */
static uint32_t masked_below(const struct names *names, const struct mask *mask, const struct names_disk *disk, const struct path *path, uint32_t base) {
  const struct list *lists = names->lists;
  uint32_t reached = closure(names, mask->pattern, 1), others[EXCEPTS_MAX];
  for (uint32_t e = 0; e < mask->excepts.count; e++) others[e] = closure(names, lists[mask->excepts.items[e]], 1);
  for (uint32_t i = base; i < path->count && !has_package_folder(names, mask->not_below, path, i == base ? i : i - 1, i); i++) {
    const struct text part = part_of(path, i);
    reached = step(names, mask->pattern, reached, part);
    bool is_out = false;
    for (uint32_t e = 0; e < mask->excepts.count; e++) {
      const struct list other = lists[mask->excepts.items[e]];
      others[e] = step(names, other, others[e], part);
      is_out = is_out || is_final(other, others[e]);
    }
    if (!is_final(mask->pattern, reached) || is_out) continue;
    if (mask->except_held && disk != NULL && disk->is_held != NULL && disk->is_held(disk->with, path->raw, raw_length(path, i + 1))) continue;
    if (is_excepted(names, mask->except_paths, path, i + 1)) continue;
    return i + 1;
  }
  return 0;
}

static uint32_t masked_parts(const struct names *names, const struct mask *mask, const struct names_disk *disk, const struct path *path) {
  for (uint32_t u = 0; u < mask->under.count; u++) {
    const struct text under = text_of(names, mask->under.items[u]);
    if (path->length == under.length || !is_within(path->bytes, path->length, under)) continue;
    const uint32_t parts = masked_below(names, mask, disk, path, parts_in(path, under));
    if (parts > 0) return parts;
  }
  return 0;
}

/* --- protected names -------------------------------------------------------------------------------------------- */

static bool is_git_dir(const struct names_disk *disk, struct path *path, uint32_t count) {
  if (count >= 1 && text_is(folded_part(path, count - 1), ".git")) return true;
  if (count >= 3 && text_is(folded_part(path, count - 3), ".git") &&
      (text_is(folded_part(path, count - 2), "modules") || text_is(folded_part(path, count - 2), "worktrees")))
    return true;
  return disk != NULL && disk->is_git_dir != NULL && disk->is_git_dir(disk->with, path->raw, raw_length(path, count));
}

static bool has_git_part(struct path *path, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (text_is(folded_part(path, i), ".git")) return true;
  return false;
}

/* Whether the first `length` components of a leaf's pattern match from `start` on, below a folder of `base` components. */
static bool matches_at(const struct names *names, const struct leaf *leaf, const struct names_disk *disk, struct path *path, uint32_t base, uint32_t start,
                       uint32_t length) {
  if (leaf->at == AT_FOLDER && start != base) return false;
  for (uint32_t i = 0; i < length; i++)
    if (!part_matches(text_of(names, leaf->pattern.items[i]), folded_part(path, start + i))) return false;
  const bool is_among_packages = has_package_folder(names, leaf->not_below, path, base, start);
  if (leaf->at != AT_GIT_DIR) return !is_among_packages;
  /* Among packages a folder with a HEAD is somebody's test data; git goes into a .git there too, where an index of the session's names its folder. */
  return (!is_among_packages || has_git_part(path, start)) && is_git_dir(disk, path, start);
}

static uint32_t leaf_depth(const struct names *names, const struct leaf *leaf, const struct names_disk *disk, struct path *path) {
  const uint32_t size = leaf->pattern.count;
  uint32_t best = 0;
  for (uint32_t u = 0; u < unders_of(names, leaf); u++) {
    const struct text under = under_of(names, leaf, u);
    if (!is_within(path->bytes, path->length, under)) continue;
    const uint32_t base = parts_in(path, under);
    for (uint32_t end = path->count; end >= base + size && end > best; end--) {
      if (!leaf->below && end != path->count) break;
      if (matches_at(names, leaf, disk, path, base, end - size, size)) best = end;
    }
  }
  return best > 0 && is_excepted(names, leaf->except_paths, path, best) ? 0 : best;
}

/* Whether the path could be led on to a protected name: what stands in the pattern before its end matches the end of the path. */
static bool leads_on(const struct names *names, const struct leaf *leaf, const struct names_disk *disk, struct path *path) {
  if (leaf->treatment == NAMES_RECORD) return false;
  for (uint32_t u = 0; u < unders_of(names, leaf); u++) {
    const struct text under = under_of(names, leaf, u);
    if (!is_within(path->bytes, path->length, under)) continue;
    const uint32_t base = parts_in(path, under);
    for (uint32_t length = 1; length < leaf->pattern.count && base + length <= path->count; length++)
      if (matches_at(names, leaf, disk, path, base, path->count - length, length)) return true;
  }
  return false;
}

static bool holds_git_dirs(struct text name) { return text_is(name, "modules") || text_is(name, "worktrees"); }

/* Whether what lies in it is a git directory by its place. */
static bool holds_modules(const struct names_disk *disk, struct path *path) {
  return path->count >= 1 && holds_git_dirs(folded_part(path, path->count - 1)) && is_git_dir(disk, path, path->count - 1);
}

/* Whether it lies there, however deep: a submodule's name may have slashes. */
static bool lies_in_modules(const struct names_disk *disk, struct path *path) {
  for (uint32_t i = 0; i + 1 < path->count; i++)
    if (holds_git_dirs(folded_part(path, i)) && is_git_dir(disk, path, i)) return true;
  return false;
}

/* Whether it is a folder in which protected names have their place, or one above such a folder, or lies where git directories do, or holds those. */
static bool is_above(const struct names *names, const struct names_disk *disk, struct path *path) {
  const struct text self = {path->bytes, (uint32_t)path->length};
  for (uint32_t i = 0; i < names->guarded.count; i++) {
    const struct text folder = text_of(names, names->guarded.items[i]);
    if (is_within(folder.bytes, folder.length, self)) return true;
  }
  return holds_modules(disk, path) || lies_in_modules(disk, path) || is_git_dir(NULL, path, path->count);
}

/* --- judging ---------------------------------------------------------------------------------------------------- */

typedef uint64_t rule_set[WORDS_MAX];

static void mark(rule_set set, struct list rules) {
  for (uint32_t i = 0; i < rules.count; i++) set[rules.items[i] / 64] |= UINT64_C(1) << rules.items[i] % 64;
}

/* Marks the rules in whose pattern the name stands: those that end with it, and in `inner` those that go on behind it. */
static void mark_all(const struct names *names, const struct index *index, struct text name, rule_set last, uint64_t *inner) {
  for (uint32_t slot = hash_text(name) & index->slot_mask; index->slots[slot] != 0; slot = (slot + 1) & index->slot_mask) {
    const uint32_t string = index->slots[slot] - 1;
    if (!same_text(text_of(names, string), name)) continue;
    mark(last, index->last[string]);
    if (inner != NULL) mark(inner, index->inner[string]);
    break;
  }
  for (uint32_t i = 0; i < index->wild_count; i++) {
    const uint32_t string = index->wild[i];
    if (!part_matches(text_of(names, string), name)) continue;
    mark(last, index->last[string]);
    if (inner != NULL) mark(inner, index->inner[string]);
  }
}

/* The first rule of a set from `from` on, `count` for none. */
static uint32_t next_rule(const rule_set set, uint32_t from, uint32_t count) {
  while (from < count) {
    const uint64_t word = set[from / 64] >> from % 64;
    if (word != 0) return from + (uint32_t)__builtin_ctzll(word);
    from = (from / 64 + 1) * 64;
  }
  return count;
}

static void judge_masks(const struct names *names, const struct names_disk *disk, const struct path *path, struct names_answer *answer) {
  rule_set marked;
  memset(marked, 0, (names->mask_count + 63) / 64 * sizeof *marked);
  for (uint32_t i = 0; i < path->count; i++) mark_all(names, &names->mask_index, part_of(path, i), marked, NULL);
  for (uint32_t m = next_rule(marked, 0, names->mask_count); m < names->mask_count; m = next_rule(marked, m + 1, names->mask_count)) {
    const uint32_t parts = masked_parts(names, &names->masks[m], disk, path);
    if (parts == 0) continue;
    answer->mask = m;
    answer->mask_parts = parts;
    return;
  }
}

/* The deepest match decides in each voice, the stricter treatment among equally deep ones; then the strictest voice, the first among equally strict ones. */
static void judge_leaves(const struct names *names, const struct names_disk *disk, struct path *path, struct names_answer *answer) {
  rule_set marked, inner;
  memset(marked, 0, (names->leaf_count + 63) / 64 * sizeof *marked);
  memset(inner, 0, (names->leaf_count + 63) / 64 * sizeof *inner);
  for (uint32_t i = 0; i < path->count; i++) mark_all(names, &names->leaf_index, folded_part(path, i), marked, i + 1 == path->count ? inner : NULL);
  struct voice {
    uint32_t leaf, depth, order;
  } voices[VOICES] = {{0}};
  uint32_t heard = 0;
  for (uint32_t l = next_rule(marked, 0, names->leaf_count); l < names->leaf_count; l = next_rule(marked, l + 1, names->leaf_count)) {
    const struct leaf *leaf = &names->leaves[l];
    const uint32_t depth = leaf_depth(names, leaf, disk, path);
    if (depth == 0) continue;
    struct voice *voice = &voices[leaf->voice];
    if (voice->depth == 0) voice->order = heard++;
    if (depth > voice->depth || (depth == voice->depth && leaf->treatment > names->leaves[voice->leaf].treatment)) {
      voice->leaf = l;
      voice->depth = depth;
    }
  }
  uint32_t order = 0;
  for (uint32_t v = 0; v < VOICES; v++) {
    const struct leaf *leaf = &names->leaves[voices[v].leaf];
    if (voices[v].depth == 0) continue;
    if (answer->leaf != NAMES_NONE && (leaf->treatment < answer->treatment || (leaf->treatment == answer->treatment && voices[v].order > order))) continue;
    *answer = (struct names_answer){answer->mask, answer->mask_parts, voices[v].leaf, voices[v].depth, leaf->treatment, leaf->mediator, false};
    order = voices[v].order;
  }
  answer->above = is_above(names, disk, path);
  for (uint32_t l = next_rule(inner, 0, names->leaf_count); l < names->leaf_count && !answer->above; l = next_rule(inner, l + 1, names->leaf_count))
    answer->above = leads_on(names, &names->leaves[l], disk, path);
}

static void judge(const struct names *names, const struct names_disk *disk, struct path *path, struct names_answer *answer) {
  *answer = (struct names_answer){NAMES_NONE, 0, NAMES_NONE, 0, NAMES_RECORD, NAMES_NO_MEDIATOR, false};
  judge_masks(names, disk, path, answer);
  judge_leaves(names, disk, path, answer);
}

static const struct names_answer NO_PATH = {NAMES_NONE, 0, NAMES_NONE, 0, NAMES_REFUSE, NAMES_NO_MEDIATOR, true};

void names_judge(const struct names *names, const struct names_disk *disk, const char *bytes, size_t length, struct names_answer *answer) {
  struct path path;
  if (!path_split(&path, bytes, length)) {
    *answer = NO_PATH;
    return;
  }
  judge(names, disk, &path, answer);
  if (path.too_long) *answer = NO_PATH;
}

void names_hold_below(struct names *names, uint32_t id, const char *path, size_t length) {
  uint32_t at = 0;
  while (at < names->held_count && names->held_ids[at] != id) at++;
  if (path == NULL && at < names->held_count) {
    names->held_count--;
    names->held[at] = names->held[names->held_count];
    names->held_ids[at] = names->held_ids[names->held_count];
  } else if (path != NULL && at < NAMES_HELD) {
    names->held[at] = (struct text){path, (uint32_t)length};
    names->held_ids[at] = id;
    if (at == names->held_count) names->held_count++;
  }
}

/* --- moving ----------------------------------------------------------------------------------------------------- */

/* What stands at the end of a path of a git directory's place: with what follows it may be called like one. */
static int git_place(struct path *path) {
  const uint32_t n = path->count;
  if (n >= 1 && text_is(folded_part(path, n - 1), ".git")) return 1;
  if (n < 2 || !text_is(folded_part(path, n - 2), ".git")) return 0;
  const struct text last = folded_part(path, n - 1);
  return text_is(last, "modules") || text_is(last, "worktrees") ? 2 : 0;
}

/* The states of a pattern behind a path, without that of a whole match: this goes no further. */
static uint32_t state_behind(const struct names *names, struct list pattern, const struct path *path, uint32_t base) {
  uint32_t reached = closure(names, pattern, 1);
  for (uint32_t i = base; i < path->count; i++) reached = step(names, pattern, reached, part_of(path, i));
  return reached & ~(1u << pattern.count);
}

static bool same_mask(const struct names *names, const struct mask *mask, const struct path *a, const struct path *b) {
  for (uint32_t u = 0; u < mask->under.count; u++) {
    const struct text under = text_of(names, mask->under.items[u]);
    if (!is_within(a->bytes, a->length, under)) continue;
    const uint32_t base = parts_in(a, under), other = parts_in(b, under);
    if (has_package_folder(names, mask->not_below, a, base, a->count) != has_package_folder(names, mask->not_below, b, other, b->count)) return false;
    if (state_behind(names, mask->pattern, a, base) != state_behind(names, mask->pattern, b, other)) return false;
    for (uint32_t e = 0; e < mask->excepts.count; e++) {
      const struct list except = names->lists[mask->excepts.items[e]];
      if (state_behind(names, except, a, base) != state_behind(names, except, b, other)) return false;
    }
  }
  return true;
}

/* Whether both lie among packages, or neither does. */
static bool same_packages(const struct names *names, const struct leaf *leaf, const struct path *a, const struct path *b) {
  for (uint32_t u = 0; u < unders_of(names, leaf); u++) {
    const struct text under = under_of(names, leaf, u);
    if (is_within(a->bytes, a->length, under) && has_package_folder(names, leaf->not_below, a, parts_in(a, under), a->count) !=
                                                     has_package_folder(names, leaf->not_below, b, parts_in(b, under), b->count))
      return false;
  }
  return true;
}

/* Whether as much of a leaf's pattern has matched at the end of one as of the other. */
static bool same_leaf(const struct names *names, const struct leaf *leaf, const struct names_disk *disk_a, struct path *a, const struct names_disk *disk_b, struct path *b) {
  for (uint32_t u = 0; u < unders_of(names, leaf); u++) {
    const struct text under = under_of(names, leaf, u);
    if (!is_within(a->bytes, a->length, under)) continue;
    const uint32_t base = parts_in(a, under), other = parts_in(b, under);
    for (uint32_t n = 1; n < leaf->pattern.count; n++) {
      const bool one = base + n <= a->count && matches_at(names, leaf, disk_a, a, base, a->count - n, n);
      const bool two = other + n <= b->count && matches_at(names, leaf, disk_b, b, other, b->count - n, n);
      if (one != two) return false;
    }
  }
  return true;
}

bool same_below(const struct names *names, const struct names_disk *disk_a, const char *a, size_t a_length, const struct names_disk *disk_b, const char *b,
                size_t b_length) {
  struct path from, to;
  if (!path_split(&from, a, a_length) || !path_split(&to, b, b_length)) return false;
  const struct text self = {from.bytes, (uint32_t)from.length}, other = {to.bytes, (uint32_t)to.length};
  for (uint32_t i = 0; i < names->places.count + names->held_count && !same_text(self, other); i++) {
    const struct text place = i < names->places.count ? text_of(names, names->places.items[i]) : names->held[i - names->places.count];
    if (is_within(place.bytes, place.length, self) || is_within(place.bytes, place.length, other)) return false;
    if (is_within(from.bytes, from.length, place) != is_within(to.bytes, to.length, place)) return false;
  }
  struct names_answer before, after;
  judge(names, disk_a, &from, &before);
  judge(names, disk_b, &to, &after);
  if (before.mask != after.mask || before.leaf != after.leaf) return false;
  if (git_place(&from) != git_place(&to) || holds_modules(disk_a, &from) != holds_modules(disk_b, &to) || lies_in_modules(disk_a, &from) != lies_in_modules(disk_b, &to)) return false;
  if (is_git_dir(disk_a, &from, from.count) != is_git_dir(disk_b, &to, to.count)) return false;
  for (uint32_t i = 0; i < names->mask_count; i++)
    if (!same_mask(names, &names->masks[i], &from, &to)) return false;
  for (uint32_t i = 0; i < names->leaf_count; i++) {
    const struct leaf *leaf = &names->leaves[i], *last = i == 0 ? NULL : leaf - 1;
    /* Most leaves hold in the same folders, and lists are there once each. */
    const bool is_known = last != NULL && last->under.items == leaf->under.items && last->not_below.items == leaf->not_below.items && (last->at == AT_FOLDER) == (leaf->at == AT_FOLDER);
    if (!is_known && !same_packages(names, leaf, &from, &to)) return false;
    if (leaf->pattern.count > 1 && !same_leaf(names, leaf, disk_a, &from, disk_b, &to)) return false;
  }
  return !from.too_long && !to.too_long;
}

static bool same_parent(const struct path *a, const struct path *b) {
  const size_t one = raw_length(a, a->count - 1), other = raw_length(b, b->count - 1);
  return one == other && memcmp(a->raw, b->raw, one) == 0;
}

bool leaves_git(const char *a, size_t a_length, const char *b, size_t b_length) {
  struct path from, to;
  if (!path_split(&from, a, a_length) || !path_split(&to, b, b_length)) return true;
  if (lies_in_modules(NULL, &from) && to.count > 0 && same_parent(&from, &to)) return from.too_long;
  return has_git_part(&from, from.count) || from.too_long;
}

bool names_completes_git_dir(const char *name, size_t length) {
  /* Where a file system takes another spelling for it, that is refused rather than missed. */
  char folded[NAMES_PATH_MAX];
  if (!utf8_is_well_formed(name, length)) return false;
  const size_t size = fold_name(name, length, folded, sizeof folded);
  return size == SIZE_MAX || (size == 4 && memcmp(folded, "head", 4) == 0);
}
