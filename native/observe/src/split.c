#include "observe.h"

#include <string.h>

void path_split_last(const char *path, const char **name, size_t *length) {
  size_t end = strlen(path);
  while (end > 0 && path[end - 1] == '/') end--;
  size_t start = end;
  while (start > 0 && path[start - 1] != '/') start--;
  *name = path + start;
  *length = end - start;
}
