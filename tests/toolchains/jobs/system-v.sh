# System V shared memory and semaphores.
# needs: perl
# T2 fails: System V and POSIX queues and memory** are refused
perl -e '
  my $memory = shmget(0, 100, 01600) // die "shmget: $!\n"; shmwrite($memory, "system v", 0, 8) or die; shmread($memory, my $text, 0, 8) or die; shmctl($memory, 0, 0);
  my $set = semget(0, 1, 01600) // die "semget: $!\n"; semctl($set, 0, 0, 0); print "$text\n"'
