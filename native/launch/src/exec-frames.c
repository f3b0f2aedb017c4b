/* What the broker and the zygote read. Touches nothing but memory. */
#include "exec.h"

#include <stdlib.h>
#include <string.h>

#define STRINGS_MAX 65536u
#define BLOCK_HEADER ((size_t)24)
#define FRAME_HEADER ((size_t)12)

static uint32_t u32(const unsigned char *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24; }

bool exec_request_parse(const unsigned char *bytes, size_t length, struct exec_request *request) {
  if (length <= EXEC_HEADER || length > EXEC_HEADER + EXEC_TEXT_MAX || memcmp(bytes, EXEC_MAGIC, 8) != 0) return false;
  request->flags = u32(bytes + 8);
  request->text = (const char *)bytes + EXEC_HEADER;
  request->length = length - EXEC_HEADER;
  /* A shell would read up to the NUL, and the record would say more than ran. */
  return (request->flags & ~EXEC_FLAGS) == 0 && memchr(request->text, '\0', request->length) == NULL;
}

/* Takes `count` strings and returns what lies behind them, NULL where they are not all there. */
static unsigned char *strings(unsigned char *at, const unsigned char *end, char **to, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    unsigned char *stop = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
    if (stop == NULL) return NULL;
    to[i] = (char *)at;
    at = stop + 1;
  }
  return at;
}

const char *exec_block_parse(unsigned char *bytes, size_t length, struct exec_block *block) {
  if (length < BLOCK_HEADER || length > EXEC_BLOCK_MAX) return "it has no such length";
  const uint32_t argc = u32(bytes + 16), envc = u32(bytes + 20);
  if (argc == 0 || argc > STRINGS_MAX || envc > STRINGS_MAX) return "it has no arguments, or too many strings";
  *block = (struct exec_block){.folder = u32(bytes), .mask = u32(bytes + 4), .ignored = u32(bytes + 8) | (uint64_t)u32(bytes + 12) << 32};
  if (block->folder == 0 || block->folder > INT32_MAX || block->mask > 0777) return "it has no folder, or no such umask";
  block->argv = calloc((size_t)argc + 1, sizeof *block->argv);
  block->envp = calloc((size_t)envc + 1, sizeof *block->envp);
  char *program[1] = {NULL};
  unsigned char *at = bytes + BLOCK_HEADER;
  const unsigned char *end = bytes + length;
  if (block->argv != NULL && block->envp != NULL && (at = strings(at, end, program, 1)) != NULL && (at = strings(at, end, block->argv, argc)) != NULL &&
      (at = strings(at, end, block->envp, envc)) == end && program[0][0] == '/') {
    block->program = program[0];
    return NULL;
  }
  free(block->argv);
  free(block->envp);
  *block = (struct exec_block){0};
  return "its strings are not what it says";
}

int exec_frame_parse(const unsigned char *bytes, size_t length, struct exec_frame *frame, size_t *size) {
  if (length < 4) return 0;
  const size_t rest = u32(bytes);
  if (rest < FRAME_HEADER - 4 || rest > FRAME_HEADER - 4 + EXEC_BLOCK_MAX) return -1;
  if (length < 4 + rest) return 0;
  *frame = (struct exec_frame){.kind = u32(bytes + 4), .id = u32(bytes + 8), .body = bytes + FRAME_HEADER, .length = rest + 4 - FRAME_HEADER};
  if (frame->kind < ORDER_RUN || frame->kind > ORDER_RUN_READER) return -1;
  *size = 4 + rest;
  return 1;
}
