/* One thread makes names while another changes what they mean, in a folder that holds `free`: the text under the call, a folder on the way and a link on the
 * way are exchanged all the time. `race ROUNDS PROTECTED`; says how often each way was gone, and what stands under the protected name in the end. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[256];
static const char *wanted;
static atomic_int stop;

static void turn(const char *to) {
  const size_t n = strlen(to) + 1;
  for (size_t i = 0; i < n; i++) ((volatile char *)path)[i] = to[i];
}

/* Exchanges the text between a free name and the protected one. */
static void *rewrite(void *nothing) {
  while (!stop) {
    turn("free/name");
    for (volatile int i = 0; i < 300; i++) continue;
    turn(wanted);
    for (volatile int i = 0; i < 300; i++) continue;
  }
  return nothing;
}

/* Exchanges a folder, a link and the name of a folder that is made in. */
static void *exchange(void *nothing) {
  while (!stop) {
    (void)!renameat2(AT_FDCWD, "way", AT_FDCWD, "other", 2);
    (void)!rename("link", "link2");
    (void)!symlink(wanted, "link");
    (void)!unlink("link");
    (void)!symlink("free/through", "link");
    (void)!rename("carried", wanted);
    (void)!rename(wanted, "carried");
  }
  return nothing;
}

int main(int argc, char **argv) {
  const int rounds = argc == 3 ? atoi(argv[1]) : 0;
  if (rounds == 0) return 2;
  wanted = argv[2];
  (void)!mkdir("free", 0755);
  (void)!mkdir("way", 0755);
  (void)!mkdir("carried", 0755);
  (void)!symlink(".", "other");
  turn("free/name");
  pthread_t threads[2];
  if (pthread_create(&threads[0], NULL, rewrite, NULL) != 0 || pthread_create(&threads[1], NULL, exchange, NULL) != 0) return 2;
  int made = 0, refused = 0, through = 0;
  char behind[300];
  snprintf(behind, sizeof behind, "way/%s", wanted);
  for (int i = 0; i < rounds; i++) {
    struct stat s;
    const int fd = open(path, O_WRONLY | O_CREAT, 0644);
    made += fd >= 0;
    refused += fd < 0 && errno == EACCES;
    if (fd >= 0) close(fd);
    const int followed = open("link", O_WRONLY | O_CREAT, 0644);
    if (followed >= 0) close(followed);
    through += followed >= 0;
    (void)!mkdir(behind, 0755);
    if (lstat(wanted, &s) == 0 || lstat("free/.envrc", &s) == 0) {
      printf("BROKEN after %d\n", i);
      return 1;
    }
  }
  stop = 1;
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  printf("held: %d made, %d refused, %d through links\n", made, refused, through);
  return 0;
}
