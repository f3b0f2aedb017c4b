# needs: valgrind gcc
printf '#include <stdlib.h>\nint main(void) { volatile char *p = malloc(3); return p[3] == 99; }\n' > m.c && gcc -g m.c -o m
valgrind -q ./m 2>&1 | grep -o 'Invalid read of size 1'
