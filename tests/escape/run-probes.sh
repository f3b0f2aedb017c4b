#!/bin/bash
# run-probes.sh [-v] [-u UID] NAME [SANDBOX CMD...]
# Builds a throwaway "machine" (private mount + loopback-only network namespace, tmpfs /home, /tmp, /dev/shm; a user
# dev with secrets, a second project, listeners and victim processes outside), runs  SANDBOX CMD... sh inside.sh
# in it as that user on a pty, then checks from outside which writes really took effect.
# Prints the final lines; a write that the sandbox swallowed becomes "DENIED name (no effect outside)".
# {WS} {HOME} in the command are replaced.  Needs root (to build the machine).  Own files only; nothing of the host is written.
# NP_SHOW=DIR NP_NODE=FILE: a checkout and a node binary that the sandbox is made of; they are seen as /opt/nd7 and /opt/node.
# NP_PEERS=DIR besides: programs of other sandboxes, seen as /opt/peers. NP_EXTRA=DIR: copied into the home first.
here=$(cd "$(dirname "$0")" && pwd); verbose=; uid=1000
while :; do case $1 in -v) verbose=1; shift;; -u) uid=$2; shift 2;; *) break;; esac; done
name=$1; shift
if [ -z "$NP_INNER" ]; then
  export NP_INNER=1 NP=${NP:-${TMPDIR:-/tmp}/nd7-np-$(id -u)}
  [ -x "$NP" ] || cc -std=gnu11 -static -O1 -o "$NP" "$here/../../native/probes/src/probes.c" || exit 3
  exec unshare -m -n --propagation private "$0" ${verbose:+-v} -u $uid "$name" "$@"
fi
ip link set lo up; sysctl -qw net.ipv4.ip_unprivileged_port_start=0 2>/dev/null
if [ -n "$NP_SHOW" ]; then # the checkout may lie where a tmpfs comes, or where the user cannot go
  mount -t tmpfs -o mode=755 tmpfs /opt; mkdir /opt/nd7; mount --rbind "$NP_SHOW" /opt/nd7; touch /opt/node; mount --bind "$NP_NODE" /opt/node
  [ -n "$NP_PEERS" ] && mkdir /opt/peers && mount --rbind "$NP_PEERS" /opt/peers; here=/opt/nd7/tests/escape
fi
mount -t tmpfs -o mode=755 tmpfs /home; cp "$NP" /home/np0; mount -t tmpfs -o mode=1777 tmpfs /tmp; mount -t tmpfs -o mode=1777 tmpfs /dev/shm; mount -t tmpfs -o mode=1777 tmpfs /var/tmp
H=/home/dev WS=/home/dev/proj R=/home/ctl; mkdir -p $H $R
{ grep -v '^dev:' /etc/passwd; echo "dev:x:$uid:$uid::$H:/bin/bash"; } > $R/passwd; mount --bind $R/passwd /etc/passwd
{ grep -v '^dev:' /etc/group; echo "dev:x:$uid:"; } > $R/group; mount --bind $R/group /etc/group
echo nameserver 127.0.0.53 > $R/resolv; mount --bind $R/resolv /etc/resolv.conf
# setuid helper owned by root, outside the workspace
cp /home/np0 /home/suidnp; chmod 4755 /home/suidnp
cd $H; mkdir -p .ssh .aws .gnupg .config/gh .config/systemd/user .docker .kube .claude .codex .local/bin other proj/{src,.claude/agents,.vscode,.codex,.probes} run
can() { echo "ND7CANARY-$1" > "$2"; }
can ssh .ssh/id_ed25519; can aws .aws/credentials; can gpg .gnupg/private.key; can netrc .netrc; can gitcred .git-credentials; can gh .config/gh/hosts.yml
can npm .npmrc; can docker .docker/config.json; can kube .kube/config; can hist .bash_history; can agent .claude/.credentials.json; can other other/.env; can env proj/.env
: > .npmrc; echo "//registry.invalid/:_authToken=ND7CANARY-npm" > .npmrc
echo '{}' > .claude/settings.json; echo '{}' > .codex/hooks.json; touch .zshrc .profile .gitconfig .ssh/authorized_keys
for f in trunc unlink rename steal link chmod utime xattr; do echo data > other/$f; done
cd proj; echo '{"name":"p","version":"1.0.0"}' > package.json; echo x > src/f; git init -q . ; git -c user.name=n -c user.email=n@x add package.json src/f; git -c user.name=n -c user.email=n@x commit -qm init
echo '{}' > .claude/settings.json; echo '{}' > .vscode/tasks.json; echo '' > .codex/config.toml; echo '{}' > .mcp.json; git init -q sub; mkdir -p sub/.claude; echo '{}' > sub/.claude/settings.json; git init -q ren
cp "$here/inside.sh" /home/np0 .probes/; mv .probes/np0 .probes/np; [ -n "$NP_EXTRA" ] && cp -r "$NP_EXTRA"/. /home/dev/
chmod 700 $H $H/.ssh $H/.gnupg; chmod 600 $H/.ssh/* $H/.aws/*; chown -R $uid:$uid $H
as() { setpriv --reuid $uid --regid $uid --clear-groups --inh-caps=-all --bounding-set=-all "$@"; }   # bounding set kept empty only for outside helpers
user() { setpriv --reuid $uid --regid $uid --clear-groups "$@"; }
export HOME=$H USER=dev LOGNAME=dev PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin LANG=C.UTF-8 TERM=xterm SHELL=/bin/bash
abs="nd7probe-$$"; sock=$H/run/docker.sock
setpriv --reuid $uid --regid $uid --clear-groups /home/np0 world $sock $abs $R/log.tmp >/dev/null 2>$R/world.err & wpid=$!
: > $R/log.tmp; chown $uid $R/log.tmp; chmod 755 $R
setpriv --reuid $uid --regid $uid --clear-groups env -i VICTIM=ND7CANARY-environ PATH=$PATH /home/np0 victim $H/.ssh/id_ed25519 > $R/v1 & sleep 0.2
setpriv --reuid $uid --regid $uid --clear-groups env -i PATH=$PATH /home/np0 victim /dev/null > $R/v2 & sleep 0.3
read vpid vaddr vfd < $R/v1; read v2 _ _ < $R/v2
cat > proj.env.tmp <<X
WS=$WS WORLD_HOME=$H WORLD_SOCK=$sock WORLD_ABS=$abs VPID=$vpid VADDR=$vaddr VFD=$vfd V2PID=$v2 KEYIN=nd7in-$$ SUIDBIN=/home/suidnp VERBOSE=$verbose
X
mv proj.env.tmp $WS/.probes/world.env; chown $uid:$uid $WS/.probes/world.env
for i in $(seq 30); do grep -q ready $R/log.tmp && break; sleep 0.1; done
cat > $R/go.sh <<'X'
#!/bin/bash
# a fresh session keyring with the canary key, then the sandbox
cd /home/dev/proj; exec 9</home/dev/.ssh/id_ed25519 8</home/dev 7>>/home/dev/other/inherited
/home/np0 keyadd nd7probe ND7CANARY-key >/dev/null 2>&1
export AWS_SECRET_ACCESS_KEY=ND7CANARY-env
exec "$@"
X
chmod 755 $R/go.sh; touch $H/other/inherited; chown $uid $H/other/inherited
args=(); for a in "$@"; do a=${a//\{WS\}/$WS}; a=${a//\{HOME\}/$H}; args+=("$a"); done
cmd=$(printf '%q ' setpriv --reuid $uid --regid $uid --clear-groups $R/go.sh "${args[@]}" sh $WS/.probes/inside.sh)
timeout ${NP_LIMIT:-120} script -qefc "$cmd" /dev/null </dev/null > $R/raw 2>&1; rc=$?
tr -d '\r' < $R/raw > $R/out
# ---- what really happened, seen from outside
sleep 0.3; mark() { grep -q 'exit 0' "$1" 2>/dev/null; }
eff() { case $1 in
 write-home-file) mark $H/np-escape;; write-shell-rc) mark $H/.zshrc;; write-profile) mark $H/.profile;; write-authorized-keys) mark $H/.ssh/authorized_keys;; write-user-gitconfig) mark $H/.gitconfig;;
 write-user-agent-config) mark $H/.claude/settings.json;; write-user-codex-config) mark $H/.codex/hooks.json;; write-user-autostart) mark $H/.config/systemd/user/np.service;; write-user-bin) mark $H/.local/bin/np-tool;;
 write-other-project) mark $H/other/np-escape;; write-tmp) mark /tmp/np-escape;; write-var-tmp) mark /var/tmp/np-escape;; write-shm) mark /dev/shm/np-escape;; symlink-write) mark $H/other/np-symlink;;
 truncate-outside) [ ! -s $H/other/trunc ];; unlink-outside) [ ! -e $H/other/unlink ];; rename-outside) [ -e $H/other/renamed ];; rename-into-workspace) [ ! -e $H/other/steal ];; link-outside) [ -e $H/other/linked ];;
 chmod-outside) [ "$(stat -c %a $H/other/chmod)" = 777 ];; utime-outside) [ "$(stat -c %Y $H/other/utime)" = 1 ];; setxattr-outside) getfattr -n user.nd7 $H/other/xattr >/dev/null 2>&1 || ! command -v getfattr >/dev/null;;
 write-git-hook) mark $WS/.git/hooks/pre-commit;; write-git-config) mark $WS/.git/config;; write-git-info-attrs) mark $WS/.git/info/attributes;; write-claude-settings) mark $WS/.claude/settings.json;; write-claude-local) mark $WS/.claude/settings.local.json;;
 write-claude-agents) mark $WS/.claude/agents/np.md;; write-mcp-json) mark $WS/.mcp.json;; write-vscode-tasks) mark $WS/.vscode/tasks.json;; write-codex-config) mark $WS/.codex/config.toml;; new-dir-cursor-mcp) mark $WS/.cursor/mcp.json;;
 new-dir-gemini) mark $WS/.gemini/settings.json;; new-dir-github-hooks) mark $WS/.github/hooks/np.json;; write-envrc) mark $WS/.envrc;; write-agents-md) mark $WS/AGENTS.md;; rename-git-dir) mark $WS/ren/.git/hooks/pre-commit;; rename-git-parent) mark $WS/sub/.git/hooks/pre-commit;;
 replace-claude-dir) mark $WS/sub/.claude/settings.json;; nested-repo-git-hook) mark $WS/sub/.git/hooks/post-checkout;; git-hardlink-hook) mark $WS/.git/hooks/post-merge;;
 inherited-fd-write) [ -s $H/other/inherited ];; remount-ro-root) [ -e $H/np-remount ];;
 keyring-add) user /home/np0 keyhas nd7in-$$ 2>/dev/null;;
 kill-outside) ! kill -0 $v2 2>/dev/null;;
 tmp-exec) [ -e /tmp/np-exec ];; shm-exec) [ -e /dev/shm/np-exec ];;
 dns) grep -q 'got dns' $R/log.tmp;; https-443) grep -q 'got PROBE tcp443' $R/log.tmp;; tcp-8443) grep -q 'got PROBE tcp8443' $R/log.tmp;; udp-loopback) grep -q 'PROBE udp' $R/log.tmp;; unix-pathname-socket) grep -q 'got PROBE unix' $R/log.tmp;;
 unix-abstract-stream) grep -q 'got PROBE abstract$' $R/log.tmp;; listen-reachable) grep -q 'reached' $R/log.tmp;;
 *) true;; esac; }
while read -r v n rest; do case $v in
  PERMITTED) if eff $n; then echo "PERMITTED $n${rest:+ $rest}"; else echo "DENIED $n (no effect outside)"; fi;;
  DENIED|SKIP|WORKS|BROKEN) echo "$v $n${rest:+ $rest}";; esac; done < $R/out > $R/final
cat $R/final
# effects with no PERMITTED line are worse than a miss: say so
for n in $(grep -oE '^DENIED [a-z0-9-]+' $R/final | cut -d' ' -f2); do grep -q "^DENIED $n (no effect" $R/final && continue; case $n in dns|https-443|tcp-8443|udp-loopback|unix-pathname-socket|unix-abstract-stream|listen-*|kill-outside|write-*|symlink-write|unlink-outside|rename-*|chmod-outside|utime-outside|truncate-outside) eff $n 2>/dev/null && [ $n != kill-outside ] && echo "EFFECT-SEEN $n";; esac; done
grep -vE '^ *(PERMITTED|DENIED|SKIP|WORKS|BROKEN) ' $R/out | head -${NP_NOISE:-15} | sed 's/^/# /'
echo "# $name rc=$rc permitted=$(grep -c ^PERMITTED $R/final) denied=$(grep -c ^DENIED $R/final) skip=$(grep -c ^SKIP $R/final) works=$(grep -c ^WORKS $R/final) broken=$(grep -c ^BROKEN $R/final)"
user /home/np0 keydrop nd7in-$$; user /home/np0 keydrop nd7probe; user /home/np0 keydrop nd7in; disown -a 2>/dev/null; kill $wpid $vpid $v2 2>/dev/null; exit 0
