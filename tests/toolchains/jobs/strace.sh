# needs: strace
strace -f -e trace=execve -o trace sh -c 'ls > /dev/null; true' && sed -E 's/^[0-9]+ +//' trace | grep -c '^execve'
strace -c -o counts true && grep -c total counts
strace -f -e trace=openat,mkdir -o trace mkdir made && grep -o 'mkdir("made", 0777) *= 0' trace
strace -f -e inject=getuid:retval=7 -o trace id -u 2> /dev/null || true
sleep 60 & strace -p $! -o trace & sleep 0.5; kill %1; wait %2 || true; grep -o 'killed by SIGTERM' trace
