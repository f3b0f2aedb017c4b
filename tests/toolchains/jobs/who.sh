# What programs ask about where they are.
# needs: id locale date
id -u; id -g; id -un 2> /dev/null || true; whoami 2> /dev/null || true
locale 2> /dev/null | sort; printf '%s\n' ü | wc -m; hostname; uname -sm; nproc; getconf PAGE_SIZE; getconf OPEN_MAX > /dev/null
TZ=Asia/Tokyo date -d @0 +%FT%T%Z; TZ=America/New_York date -d @1700000000 +%FT%T%Z; date -u -d @0 +%F
echo "$HOME" "$USER" "$LANG" "$PWD"; cd ~ && pwd; cd - > /dev/null; test -t 1 || echo 'no terminal'
getent hosts localhost | tr -s ' ' | cut -d' ' -f2; getent passwd root | cut -d: -f1; getent services https | tr -s ' '
stat -c %U:%a . ; stat -fc %T / > /dev/null; df . > /dev/null; free > /dev/null; uptime > /dev/null; ps > /dev/null; mount > /dev/null; env > /dev/null
cat /etc/os-release | head -1; head -1 /proc/cpuinfo | cut -c1-9; test -r /proc/meminfo && test -r /proc/self/status && test -d /sys/devices && ls /dev/null /dev/zero /dev/urandom /dev/full /dev/tty
umask; umask 027; touch masked; stat -c %a masked
