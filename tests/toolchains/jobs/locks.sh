# needs: flock
flock l sleep 0.5 & sleep 0.1
flock -n l true || echo held
flock l echo then
wait
(flock 9; echo counted >> n; flock -u 9) 9> l && cat n
mkdir lock && ! mkdir lock 2> /dev/null && rmdir lock && echo folder
set -C; ! (: > l) 2> /dev/null && (: > fresh) && echo noclobber
ln -s $$ link && ! ln -s $$ link 2> /dev/null && echo link
