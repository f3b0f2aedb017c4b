/* Many processes make many files at once: `many PROCESSES FILES`, each in a folder of its own; and one file that all of them want alone. Ends well when every
 * file is there once. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int work(int number, int files) {
  char name[64], moved[64];
  int own = 0;
  snprintf(name, sizeof name, "many-%d", number);
  if (mkdir(name, 0755) != 0) return -1;
  for (int i = 0; i < files; i++) {
    snprintf(name, sizeof name, "many-%d/f%d", number, i);
    snprintf(moved, sizeof moved, "many-%d/g%d", number, i);
    const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (fd < 0 || write(fd, "x", 1) != 1 || close(fd) != 0) return -1;
    if (i % 10 == 0 && rename(name, moved) != 0) return -1;
    snprintf(name, sizeof name, "all-%d", i);
    const int alone = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (alone >= 0) {
      own++;
      close(alone);
    }
  }
  return own;
}

int main(int argc, char **argv) {
  const int processes = argc == 3 ? atoi(argv[1]) : 0, files = argc == 3 ? atoi(argv[2]) : 0;
  if (processes < 1 || files < 1) return 2;
  int ends[2], all = 0;
  if (pipe(ends) != 0) return 2;
  for (int i = 0; i < processes; i++) {
    if (fork() != 0) continue;
    const int own = work(i, files);
    _exit(write(ends[1], &own, sizeof own) == (ssize_t)sizeof own ? 0 : 1);
  }
  close(ends[1]);
  for (int i = 0; i < processes; i++) {
    int own;
    if (read(ends[0], &own, sizeof own) != (ssize_t)sizeof own || own < 0) return 1;
    all += own;
  }
  while (wait(NULL) > 0) continue;
  printf("%d of %d were made by one alone\n", all, files);
  return all == files ? 0 : 1;
}
