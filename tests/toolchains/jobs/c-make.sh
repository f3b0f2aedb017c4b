# user only: it takes long, and nothing in it asks who runs it
# needs: gcc make
cat > Makefile <<'M'
CFLAGS = -O2 -fPIC -MMD
all: main main-static
main: main.o libpart.so
	$(CC) -o $@ main.o -L. -lpart -Wl,-rpath,$(CURDIR)
main-static: main.o part.o
	$(AR) rcs libpart.a part.o
	$(CC) -flto -o $@ main.o libpart.a
libpart.so: part.o
	$(CC) -shared -o $@ $<
-include *.d
M
echo 'int part(int x) { return x * 2; }' > part.c
printf '#include <stdio.h>\nint part(int);\nint main(void) { printf("%%d\\n", part(21)); return 0; }\n' > main.c
make -s -j2 all 2> /dev/null
./main && ./main-static
touch part.c && make -j2 2> /dev/null | grep -c -- -shared
# A sanitizer that maps much and, for leaks, traces its own process.
printf '#include <stdlib.h>\nvolatile void *p; int main(void) { p = malloc(7); p = 0; return 0; }\n' > leak.c
gcc -g -fsanitize=address leak.c -o leak
./leak 2> log || grep -o '7 byte(s) leaked' log
gcc -pg main.c part.c -o profiled && ./profiled && ls gmon.out
gcc --coverage main.c part.c -o covered && ./covered && gcov -n covered-part.gcda | grep executed
