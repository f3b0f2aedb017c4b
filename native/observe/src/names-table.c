#include "names-table.h"

#include <stdlib.h>

/* A table, all numbers of four bytes, little-endian: NAMES_MAGIC, NAMES_VERSION, the size of the whole; then a count and so many of each:
 *   strings: length, bytes
 *   lists:   count, so many numbers
 *   masks:   under, pattern (lists of strings), excepts (list of lists), folders below which it does not hold, paths let out (lists of strings), 1 where files that git holds are let out
 *   leaves:  at, under, pattern, folders below which it does not hold, paths let out (lists of strings), 1 where it holds below, treatment, mediator, voice
 * Components of leaves' patterns are folded. */

#define NO_MEMORY "there is no memory for it"
#define RULES_MAX 8192u /* 64 * WORDS_MAX of names.c */
#define STRING_MAX 65536u /* a component of a pattern may grow when it is folded */
#define MASK_FIELDS 6u
#define LEAF_FIELDS 9u

struct reader {
  const unsigned char *bytes;
  size_t at, length;
  const char *wrong;
};

static uint32_t number(struct reader *reader) {
  if (reader->length - reader->at < 4) {
    reader->wrong = "it is cut short";
    return 0;
  }
  const unsigned char *at = reader->bytes + reader->at;
  reader->at += 4;
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* A count of things that take at least `least` bytes each. */
static uint32_t count_of(struct reader *reader, size_t least, uint32_t most) {
  const uint32_t count = number(reader);
  if (count > most || (reader->length - reader->at) / least < count) {
    if (reader->wrong == NULL) reader->wrong = "it has more than its bytes can hold";
    return 0;
  }
  return count;
}

static const char *read_strings(struct reader *reader, struct names *names) {
  names->string_count = count_of(reader, 4, UINT32_MAX);
  names->strings = calloc(names->string_count + 1u, sizeof *names->strings);
  if (names->strings == NULL) return NO_MEMORY;
  for (uint32_t i = 0; i < names->string_count && reader->wrong == NULL; i++) {
    const uint32_t length = number(reader);
    if (length > STRING_MAX || length > reader->length - reader->at) return "a string is too long or cut short";
    names->strings[i] = (struct text){names->bytes + reader->at, length};
    if (length > 0 && memchr(names->strings[i].bytes, '\0', length) != NULL) return "a string has a NUL in it";
    reader->at += length;
  }
  return reader->wrong;
}

static const char *read_lists(struct reader *reader, struct names *names, uint32_t *numbers) {
  names->list_count = count_of(reader, 4, UINT32_MAX);
  names->lists = calloc(names->list_count + 1u, sizeof *names->lists);
  if (names->lists == NULL) return NO_MEMORY;
  for (uint32_t i = 0; i < names->list_count && reader->wrong == NULL; i++) {
    const uint32_t count = count_of(reader, 4, UINT32_MAX);
    names->lists[i] = (struct list){numbers, count};
    for (uint32_t n = 0; n < count; n++) *numbers++ = number(reader);
  }
  return reader->wrong;
}

enum what { A_FOLDER, A_COMPONENT, A_LIST };

/* An absolute path without empty, "." and ".." parts, or a component: what a character is folded to may have a slash in it. */
static bool is_plain(struct text text, enum what what) {
  struct path path;
  return utf8_is_well_formed(text.bytes, text.length) && (what != A_FOLDER || path_split(&path, text.bytes, text.length));
}

static bool take_list(struct reader *reader, const struct names *names, enum what what, struct list *list) {
  const uint32_t index = number(reader);
  if (index >= names->list_count) return false;
  *list = names->lists[index];
  for (uint32_t i = 0; i < list->count; i++) {
    if (list->items[i] >= (what == A_LIST ? names->list_count : names->string_count)) return false;
    if (what != A_LIST && !is_plain(text_of(names, list->items[i]), what)) return false;
  }
  return true;
}

static bool is_pattern(struct list pattern) { return pattern.count > 0 && pattern.count <= PATTERN_MAX; }

static bool take_mask(struct reader *reader, const struct names *names, struct mask *mask) {
  if (!take_list(reader, names, A_FOLDER, &mask->under) || !take_list(reader, names, A_COMPONENT, &mask->pattern) || !is_pattern(mask->pattern) ||
      !take_list(reader, names, A_LIST, &mask->excepts) || mask->excepts.count > EXCEPTS_MAX || !take_list(reader, names, A_COMPONENT, &mask->not_below) ||
      !take_list(reader, names, A_FOLDER, &mask->except_paths))
    return false;
  for (uint32_t e = 0; e < mask->excepts.count; e++) {
    const struct list except = names->lists[mask->excepts.items[e]];
    if (!is_pattern(except)) return false;
    for (uint32_t i = 0; i < except.count; i++)
      if (except.items[i] >= names->string_count) return false;
  }
  const uint32_t held = number(reader);
  mask->except_held = held == 1;
  return held <= 1;
}

static bool take_leaf(struct reader *reader, const struct names *names, struct leaf *leaf) {
  const uint32_t at = number(reader);
  if (at > AT_FOLDER || !take_list(reader, names, A_FOLDER, &leaf->under) || !take_list(reader, names, A_COMPONENT, &leaf->pattern) || !is_pattern(leaf->pattern) ||
      !take_list(reader, names, A_COMPONENT, &leaf->not_below) || !take_list(reader, names, A_FOLDER, &leaf->except_paths))
    return false;
  const uint32_t below = number(reader), treatment = number(reader), mediator = number(reader);
  leaf->at = (enum leaf_at)at;
  leaf->below = below == 1;
  leaf->treatment = (enum names_treatment)treatment;
  leaf->mediator = (enum names_mediator)mediator;
  leaf->voice = number(reader);
  return below <= 1 && treatment <= NAMES_REFUSE && mediator <= NAMES_CLAUDE_STATE && (treatment == NAMES_MEDIATE) == (mediator != NAMES_NO_MEDIATOR) && leaf->voice < VOICES;
}

/* --- indexes ---------------------------------------------------------------------------------------------------- */

/* Adds one number to the list of each string that `pattern` has between `from` and `to`; the first time round only counts. */
static uint32_t *file(struct list *lists, struct list pattern, uint32_t from, uint32_t to, uint32_t rule, uint32_t *numbers) {
  for (uint32_t i = from; i < to; i++) {
    struct list *list = &lists[pattern.items[i]];
    if (numbers != NULL) ((uint32_t *)(uintptr_t)list->items)[list->count] = rule;
    list->count++;
  }
  return numbers;
}

/* Makes room in `numbers` for what has been counted, and counts anew. */
static uint32_t *lay_out(struct list *lists, uint32_t count, uint32_t *numbers) {
  for (uint32_t i = 0; i < count; i++) {
    lists[i].items = numbers;
    numbers += lists[i].count;
    lists[i].count = 0;
  }
  return numbers;
}

static struct list pattern_of(const struct names *names, bool leaves, uint32_t rule) { return leaves ? names->leaves[rule].pattern : names->masks[rule].pattern; }

/* Files the rules by the components of their patterns. */
static const char *make_index(const struct names *names, bool leaves, struct index *index) {
  const uint32_t rules = leaves ? names->leaf_count : names->mask_count;
  uint32_t slots = 16;
  while (slots < 2 * names->string_count) slots *= 2;
  index->slots = calloc(slots, sizeof *index->slots);
  index->last = calloc(names->string_count + 1u, sizeof *index->last);
  index->inner = calloc(names->string_count + 1u, sizeof *index->inner);
  uint32_t *numbers = index->numbers = calloc((size_t)rules * PATTERN_MAX + names->string_count + 1u, sizeof *numbers);
  if (index->slots == NULL || index->last == NULL || index->inner == NULL || numbers == NULL) return NO_MEMORY;
  index->slot_mask = slots - 1;
  for (int round = 0; round < 2; round++) {
    for (uint32_t r = 0; r < rules; r++) {
      const struct list pattern = pattern_of(names, leaves, r);
      file(index->last, pattern, pattern.count - 1, pattern.count, r, round == 0 ? NULL : numbers);
      if (leaves) file(index->inner, pattern, 0, pattern.count - 1, r, round == 0 ? NULL : numbers);
    }
    if (round == 0) {
      numbers = lay_out(index->last, names->string_count, numbers);
      numbers = lay_out(index->inner, names->string_count, numbers);
    }
  }
  index->wild = numbers;
  for (uint32_t i = 0; i < names->string_count; i++) {
    if (index->last[i].count + index->inner[i].count == 0) continue;
    const struct text text = text_of(names, i);
    if (memchr(text.bytes, '*', text.length) != NULL) {
      index->wild[index->wild_count++] = i;
      continue;
    }
    uint32_t slot = hash_text(text) & index->slot_mask;
    for (; index->slots[slot] != 0; slot = (slot + 1) & index->slot_mask)
      if (same_text(text_of(names, index->slots[slot] - 1), text)) return "a string is there twice";
    index->slots[slot] = i + 1;
  }
  return NULL;
}

static void add_all(struct list *to, uint32_t *items, bool *known, struct list list) {
  for (uint32_t i = 0; i < list.count; i++) {
    if (known[list.items[i]]) continue;
    known[list.items[i]] = true;
    items[to->count++] = list.items[i];
  }
}

/* Every folder and path that rules name, and those folders in which a leaf holds at that very place. */
static const char *find_places(struct names *names) {
  bool *const known = calloc(2 * (size_t)names->string_count + 2, sizeof *known), *const guarded = known + names->string_count + 1;
  uint32_t *const numbers = names->place_numbers = calloc(2 * (size_t)names->string_count + 2, sizeof *numbers);
  uint32_t *const others = numbers + names->string_count;
  if (known == NULL || numbers == NULL) {
    free(known);
    return NO_MEMORY;
  }
  names->places.items = numbers;
  names->guarded.items = others;
  for (uint32_t m = 0; m < names->mask_count; m++) {
    add_all(&names->places, numbers, known, names->masks[m].under);
    add_all(&names->places, numbers, known, names->masks[m].except_paths);
  }
  for (uint32_t l = 0; l < names->leaf_count; l++) {
    const struct leaf *leaf = &names->leaves[l];
    add_all(&names->places, numbers, known, leaf->under);
    add_all(&names->places, numbers, known, leaf->except_paths);
    if (leaf->at == AT_FOLDER && leaf->treatment != NAMES_RECORD) add_all(&names->guarded, others, guarded, leaf->under);
  }
  free(known);
  return NULL;
}

static const char *read_rules(struct reader *reader, struct names *names) {
  names->mask_count = count_of(reader, MASK_FIELDS * 4, RULES_MAX);
  names->masks = calloc(names->mask_count + 1u, sizeof *names->masks);
  if (names->masks == NULL) return NO_MEMORY;
  for (uint32_t i = 0; i < names->mask_count; i++)
    if (!take_mask(reader, names, &names->masks[i]) || reader->wrong != NULL) return "a mask is none";
  names->leaf_count = count_of(reader, LEAF_FIELDS * 4, RULES_MAX);
  names->leaves = calloc(names->leaf_count + 1u, sizeof *names->leaves);
  if (names->leaves == NULL) return NO_MEMORY;
  for (uint32_t i = 0; i < names->leaf_count; i++)
    if (!take_leaf(reader, names, &names->leaves[i]) || reader->wrong != NULL) return "a protected name is none";
  return reader->wrong;
}

static const char *parse(const unsigned char *bytes, size_t length, struct names *names) {
  struct reader reader = {bytes, 8, length, NULL};
  if (length < NAMES_HEADER || length > NAMES_MAX || memcmp(bytes, NAMES_MAGIC, 8) != 0 || number(&reader) != NAMES_VERSION || number(&reader) != length)
    return "it is no table of this version, or has another length than it says";
  names->bytes = malloc(length);
  /* No list is longer than the bytes. */
  names->numbers = calloc(length / 4, sizeof *names->numbers);
  if (names->bytes == NULL || names->numbers == NULL) return NO_MEMORY;
  memcpy(names->bytes, bytes, length);
  const char *wrong = read_strings(&reader, names);
  if (wrong == NULL) wrong = read_lists(&reader, names, names->numbers);
  if (wrong == NULL) wrong = read_rules(&reader, names);
  if (wrong == NULL && reader.at != length) wrong = "it goes on after its end";
  if (wrong == NULL) wrong = make_index(names, false, &names->mask_index);
  if (wrong == NULL) wrong = make_index(names, true, &names->leaf_index);
  return wrong == NULL ? find_places(names) : wrong;
}

const char *names_parse(const unsigned char *bytes, size_t length, struct names **names) {
  *names = calloc(1, sizeof **names);
  if (*names == NULL) return NO_MEMORY;
  const char *wrong = parse(bytes, length, *names);
  if (wrong == NULL) return NULL;
  names_free(*names);
  *names = NULL;
  return wrong;
}

void names_free(struct names *names) {
  if (names == NULL) return;
  for (int i = 0; i < 2; i++) {
    struct index *index = i == 0 ? &names->mask_index : &names->leaf_index;
    free(index->slots);
    free(index->last);
    free(index->inner);
    free(index->numbers);
  }
  free(names->strings);
  free(names->lists);
  free(names->masks);
  free(names->leaves);
  free(names->numbers);
  free(names->place_numbers);
  free(names->bytes);
  free(names);
}
