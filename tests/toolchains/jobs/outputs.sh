# Large outputs, pipes and files.
# needs: seq sha256sum
head -c 60000000 /dev/zero | tee copy | wc -c
seq 1000000 | sort -rn --buffer-size=1M --parallel=2 | sed -n 1p
seq 300000
seq 100000 >&2
head -c 100000000 /dev/zero | sha256sum
split -b 20000000 copy part- && ls part-* | wc -l && cat part-* | cmp - copy && rm part-*
mkfifo pipe && (seq 100000 > pipe & wc -l < pipe)
fallocate -l 50M room && truncate -s 1G sparse && cp --sparse=always sparse again && stat -c %s room again
seq 2000 | xargs -n 50 -P 4 sh -c 'echo $#' | sort | uniq -c | tr -s ' '
