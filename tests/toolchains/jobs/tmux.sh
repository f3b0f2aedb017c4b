# needs: tmux
export TMUX_TMPDIR="$PWD"
tmux -f /dev/null new-session -d -s s -x 80 -y 20 'PS1=: sh'
tmux split-window -h -t s 'sh -c "tty > panes; stty size > size; sleep 60"'
tmux send-keys -t s:0.0 'echo typed $((40 + 2)) > out' Enter
while [ ! -s out ] || [ ! -s size ]; do sleep 0.05; done
cat out size; sed 's/[0-9]*$//' panes
tmux list-panes -t s | wc -l
tmux capture-pane -p -t s:0.0 | grep -c 'echo typed'
tmux kill-server
