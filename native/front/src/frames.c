#define _GNU_SOURCE
#include "front.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "shim.h"

static uint32_t get32(const unsigned char *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24; }

static void put32(unsigned char *at, size_t value) {
  for (int i = 0; i < 4; i++) at[i] = (unsigned char)(value >> (8 * i));
}

ssize_t frame_parse(const unsigned char *bytes, size_t length, struct frame *frame) {
  if (length < 4) return 0;
  const size_t size = get32(bytes);
  if (size < 4 || size > FRAME_MAX) return -1;
  if (length < 4 + size) return 0;
  *frame = (struct frame){.kind = get32(bytes + 4), .body = bytes + 8, .length = size - 4};
  return (ssize_t)(4 + size);
}

bool launch_parse(const struct frame *frame, struct launch_order *order) {
  if (frame->length < 6) return false;
  const unsigned char *path = frame->body + 4;
  const size_t length = frame->length - 4;
  order->attempt = get32(frame->body);
  order->path = (const char *)path;
  return order->attempt < ATTEMPTS_MAX && path[0] == '/' && memchr(path, '\0', length) == path + length - 1;
}

bool end_parse(const struct frame *frame, struct end_order *order) {
  if (frame->length != 8) return false;
  const uint32_t by_signal = get32(frame->body), value = get32(frame->body + 4);
  if (by_signal > 1 || (by_signal == 1 ? value < 1 || value >= NSIG : value > 255)) return false;
  *order = (struct end_order){.by_signal = by_signal == 1, .value = (int)value};
  return true;
}

bool signal_parse(const struct frame *frame, int *number) {
  if (frame->length != 4) return false;
  const uint32_t value = get32(frame->body);
  if (value < 1 || value >= NSIG) return false;
  *number = (int)value;
  return true;
}

static unsigned char *put_text(unsigned char *at, const char *text) {
  const size_t length = strlen(text) + 1;
  memcpy(at, text, length);
  return at + length;
}

unsigned char *request_make(int argc, char **argv, char **environment, const char *cwd, uint32_t umask, uint32_t terminals, size_t *length) {
  size_t size = 28 + strlen(cwd) + 1, variables = 0;
  for (int i = 0; i < argc; i++) size += strlen(argv[i]) + 1;
  for (char **one = environment; *one != NULL; one++, variables++) size += strlen(*one) + 1;
  if (size - 4 > FRAME_MAX) return NULL;
  unsigned char *bytes = malloc(size);
  if (bytes == NULL) return NULL;
  const size_t numbers[] = {size - 4, TO_REQUEST, PROTOCOL, terminals, umask, (size_t)argc, variables};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) put32(bytes + 4 * i, numbers[i]);
  unsigned char *at = put_text(bytes + 28, cwd);
  for (int i = 0; i < argc; i++) at = put_text(at, argv[i]);
  for (size_t i = 0; i < variables; i++) at = put_text(at, environment[i]);
  *length = size;
  return bytes;
}

bool send_number(int fd, uint32_t kind, uint32_t value) {
  unsigned char bytes[12];
  put32(bytes, 8);
  put32(bytes + 4, kind);
  put32(bytes + 8, value);
  return write_all(fd, bytes, sizeof bytes, now_ms() + 10000);
}
