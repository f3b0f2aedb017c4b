/* Whether what a tunnel begins with is plainly a hello of TLS for its host. Touches nothing but memory. Whatever is not plain the front reads itself: this says yes less often than it. */
#include "relay.h"

#include <string.h>

/* Of more extensions the front is asked. */
#define EXTENSIONS_MAX ((size_t)64)
enum { HANDSHAKE = 22, CLIENT_HELLO = 1, SERVER_NAME = 0, HOST_NAME = 0 };
#define VERSION_AND_RANDOM ((size_t)34)

struct part {
  const unsigned char *at;
  size_t length;
};

static bool skip(struct part *of, size_t length) {
  if (of->length < length) return false;
  of->at += length;
  of->length -= length;
  return true;
}

static bool number(struct part *of, size_t bytes, size_t *value) {
  if (of->length < bytes) return false;
  *value = 0;
  for (size_t i = 0; i < bytes; i++) *value = *value << 8 | of->at[i];
  return skip(of, bytes);
}

/* What stands next, behind its length in so many bytes. */
static bool part(struct part *of, size_t bytes, struct part *next) {
  size_t length;
  if (!number(of, bytes, &length)) return false;
  *next = (struct part){.at = of->at, .length = length};
  return skip(of, length);
}

/* One name and no other. */
static bool is_name(struct part extension, const char *name, size_t length) {
  struct part list, said;
  size_t type;
  return part(&extension, 2, &list) && extension.length == 0 && number(&list, 1, &type) && type == HOST_NAME && part(&list, 2, &said) && list.length == 0 && said.length == length &&
         memcmp(said.at, name, length) == 0;
}

static bool is_named(struct part extensions, const char *name, size_t length) {
  size_t seen[EXTENSIONS_MAX], count = 0;
  bool is_found = false;
  while (extensions.length > 0) {
    size_t type;
    struct part body;
    if (count == EXTENSIONS_MAX || !number(&extensions, 2, &type) || !part(&extensions, 2, &body)) return false;
    for (size_t i = 0; i < count; i++)
      if (seen[i] == type) return false;
    seen[count++] = type;
    if (type != SERVER_NAME) continue;
    if (!is_name(body, name, length)) return false;
    is_found = true;
  }
  return is_found;
}

/* RFC 8446 section 4.1.2 and RFC 6066 section 3; whole in the first record, and alone in it. */
bool hello_is_for(const unsigned char *bytes, size_t length, const char *name, size_t name_length) {
  struct part all = {.at = bytes, .length = length}, record, hello, session, ciphers, compression, extensions;
  size_t type;
  if (name_length == 0 || length < 2 || bytes[0] != HANDSHAKE || bytes[1] != 3) return false;
  if (!skip(&all, 3) || !part(&all, 2, &record) || record.length > FIRST_MAX - 5) return false;
  if (!number(&record, 1, &type) || type != CLIENT_HELLO || !part(&record, 3, &hello) || record.length != 0) return false;
  if (!skip(&hello, VERSION_AND_RANDOM) || !part(&hello, 1, &session) || !part(&hello, 2, &ciphers) || !part(&hello, 1, &compression) || !part(&hello, 2, &extensions)) return false;
  return hello.length == 0 && ciphers.length >= 2 && ciphers.length % 2 == 0 && compression.length >= 1 && is_named(extensions, name, name_length);
}
