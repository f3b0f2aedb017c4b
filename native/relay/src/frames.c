/* What the front says, as bytes: length u32 (of what follows), kind u32, id u32, body; little-endian. */
#include "relay.h"

#include <string.h>

#define ADDRESS_SIZE ((size_t)18)
#define DIAL_HEAD ((size_t)12)
enum { DIAL_HELLO = 1, DIAL_ESTABLISHED = 2, DIAL_FLAGS = 3 };

void put32(unsigned char *to, uint32_t value) {
  for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (8 * i));
}

void put64(unsigned char *to, uint64_t value) {
  put32(to, (uint32_t)value);
  put32(to + 4, (uint32_t)(value >> 32));
}

uint32_t get32(const unsigned char *from) { return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24; }

ssize_t frame_parse(const unsigned char *bytes, size_t length, struct frame *frame) {
  if (length < 4) return 0;
  const size_t size = get32(bytes);
  if (size < FRAME_HEAD - 4 || size > FRAME_MAX - 4) return -1;
  if (length < 4 + size) return 0;
  *frame = (struct frame){.kind = get32(bytes + 4), .id = get32(bytes + 8), .body = bytes + FRAME_HEAD, .length = size + 4 - FRAME_HEAD};
  return (ssize_t)(4 + size);
}

bool number_parse(const struct frame *frame, uint32_t *number) {
  if (frame->length != 4) return false;
  *number = get32(frame->body);
  return true;
}

bool dial_parse(const struct frame *frame, struct dial *dial) {
  if (frame->length < DIAL_HEAD) return false;
  const uint32_t flags = get32(frame->body), head = get32(frame->body + 4), name = get32(frame->body + 8);
  if (name > NAME_MAX_LENGTH || frame->length - DIAL_HEAD < name || (frame->length - DIAL_HEAD - name) % ADDRESS_SIZE != 0) return false;
  const size_t count = (frame->length - DIAL_HEAD - name) / ADDRESS_SIZE;
  if ((flags & ~(uint32_t)DIAL_FLAGS) != 0 || head > FIRST_MAX || count == 0 || count > ADDRESSES_MAX) return false;
  *dial = (struct dial){.hello = (flags & DIAL_HELLO) != 0, .established = (flags & DIAL_ESTABLISHED) != 0, .head = head, .name_length = name, .count = count};
  memcpy(dial->name, frame->body + DIAL_HEAD, name);
  for (size_t i = 0; i < count; i++) {
    const unsigned char *at = frame->body + DIAL_HEAD + name + i * ADDRESS_SIZE;
    memcpy(dial->addresses[i].bytes, at, 16);
    dial->addresses[i].port = (uint16_t)(at[16] | at[17] << 8);
    if (dial->addresses[i].port == 0) return false;
  }
  return true;
}
