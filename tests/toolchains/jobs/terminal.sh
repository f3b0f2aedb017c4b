# A terminal of a program's own, made by script.
# needs: script stty
script -qec 'stty size > /dev/null; test -t 0 && test -t 1 && tty | sed s/[0-9]*$//; stty -echo; read x < /dev/tty; echo "got $x"' /dev/null <<< typed | tr -d '\r' | grep -v ^typed
