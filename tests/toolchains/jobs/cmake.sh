# user only: it takes long, and nothing in it asks who runs it
# needs: cmake gcc make
printf 'cmake_minimum_required(VERSION 3.20)\nproject(p C)\nenable_testing()\nadd_executable(m m.c)\nadd_test(NAME t COMMAND m)\n' > CMakeLists.txt
printf '#include <stdio.h>\nint main(void) { puts("made"); return 0; }\n' > m.c
cmake -S . -B build > log && cmake --build build -j2 > log && build/m && (cd build && ctest 2>&1 | grep 'tests passed')
