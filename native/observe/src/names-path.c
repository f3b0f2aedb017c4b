#define _GNU_SOURCE
#include "names-table.h"

/* --- paths ------------------------------------------------------------------------------------------------------ */

static bool split(const char *bytes, size_t length, uint32_t *end, uint32_t *count) {
  *count = 0;
  if (length == 0 || bytes[0] != '/') return false;
  if (length == 1) return true;
  for (size_t at = 1; at <= length; at++) {
    const char *slash = memchr(bytes + at, '/', length - at);
    const size_t stop = slash == NULL ? length : (size_t)(slash - bytes), size = stop - at;
    if (size == 0 || *count == PARTS_MAX) return false;
    if (bytes[at] == '.' && (size == 1 || (size == 2 && bytes[at + 1] == '.'))) return false;
    end[(*count)++] = (uint32_t)stop;
    at = stop;
  }
  return true;
}

bool path_split(struct path *path, const char *bytes, size_t length) {
  path->folded_count = 0;
  path->arena = path->folds;
  path->arena_left = sizeof path->folds;
  path->too_long = false;
  path->raw = path->bytes = bytes;
  path->length = length;
  if (length == 0 || length > NAMES_PATH_MAX || memchr(bytes, '\0', length) != NULL || !split(bytes, length, path->raw_end, &path->count)) return false;
  if (utf8_is_well_formed(bytes, length)) {
    memcpy(path->end, path->raw_end, path->count * sizeof *path->end);
    return true;
  }
  path->length = utf8_mend(bytes, length, path->own);
  path->bytes = path->own;
  return split(path->bytes, path->length, path->end, &path->count);
}

struct text folded_part(struct path *path, uint32_t i) {
  for (; path->folded_count <= i; path->folded_count++) {
    const struct text part = part_of(path, path->folded_count);
    const size_t length = fold_name(part.bytes, part.length, path->arena, path->arena_left);
    path->too_long = path->too_long || length == SIZE_MAX;
    path->folded[path->folded_count] = (struct text){path->arena, length == SIZE_MAX ? 0 : (uint32_t)length};
    if (length == SIZE_MAX) continue;
    path->arena += length;
    path->arena_left -= length;
  }
  return path->folded[i];
}

uint32_t parts_in(const struct path *path, struct text folder) {
  uint32_t count = 0;
  if (folder.length == 1) return 0;
  while (count < path->count && path->end[count] < folder.length) count++;
  return count + 1;
}

bool text_is(struct text text, const char *word) { return text.length == strlen(word) && memcmp(text.bytes, word, text.length) == 0; }

/* --- comparing -------------------------------------------------------------------------------------------------- */

static const char *find(const char *from, const char *end, struct text text) {
  return text.length == 0 ? from : (size_t)(end - from) < text.length ? NULL : memmem(from, (size_t)(end - from), text.bytes, text.length);
}

bool part_matches(struct text pattern, struct text name) {
  const char *star = memchr(pattern.bytes, '*', pattern.length);
  if (star == NULL) return same_text(pattern, name);
  const char *const end = pattern.bytes + pattern.length;
  const char *last = memrchr(pattern.bytes, '*', pattern.length);
  const struct text head = {pattern.bytes, (uint32_t)(star - pattern.bytes)}, tail = {last + 1, (uint32_t)(end - last - 1)};
  if (name.length < head.length + tail.length || memcmp(name.bytes, head.bytes, head.length) != 0 ||
      memcmp(name.bytes + name.length - tail.length, tail.bytes, tail.length) != 0)
    return false;
  const char *at = name.bytes + head.length, *const stop = name.bytes + name.length - tail.length;
  /* Each text between stars is taken where it first stands: a later place would leave less for what follows. */
  while (star < last) {
    const char *next = memchr(star + 1, '*', (size_t)(end - star - 1));
    const struct text text = {star + 1, (uint32_t)(next - star - 1)};
    at = find(at, stop, text);
    if (at == NULL) return false;
    at += text.length;
    star = next;
  }
  return true;
}

/* `**` may match nothing. */
uint32_t closure(const struct names *names, struct list pattern, uint32_t reached) {
  for (uint32_t i = 0; i < pattern.count; i++)
    if ((reached >> i & 1) != 0 && text_is(text_of(names, pattern.items[i]), "**")) reached |= 2u << i;
  return reached;
}

uint32_t step(const struct names *names, struct list pattern, uint32_t reached, struct text name) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < pattern.count; i++) {
    if ((reached >> i & 1) == 0) continue;
    const struct text part = text_of(names, pattern.items[i]);
    if (text_is(part, "**")) next |= 1u << i;
    else if (part_matches(part, name)) next |= 2u << i;
  }
  return closure(names, pattern, next);
}

bool is_final(struct list pattern, uint32_t reached) { return (reached >> pattern.count & 1) != 0; }

bool is_excepted(const struct names *names, struct list paths, const struct path *path, uint32_t parts) {
  const struct text match = {path->bytes, parts == 0 ? 1 : path->end[parts - 1]};
  for (uint32_t i = 0; i < paths.count; i++) {
    const struct text other = text_of(names, paths.items[i]);
    if (is_within(path->bytes, path->length, other) && is_within(other.bytes, other.length, match)) return true;
  }
  return false;
}
