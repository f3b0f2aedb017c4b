# needs: gdb gcc
printf 'int deep(int x) {\n  return x + 1;\n}\nint main(void) {\n  return deep(41) - 42;\n}\n' > m.c
gcc -g m.c -o m
gdb -nx -batch -ex 'break deep' -ex run -ex backtrace -ex 'print x' -ex continue ./m 2> /dev/null | grep -E '^(#|\$1|\[Inferior)' | sed 's/0x[0-9a-f]*/ADDRESS/; s/process [0-9]*/process/'
printf '#include <unistd.h>\nvolatile int go;\nint main(void) { while (!go) usleep(10000); return 7; }\n' > w.c
gcc -g w.c -o w && ./w & sleep 0.5
# One that gdb has not started itself: a process of the same parent.
gdb -nx -batch -p "$(pgrep -f -x ./w)" -ex 'set var go = 1' -ex detach 2> /dev/null | grep -o 'Inferior 1 .*detached' | sed 's/process [0-9]*/process/'
wait %1 || echo "ended with $?"
