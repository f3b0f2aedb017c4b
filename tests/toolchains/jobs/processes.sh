# Process groups, sessions, signals, job control.
# needs: setsid timeout pgrep
set -m
sleep 60 & sleep 60 | sleep 60 & jobs | wc -l
kill -TERM -- -"$(jobs -p %1)"; wait %1 || echo "status $?"
kill -STOP %2; sleep 0.2; jobs %2 | grep -o Stopped; kill -CONT %2; kill %2; wait %2 || echo "status $?"
set +m
timeout 0.2 sleep 60 || echo "status $?"
timeout --kill-after=0.1 0.1 sh -c 'trap "" TERM; sleep 60 & wait; wait' || echo "status $?"
setsid -w sh -c 'ps -o sid= -p $$ | tr -d " " | grep -qx $$ && echo session'
sh -c 'trap "echo caught; exit 3" USR1; kill -USR1 $$; sleep 5' || echo "status $?"
nohup sh -c 'sleep 0.2; echo outlived > out' > /dev/null 2>&1 & wait; cat out
sh -c '(sleep 0.3; echo orphan > orphaned) & exit' ; while [ ! -s orphaned ]; do sleep 0.1; done; cat orphaned
sleep 61 & pgrep -f -x 'sleep 61' | wc -l; kill -0 $! && renice -n 3 -p $! > /dev/null && ps -o ni= -p $! | tr -d ' '; kill $!
sh -c 'kill -SEGV $$' 2> /dev/null || echo "status $?"
ulimit -n 512 && ulimit -n && ulimit -c 0 && (ulimit -t 5; echo limited)
setsid -w sh -c 'trap "echo all; exit" TERM; kill 0; sleep 1'
cat <(echo substituted) > >(cat); sleep 0.2; coproc cat; echo co >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo "$x"
