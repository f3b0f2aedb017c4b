# What shell scripts do with files.
# needs: tar gzip find xargs
mkdir -p a/b/c && echo x > a/b/c/x && ln -s x a/b/c/l && ln a/b/c/x a/hard && mkfifo a/p && chmod 750 a/b && touch -d @100 a/b/c/x
cp -a a copy && stat -c '%n %a %h' copy/b copy/b/c/x copy/hard && tar cf - a | (mkdir out && cd out && tar xf -) && stat -c '%a %Y' out/a/b/c/x
tar czf t.tgz a && tar tzf t.tgz | sort && gzip -c copy/b/c/x > z.gz && zcat z.gz
find . -name x -newermt @50 -type f | sort && find copy -type l -delete && find copy -empty -delete -o -type p -delete && find copy | sort
chmod -R u+rwX,go-rwx a && find a -perm 700 | sort && chown "$(id -u):$(id -g)" a/b/c/x && chmod g+s a && stat -c %a a
mv a/b moved && rmdir --ignore-fail-on-non-empty a && rm -rf moved out && ls
mktemp > /dev/null && d=$(mktemp -d) && echo t > "$d/t" && cp "$d/t" . && mv "$d/t" u && rm -r "$d" && cat t u
mkdir -m 700 m && stat -c %a m && touch -r t m && cd m && mkdir ../n && cd ../n && pwd | grep -o n$ && rmdir ../m
touch -- '-odd name' 'ü' $'new\nline' && ls -b && rm -- * && ls -A && cd .. && test ! -e nothing && echo 'not there'
exec 5<> rw && echo rw >&5 && cat rw && exec 5>&- && : > rw && test ! -s rw && set -o noclobber
sync t* && echo synced
