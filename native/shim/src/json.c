#include "shim.h"

#include <string.h>

enum { BEFORE, INSIDE, STRING, ESCAPE, TOP_STRING, TOP_ESCAPE, WORD, DONE };

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

size_t json_end_feed(struct json_end *scan, const char *bytes, size_t length) {
  for (size_t i = 0; i < length; i++) {
    const char c = bytes[i];
    switch (scan->state) {
      case BEFORE:
        if (blank(c)) break;
        if (c == '{' || c == '[') {
          scan->state = INSIDE;
          scan->depth = 1;
        } else {
          scan->state = c == '"' ? TOP_STRING : WORD;
        }
        break;
      case INSIDE:
        if (c == '"') scan->state = STRING;
        else if (c == '{' || c == '[') scan->depth++;
        else if ((c == '}' || c == ']') && --scan->depth == 0) {
          scan->state = DONE;
          return i + 1;
        }
        break;
      case STRING: {
        /* Most of a large payload is inside strings. */
        while (i < length && bytes[i] != '"' && bytes[i] != '\\') i++;
        if (i < length) scan->state = bytes[i] == '"' ? INSIDE : ESCAPE;
        break;
      }
      case ESCAPE:
        scan->state = STRING;
        break;
      case TOP_STRING:
        if (c == '\\') scan->state = TOP_ESCAPE;
        else if (c == '"') {
          scan->state = DONE;
          return i + 1;
        }
        break;
      case TOP_ESCAPE:
        scan->state = TOP_STRING;
        break;
      case WORD:
        if (blank(c)) {
          scan->state = DONE;
          return i + 1;
        }
        break;
      default:
        return 0;
    }
  }
  return 0;
}

/* The offset past the string that begins at `at` (a quote), or `length` where it does not end. */
static size_t string_end(const char *bytes, size_t length, size_t at) {
  for (at++; at < length; at++) {
    if (bytes[at] == '\\') at++;
    else if (bytes[at] == '"') return at + 1;
  }
  return length;
}

bool json_top_string(const char *bytes, size_t length, const char *key, char *out, size_t size) {
  const size_t key_length = strlen(key);
  size_t depth = 0;
  out[0] = '\0';
  for (size_t i = 0; i < length;) {
    const char c = bytes[i];
    if (c != '"') {
      if (c == '{' || c == '[') depth++;
      else if (c == '}' || c == ']') {
        if (depth <= 1) return false;
        depth--;
      }
      i++;
      continue;
    }
    const size_t end = string_end(bytes, length, i);
    const bool wanted = depth == 1 && end - i == key_length + 2 && memcmp(bytes + i + 1, key, key_length) == 0;
    i = end;
    if (!wanted) continue;
    while (i < length && blank(bytes[i])) i++;
    if (i >= length || bytes[i] != ':') continue; /* a value that reads like the key */
    for (i++; i < length && blank(bytes[i]); i++) continue;
    if (i >= length || bytes[i] != '"') return false;
    const size_t stop = string_end(bytes, length, i);
    const size_t said = stop - i < 2 ? 0 : stop - i - 2;
    if (said == 0 || said >= size || bytes[stop - 1] != '"' || memchr(bytes + i + 1, '\\', said) != NULL) return false;
    memcpy(out, bytes + i + 1, said);
    out[said] = '\0';
    return strlen(out) == said;
  }
  return false;
}
