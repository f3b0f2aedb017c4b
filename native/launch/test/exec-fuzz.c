/* Random bytes, and what is nearly right, against what the broker and the zygote read, in a sanitized build: `exec-fuzz SEED ROUNDS`. Everything lies in a heap
 * block of its exact size; what is taken must be what it says. */
#include "exec.h"

#include "../../observe/test/fuzz.h"

#include <string.h>

static void put32(unsigned char *to, uint32_t value) {
  for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (8 * i));
}

static long requests, blocks, frames;

static void damage(unsigned char *bytes, size_t length) {
  for (uint32_t n = roll(4); n > 0 && length > 0; n--) bytes[roll((uint32_t)length)] = (unsigned char)roll(256);
}

static void try_request(void) {
  const size_t length = roll(64) == 0 ? EXEC_HEADER + EXEC_TEXT_MAX - 1 + roll(3) : roll(40);
  unsigned char *bytes = malloc(length + (length == 0));
  if (bytes == NULL) exit(2);
  memset(bytes, 'x', length);
  if (length >= EXEC_HEADER) {
    memcpy(bytes, EXEC_MAGIC, 8);
    put32(bytes + 8, roll(80));
  }
  if (roll(2) == 0) damage(bytes, length);
  struct exec_request request;
  if (exec_request_parse(bytes, length, &request)) {
    requests++;
    check(request.length > 0 && request.length <= EXEC_TEXT_MAX && request.length == length - EXEC_HEADER, "a length");
    check((request.flags & ~EXEC_FLAGS) == 0 && memchr(request.text, 0, request.length) == NULL, "a flag or a NUL");
  }
  free(bytes);
}

static void try_block(void) {
  unsigned char made[256];
  const uint32_t argc = roll(5), envc = roll(5);
  put32(made, roll(8) == 0 ? roll(2) << 31 : 1 + roll(1000));
  put32(made + 4, roll(8) == 0 ? roll(2048) : 022);
  put32(made + 8, roll(1000));
  put32(made + 12, 0);
  put32(made + 16, roll(20) == 0 ? roll(UINT32_MAX) : argc);
  put32(made + 20, roll(20) == 0 ? roll(UINT32_MAX) : envc);
  size_t length = 24;
  made[length++] = roll(10) == 0 ? 'r' : '/';
  for (uint32_t i = 0; i < 1 + argc + envc; i++) {
    for (uint32_t n = roll(12); n > 0; n--) made[length++] = (unsigned char)('a' + roll(26));
    made[length++] = 0;
  }
  if (roll(3) == 0) damage(made, length);
  if (roll(4) == 0) length = roll((uint32_t)length + 1);
  unsigned char *bytes = malloc(length + (length == 0));
  if (bytes == NULL) exit(2);
  memcpy(bytes, made, length);
  struct exec_block block;
  if (exec_block_parse(bytes, length, &block) == NULL) {
    blocks++;
    check(block.program[0] == '/' && block.argv[0] != NULL && block.folder > 0 && block.mask <= 0777, "a program, a folder or an umask");
    size_t read = strlen(block.program) + 1;
    for (char **at = block.argv; *at != NULL; at++) read += strlen(*at) + 1;
    for (char **at = block.envp; *at != NULL; at++) read += strlen(*at) + 1;
    check(read + 24 == length, "strings that are not all");
    free(block.argv);
    free(block.envp);
  }
  free(bytes);
}

static void try_frame(void) {
  const size_t length = roll(40);
  unsigned char *bytes = malloc(length + (length == 0));
  if (bytes == NULL) exit(2);
  for (size_t i = 0; i < length; i++) bytes[i] = (unsigned char)roll(256);
  if (length >= 8) {
    put32(bytes, roll(40));
    put32(bytes + 4, roll(5));
  }
  struct exec_frame frame;
  size_t size = 0;
  if (exec_frame_parse(bytes, length, &frame, &size) > 0) {
    frames++;
    check(size >= 12 && size <= length && frame.length == size - 12, "the size of a frame");
    check(frame.kind >= ORDER_RUN && frame.kind <= ORDER_RUN_READER && frame.body + frame.length == bytes + size, "a frame");
  }
  free(bytes);
}

int main(int argc, char **argv) {
  state = argc > 1 ? strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1 : 1;
  const long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 100000;
  for (long i = 0; i < rounds; i++) {
    try_request();
    try_block();
    try_frame();
  }
  check(rounds < 1000 || (requests > rounds / 50 && blocks > rounds / 50 && frames > rounds / 50), "too few were taken for the test to say anything");
  check(requests < rounds && blocks < rounds && frames < rounds, "everything was taken");
  printf("%ld rounds, %ld requests, %ld blocks, %ld frames\n", rounds, requests, blocks, frames);
  return 0;
}
