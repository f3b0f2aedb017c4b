/* nd7: what stands on PATH after `nd7 init`. */
#define _GNU_SOURCE
#include "front.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As Node does: a stream that was closed is /dev/null, so that nothing else gets its number. */
static void open_streams(void) {
  struct stat s;
  for (int fd = 0; fd < 3; fd++)
    if (fstat(fd, &s) != 0 && open("/dev/null", O_RDWR) < 0) _exit(1);
}

/* In a box of somebody else's the program is a child of this one, and no host keeps the session. */
static bool has_box(int argc, char **argv) {
  for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (strcmp(argv[i], "--in") == 0 || strncmp(argv[i], "--in=", 5) == 0) return true;
  return false;
}

int main(int argc, char **argv) {
  open_streams();
  struct place place;
  place_find(&place);
  if (argc > 2 && strcmp(argv[1], "run") == 0 && !has_box(argc, argv)) {
    struct sigaction before;
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, &before);
    run_by_host(&place, argc, argv);
    sigaction(SIGPIPE, &before, NULL);
  }
  become_cli(&place, argc, argv);
}
