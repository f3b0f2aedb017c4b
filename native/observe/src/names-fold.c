#include "names-table.h"

struct fold_entry {
  uint16_t at, count;
};
#include "fold-table.h"

#define HANGUL_FIRST 0xac00u
#define HANGUL_LAST 0xd7a3u
#define YPOGEGRAMMENI 0x345u
#define IOTA 0x3b9u
/* More characters than any name of a file system folds to; what is longer is no name. */
#define CODES_MAX 8192u

/* How many bytes of `bytes` are one character in UTF-8; 0 where it is none, and then `*bad` are to be replaced together. */
static size_t sequence(const unsigned char *bytes, size_t left, size_t *bad) {
  const unsigned char first = bytes[0];
  *bad = 1;
  if (first < 0x80) return 1;
  const size_t length = first >= 0xc2 && first <= 0xdf ? 2 : first >= 0xe0 && first <= 0xef ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 0;
  if (length == 0) return 0;
  for (size_t i = 1; i < length; i++) {
    const unsigned char low = i > 1 ? 0x80 : first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = i > 1 ? 0xbf : first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (i >= left || bytes[i] < low || bytes[i] > high) return 0;
    *bad = i + 1;
  }
  return length;
}

bool utf8_is_well_formed(const char *bytes, size_t length) {
  size_t bad;
  for (size_t at = 0; at < length;) {
    const size_t n = sequence((const unsigned char *)bytes + at, length - at, &bad);
    if (n == 0) return false;
    at += n;
  }
  return true;
}

size_t utf8_mend(const char *bytes, size_t length, char *to) {
  size_t written = 0;
  for (size_t at = 0; at < length;) {
    size_t bad;
    const size_t n = sequence((const unsigned char *)bytes + at, length - at, &bad);
    if (n == 0) memcpy(to + written, "\xef\xbf\xbd", 3);
    else memcpy(to + written, bytes + at, n);
    written += n == 0 ? 3 : n;
    at += n == 0 ? bad : n;
  }
  return written;
}

static uint32_t decode(const unsigned char *bytes, size_t length) {
  if (length == 1) return bytes[0];
  uint32_t code = bytes[0] & (0x7fu >> length);
  for (size_t i = 1; i < length; i++) code = code << 6 | (bytes[i] & 0x3fu);
  return code;
}

static size_t encode(uint32_t code, char *to) {
  unsigned char *out = (unsigned char *)to;
  if (code < 0x80) {
    out[0] = (unsigned char)code;
    return 1;
  }
  const size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; i--, code >>= 6) out[i] = (unsigned char)(0x80 | (code & 0x3f));
  out[0] = (unsigned char)((length == 2 ? 0xc0u : length == 3 ? 0xe0u : 0xf0u) | code);
  return length;
}

static uint8_t rank_of(uint32_t code) { return rank_values[rank_index[code / FOLD_PAGE] * FOLD_PAGE + code % FOLD_PAGE]; }

struct codes {
  uint32_t all[CODES_MAX];
  uint32_t count;
};

/* Adds a character; a mark goes before those of a higher class. */
static bool add(struct codes *codes, uint32_t code) {
  if (codes->count == CODES_MAX) return false;
  const uint8_t rank = rank_of(code);
  uint32_t at = codes->count++;
  if (rank != 0)
    for (; at > 0 && rank_of(codes->all[at - 1]) > rank; at--) codes->all[at] = codes->all[at - 1];
  codes->all[at] = code;
  return true;
}

static bool add_folded(struct codes *codes, uint32_t code) {
  if (code >= HANGUL_FIRST && code <= HANGUL_LAST) {
    const uint32_t syllable = code - HANGUL_FIRST, tail = syllable % 28;
    return add(codes, 0x1100 + syllable / 588) && add(codes, 0x1161 + syllable % 588 / 28) && (tail == 0 || add(codes, 0x11a7 + tail));
  }
  const uint16_t value = fold_values[fold_index[code / FOLD_PAGE] * FOLD_PAGE + code % FOLD_PAGE];
  if (value == 0) return add(codes, code);
  const struct fold_entry *entry = &fold_entries[value];
  for (uint16_t i = 0; i < entry->count; i++)
    if (!add(codes, fold_pool[entry->at + i])) return false;
  return true;
}

/* Without the stream of NTFS and without blanks and dots at the end; a name of nothing else stays as it is. */
static size_t without_tail(const char *name, size_t length) {
  const char *colon = length > 1 ? memchr(name + 1, ':', length - 1) : NULL;
  if (colon != NULL) length = (size_t)(colon - name);
  size_t end = length;
  while (end > 0 && (name[end - 1] == ' ' || name[end - 1] == '.')) end--;
  return end == 0 ? length : end;
}

static size_t fold_unicode(const char *name, size_t length, char *to, size_t room) {
  struct codes codes;
  codes.count = 0;
  for (size_t at = 0; at < length;) {
    size_t bad;
    const size_t n = sequence((const unsigned char *)name + at, length - at, &bad);
    if (n == 0 || !add_folded(&codes, decode((const unsigned char *)name + at, n))) return SIZE_MAX;
    at += n;
  }
  size_t written = 0;
  for (uint32_t i = 0; i < codes.count; i++) {
    if (room - written < 4) return SIZE_MAX;
    written += encode(codes.all[i] == YPOGEGRAMMENI ? IOTA : codes.all[i], to + written);
  }
  return without_tail(to, written);
}

size_t fold_name(const char *name, size_t length, char *to, size_t room) {
  if (length > room) return SIZE_MAX;
  for (size_t i = 0; i < length; i++) {
    const char c = name[i];
    if ((unsigned char)c >= 0x80) return fold_unicode(name, length, to, room);
    to[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
  }
  return without_tail(to, length);
}
