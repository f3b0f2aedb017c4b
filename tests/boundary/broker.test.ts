// Commands that an agent gives away, in the real boundary: what they are, see and do is what it would be without a broker, and what was run is recorded.
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Desk, USERS, WHO, type Tier } from './broker.fixture.js';

function missing(tier: Tier): string | undefined {
  if (process.platform !== 'linux') return 'no Linux';
  if (spawnSync('python3', ['--version']).status !== 0) return 'no python3';
  const desk = new Desk(USERS[0]?.[1] ?? {}, tier);
  try {
    const ran = desk.inside('true');
    return ran.status === 0 ? undefined : `no boundary here: ${ran.stderr}`;
  } finally {
    desk.close();
  }
}
const lacking = { T1: missing('T1'), T2: missing('T2') };

let desk: Desk;

const until = async (what: string, holds: () => boolean): Promise<void> => {
  for (let i = 0; i < 600 && !holds(); i++) await new Promise((done) => setTimeout(done, 100));
  if (!holds()) throw new Error(`never: ${what}`);
};
const alive = (mark: string): boolean =>
  spawnSync('pgrep', ['-f', `^sleep ${mark}$`], { encoding: 'utf8' }).stdout.trim() !== '';
/** Seconds that nobody else sleeps. */
const aWhile = (): string => `${3600 + Math.floor(Math.random() * 1e6)}`;

/** What a command is and does: by name, a script. */
const SAME: [string, string][] = [
  ['exit codes', `for n in 0 1 7 126 255; do $S -c "exit $n"; echo $?; done`],
  ['deaths by signals', `for s in TERM KILL INT HUP PIPE USR1 ABRT SEGV; do $S -c "kill -$s \\$\\$"; echo $?; done`],
  [
    'the order of both streams',
    `$S -c 'for i in 1 2 3 4; do echo out $i; echo err $i >&2; done' > both 2>&1; cat both`,
  ],
  ['stdin', `printf 'a\\nb' | $S -c 'read x; echo $x; cat'; echo; $S -c 'cat; echo end' < /dev/null`],
  [
    'closed streams',
    `for c in '<&-' '>&-' '2>&-' '<&- >&-' '<&- >&- 2>&-'; do eval "\\$S -c 'ls /proc/self/fd | head -c 3 | wc -c; true' $c"; echo $?; done; $S -c 'echo lost >&1' >&-; echo $?`,
  ],
  [
    'quotes, unicode, lines',
    `$S -c 'echo "a '"'"'b'"'"' \\$x ü 日本 \\\\ $((1+1))"; echo "second\nline"; cat <<EOF
here $0 \${HOME:+home}
EOF'`,
  ],
  ['a text that is no UTF-8', `$S -c "$(printf 'printf %%s \\\\xff\\\\xfe\\377 | od -An -tx1')"`],
  [
    'a text of 120 KiB, and one that no program can be given',
    `x=$(head -c 120000 /dev/zero | tr '\\0' x); $S -c ": $x; echo \\\${#0} big"; y=$x$x; $S -c ": $y; echo never" 2>/dev/null; echo $?`,
  ],
  [
    'its folder',
    `mkdir -p "d/a b"; cd "d/a b"; $S -c 'pwd; cd ..; pwd'; pwd; mkdir ../gone; cd ../gone; rmdir ../gone; $S -c 'echo $PWD; ls | wc -l' 2>&1`,
  ],
  [
    'its umask and what it ignores',
    `umask 027; (trap '' USR1 INT; $S -c 'umask; kill -USR1 $$; echo lives; grep SigIgn /proc/self/status'); umask 0; $S -c umask`,
  ],
  [
    'variables',
    `A='x y' B= $S -c 'echo "$A" "\${B-unset}" $SHELL $0'; printf 'echo file' > rc; env -u ZZ ZZ=$(printf '\\377') $S -c 'printf "%s" "$ZZ" | od -An -tx1'`,
  ],
  [
    'what it leaves behind',
    `$S -c 'sleep 0.3 > /dev/null 2>&1 & echo at once'; $S -c '(sleep 0.2; echo late) & echo first' | cat`,
  ],
  [
    'a login shell, options and scripts',
    `echo 'echo profile' > $HOME/.bash_profile; $S -l -c 'echo a'; $S -lc 'echo b'; $S -c -l 'echo c'; echo 'echo $0 $1' > s.sh; $S s.sh x; $S -c 'echo $0 $1' n y; $S -xc 'echo t' 2>&1; echo 'echo in' | $S; $S --version | head -1; $S -c ''; echo $?`,
  ],
  ['text that a shell refuses', `$S -c 'if' 2>&1; echo $?; $S -c 'nosuchprogram' 2>&1; echo $?`],
  [
    'signals that are sent to it',
    `for s in TERM HUP USR1 USR2; do $S -c "trap 'echo got $s; exit 3' $s; echo up; sleep 20 & wait" > out.$s & p=$!; until grep -q up out.$s; do sleep 0.05; done; sleep 0.3; kill -$s $p; wait $p; echo $?; cat out.$s; done 2>/dev/null`,
  ],
  [
    'signals that kill it',
    `for s in TERM KILL; do $S -c 'echo up; exec sleep 20' > out.$s & p=$!; until grep -q up out.$s; do sleep 0.05; done; kill -$s $p; wait $p; echo $?; done 2>/dev/null`,
  ],
  [
    'stops',
    `$S -c 'echo up; kill -STOP $$; echo on' > out & p=$!; until grep -q T /proc/$p/stat && grep -q up out && [ "$(cut -d' ' -f3 /proc/$p/stat)" = T ]; do sleep 0.05; done; cat out; kill -CONT $p; wait $p; echo $?; cat out`,
  ],
  [
    'many at once',
    `for i in $(seq 40); do $S -c "sleep 0.05; echo $i; exit $((i % 7))" > o.$i & done; wait; cat o.* | sort -n | tr '\\n' ' '`,
  ],
];

/** Runs all of them, each in a folder of its own, and answers what each said. */
function said(run: (script: string) => { status: number | null; stdout: string; stderr: string }): Map<string, string> {
  const all = SAME.map(([name, script]) => `echo '== ${name}'; (cd "$(mktemp -d -p .)"\n${script}\n)`);
  const { status, stdout, stderr } = run(all.join('\n'));
  if (status !== 0) throw new Error(`${status}: ${stderr}`);
  const parts = stdout.split(/^== (.*)\n/m).slice(1);
  return new Map(SAME.map((_, i): [string, string] => [parts[2 * i] ?? '', anonymous(parts[2 * i + 1] ?? '')]));
}
const anonymous = (text: string): string => text.replace(/tmp\.\w+/g, 'tmp.X');

describe.each(WHO)('%s: a brokered command is as one without a broker, as %s', (tier, _name, user) => {
  const lacks = lacking[tier];
  (lacks === undefined ? describe : describe.skip)(`[${lacks ?? 'here'}]`, () => {
    let [outside, inside] = [new Map<string, string>(), new Map<string, string>()];
    beforeAll(() => {
      desk = new Desk(user, tier);
      outside = said((script) => desk.outside(script));
      inside = said((script) => desk.inside(script));
    });
    afterAll(() => desk.close());

    it.each(SAME)('%s', (name) => {
      expect(outside.get(name)).not.toBe('');
      expect(inside.get(name)).toBe(outside.get(name));
    });

    it('each was run by the broker and is recorded to its end', () => {
      expect(desk.of('exec').length).toBeGreaterThan(SAME.length);
      expect(desk.of('exec').length).toBe(desk.of('exec.end').length);
      expect(desk.of('alarm')).toEqual([]);
    });
  });
});

describe.each(WHO)('%s: a brokered command, as %s', (tier, _name, user) => {
  const lacks = lacking[tier];
  (lacks === undefined ? describe : describe.skip)(`[${lacks ?? 'here'}]`, () => {
    beforeEach(() => {
      desk = new Desk(user, tier);
    });
    afterEach(() => desk.close());

    it('is recorded by who ran it: its text, its tree, its end, what it used', () => {
      desk.inside(`$S -c 'head -c 20000000 /dev/zero | sha256sum > /dev/null; exit 9'; $S -c 'kill -9 $$'`);
      const [first, second] = desk.of('exec.end');
      expect(desk.of('exec')[0]).toMatchObject({ command: 'c-1', how: 'broker', text: { bytes: 58 } });
      expect(first).toMatchObject({
        command: 'c-1',
        code: 9,
        signal: null,
        used: { maxRssKiB: expect.any(Number) as number },
      });
      expect((first?.['used'] as { userUs: number }).userUs).toBeGreaterThan(0);
      expect(second).toMatchObject({ command: 'c-2', code: null, signal: 9 });
      expect(desk.entries().filter(({ source }) => source === 'effect:exec-broker')).toHaveLength(4);
    });

    it('is confined exactly as the agent is, and gets no more', () => {
      const { stdout } = desk.inside(`
facts() { grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|Seccomp_filters)' /proc/self/status; readlink /proc/self/ns/*; }
facts > mine; $S -c "$(echo 'grep -E "^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp|Seccomp_filters)" /proc/self/status; readlink /proc/self/ns/*')" > its; cmp mine its && echo same
$S -c 'echo y > /usr/nd7-probe' 2>/dev/null || echo refused
$S -c 'mkdir -p .vscode; echo {} > .vscode/settings.json' 2>/dev/null || echo protected
$S -c 'cat $HOME/.nd7/sessions/*/log.jsonl' 2>/dev/null || echo hidden
$S -c 'ls /proc/self/fd | wc -l'`);
      expect(stdout.split('\n')).toEqual(['same', 'refused', 'protected', 'hidden', '4', '']);
    });

    it('has no variable by which code is loaded before it, but those that the session has', () => {
      const { stdout } = desk.inside(
        `echo 'echo loaded' > rc; BASH_ENV=$PWD/rc LD_LIBRARY_PATH=/x PS4=a $S -c 'echo "\${BASH_ENV-none} \${LD_LIBRARY_PATH-none}"'`,
      );
      expect(stdout).toBe('none none\n');
      expect(desk.of('exec')[0]?.['left_out']).toEqual(expect.arrayContaining(['BASH_ENV', 'LD_LIBRARY_PATH', 'PS4']));
    });

    it('has the terminal that its agent gave it: job control, interrupts, size', () => {
      writeFileSync(join(desk.project, 'term.py'), TERMINAL);
      const script = 'python3 term.py $S';
      const outside = desk.outside(script);
      const inside = desk.inside(script);
      expect(outside.stdout).toContain('tty True 33 101');
      expect(inside.stdout).toBe(outside.stdout);
      expect(desk.of('exec')[0]).toMatchObject({ how: 'broker', terminal: true });
    });

    it('is run by who asks where the terminal is led by somebody else', () => {
      writeFileSync(join(desk.project, 'term.py'), TERMINAL);
      const { stdout } = desk.inside(`python3 term.py /bin/bash "$S -c 'tty > /dev/null && echo mine'; true"`);
      expect(stdout).toContain('mine');
      expect(desk.of('exec')[0]).toMatchObject({ how: 'itself' });
    });

    it('dies with its stub, and all that it has made', async () => {
      const [one, two] = [aWhile(), aWhile()];
      desk.inside(
        `$S -c 'setsid sleep ${one} & (sleep ${two}) & wait' & p=$!; sleep 1; kill -KILL $p; sleep 2; pgrep -c sleep`,
      );
      await until('the tree has gone', () => !alive(one) && !alive(two));
      expect(desk.of('exec.end')[0]).toMatchObject({ signal: 9 });
    });

    it('leaves nothing when its stub is killed at any moment', async () => {
      const mark = aWhile();
      const { stdout } = desk.inside(`cat > kill.py <<'EOF'
import os, random, subprocess, sys, time
for i in range(120):
    p = subprocess.Popen([sys.argv[1], '-c', '(setsid sleep ${mark} &) ; sleep ${mark}'])
    time.sleep(random.random() * 0.012)
    p.kill()
    p.wait()
EOF
python3 kill.py $S; $S -c 'echo works'; i=0; while pgrep -f "^sleep ${mark}" > /dev/null && [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done; ${LEFT}`);
      expect(stdout).toBe(`works\n${left(tier)}\n`);
    });

    it('goes on by itself where the zygote was killed, and that is said', () => {
      const { stdout, stderr } = desk.inside(
        `$S -c 'echo one'; kill -KILL $(pgrep -n -P $PPID nd7-launch); sleep 0.5; $S -c 'echo two; exit 5'; echo $?`,
      );
      expect(stdout).toBe('one\ntwo\n5\n');
      expect(stderr).toContain('zygote has ended');
      expect(desk.of('alarm')).toEqual([{ reason: 'no broker', detail: 'the zygote has ended' }]);
    });

    it('is killed with the broker, and what comes after it goes on by itself', async () => {
      const mark = aWhile();
      const session = desk.start(
        `$S -c 'exec sleep ${mark}'; echo $?; $S -c 'echo after; exit 3'; echo $?; pgrep -f '^sleep ${mark}' || echo gone`,
      );
      let stdout = '';
      session.stdout?.on('data', (text: Buffer) => (stdout += text.toString()));
      await until('it runs', () => alive(mark));
      const broker = brokerOf(session.pid ?? 0);
      process.kill(broker, 'SIGKILL');
      await new Promise((done) => session.once('close', done));
      expect(stdout).toBe('137\nafter\n3\ngone\n');
    });

    it('ends with its keeper, and its end is told as unseen', () => {
      const mark = aWhile();
      const { stdout } = desk.inside(
        `$S -c 'exec sleep ${mark}' & p=$!; sleep 1; kill -KILL $(ps -o ppid= -p $(pgrep -f "^sleep ${mark}")); wait $p; echo $?; sleep 0.3; pgrep -f "^sleep ${mark}" || echo gone`,
      );
      expect(stdout).toBe('137\ngone\n');
      expect(desk.of('exec.end')[0]).toMatchObject({ signal: 9, lost: true });
    });

    it('nobody inside looks into the zygote or a keeper', () => {
      const { stdout } = desk.inside(
        `z=$(pgrep -n -P $PPID nd7-launch); cat /proc/$z/environ 2>/dev/null | wc -c; readlink /proc/$z/fd/* | wc -l; head -c 1 /proc/$z/mem 2>/dev/null | wc -c`,
      );
      expect(stdout).toBe('0\n0\n0\n');
    });

    it('nobody inside looks into what begins beside the agent, from its first instruction on', () => {
      const look = `for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || for f in 3 4 5 6 7 8 9; do [ ! -e $p/fd/$f ] || echo looked $p $f; done; done`;
      for (let i = 0; i < 5; i++) {
        const { stdout, stderr } = desk.inside(`for i in 1 2 3 4 5 6 7 8 9 10; do ${look}; done; echo done`);
        expect([stdout, stderr]).toEqual(['done\n', '']);
      }
    });

    it('goes on where another is asked for that no frame holds, which runs by itself', () => {
      writeFileSync(join(desk.project, 'large.py'), LARGE);
      const { stdout, stderr } = desk.inside(
        `ulimit -s unlimited; $S -c 'sleep 2; echo kept; exit 3' & p=$!; sleep 0.5; python3 large.py; wait $p; echo $?; $S -c 'echo after'`,
      );
      expect([stdout, stderr]).toEqual(['120000\nkept\n3\nafter\n', '']);
      expect(desk.of('alarm')).toEqual([]);
      expect(desk.of('exec.end').filter(({ direct }) => direct === true)).toHaveLength(1);
    });

    it('waits for nobody whose streams take their time to close', () => {
      writeFileSync(join(desk.project, 'linger.py'), LINGER);
      const { stdout } = desk.inside('python3 linger.py');
      expect(stdout).toBe('runs\n0\n');
    });

    it('is not taken from who says something else, holds everything or says nothing', () => {
      writeFileSync(join(desk.project, 'hostile.py'), HOSTILE);
      const { stdout } = desk.inside('python3 hostile.py; $S -c "echo still; exit 4"; echo $?');
      expect(stdout).toBe('refused 10\nstill\n4\n');
      expect(desk.of('alarm').filter(({ reason }) => reason === 'broker refused').length).toBeGreaterThan(9);
      // What was closed in their place ran nothing.
      expect(desk.of('exec')).toHaveLength(1);
    });

    it('is not taken from outside of the session, nor from another one', async () => {
      const mark = aWhile();
      const running = desk.start(`$S -c 'echo > up; sleep ${mark}'`);
      await until('it runs', () => alive(mark));
      const folder = spawnSync('sh', ['-c', `echo ${desk.home}/.nd7/run/s-*/`], { encoding: 'utf8' }).stdout.trim();
      const stub = `${folder}bash`;
      const asked = spawnSync(stub, ['-c', 'echo ran'], { encoding: 'utf8', ...user });
      if (tier === 'T1') {
        expect(asked).toMatchObject({ status: 126, stdout: '' });
        expect(asked.stderr).toContain('who asked is not inside this session');
      } else {
        // Nothing listens there: whoever is outside runs it outside.
        expect(asked).toMatchObject({ status: 0, stdout: 'ran\n' });
      }
      expect(desk.of('exec')).toHaveLength(1);
      expect(readFileSync(`/proc/${running.pid}/stat`, 'latin1')).not.toBe('');
      running.kill('SIGKILL');
      await until('what it ran has gone', () => !alive(mark));
    });

    it('leaves nothing behind when there are very many', () => {
      const { stdout, status } = desk.inside(
        `i=0; while [ $i -lt 200 ]; do $S -c "exit $((i % 5))"; [ $? = $((i % 5)) ] || echo wrong; i=$((i + 1)); done; sleep 0.3; ${LEFT}`,
      );
      expect([status, stdout]).toEqual([0, `${left(tier)}\n`]);
      expect(desk.of('exec.end')).toHaveLength(200);
    });

    it('is run once and ends as it ended, also where it is over before its keeper has read what it was sent', () => {
      const { stdout } = desk.inside(
        `i=0; while [ $i -lt 20 ]; do for j in 1 2 3 4 5 6 7 8; do { $S -c 'echo >> ran; exit 3'; [ $? = 3 ] || echo wrong; } & done; wait; i=$((i + 1)); done; wc -l < ran`,
      );
      expect(stdout).toBe('160\n');
    });

    it('is left to the agent where the person says so', () => {
      desk.options = ['--no-broker'];
      const { stdout } = desk.inside('echo $S; $S -c "echo by itself"');
      expect(stdout).toBe('/bin/bash\nby itself\n');
      expect(desk.of('exec')).toEqual([]);
    });
  });
});

/** What of the launcher's stands below the first process, and below that: the zygote, and the keepers of what runs. */
const LEFT = `z=$(pgrep -d, -P $PPID nd7-launch); echo $(pgrep -c -P $PPID nd7-launch) $(pgrep -c -P $z nd7-launch)`;
/** That of a session in which nothing runs: in T2 with the one that watches the first process. */
const left = (tier: Tier): string => (tier === 'T1' ? '1 0' : '2 0');

/** Of the processes that a front's launcher has made, the one that waits by epoll. */
function brokerOf(front: number): number {
  const below = (pid: number): number[] =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
  const waits = (pid: number): boolean =>
    readdirSync(`/proc/${pid}/fd`).some((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === 'anon_inode:[eventpoll]');
  const found = below(front)
    .filter((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('nd7-launch'))
    .flatMap(below)
    .find(waits);
  if (found === undefined) throw new Error('there is no broker');
  return found;
}

/** A shell in a terminal of its own, as an agent that shows one makes it: what it says of it, and what the keys of it do. */
const TERMINAL = String.raw`
import fcntl, os, pty, select, struct, sys, termios, time
shell, text = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else '''
python3 -c "import os; print('tty', os.isatty(0) and os.isatty(1), *os.get_terminal_size(0)[::-1])"
echo dev < /dev/tty && echo leads
trap 'echo interrupted' INT; echo ready; sleep 30; trap - INT
set -m; sleep 30 & echo job; kill -INT %1; wait %1; echo done $?
trap 'stty size' WINCH; echo resize; sleep 30 & wait; kill %% 2>/dev/null
exit 6'''
pid, fd = pty.fork()
if pid == 0:
    while struct.unpack('HHHH', fcntl.ioctl(0, termios.TIOCGWINSZ, b' ' * 8))[0] != 33: time.sleep(0.01)
    os.execv(shell, [shell, '-c', text])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 33, 101, 0, 0))
said = b''
sent = set()
while True:
    try: part = os.read(fd, 4096)
    except OSError: break
    if not part: break
    said += part
    if b'ready' in said and 'i' not in sent: sent.add('i'); time.sleep(0.3); os.write(fd, b'\x03')
    if b'resize' in said and 'r' not in sent: sent.add('r'); time.sleep(0.3); fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 20, 60, 0, 0))
_, status = os.waitpid(pid, 0)
print(said.decode().replace('\r', ''), os.waitstatus_to_exitcode(status))
`;

const HOSTILE = String.raw`
import array, os, socket, struct
def ask(data, fds):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(os.path.dirname(os.environ['CLAUDE_CODE_SHELL']) + '/exec')
    s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else [])
    s.settimeout(10)
    try: answer = s.recv(1024)
    except socket.timeout: answer = b''
    return len(answer) >= 4 and struct.unpack('<I', answer[:4])[0] == 5
M = b'nd7exec\x01'
touch = b'touch evil'
cases = [
    (b'', [0]), (b'x', []), (M, [0, 1, 2]), (M + struct.pack('<I', 7), [0, 1, 2]),
    (M + struct.pack('<I', 7) + touch + b'\0x', [0, 1, 2]), (M + struct.pack('<I', 7) + touch, [0, 1]),
    (M + struct.pack('<I', 7) + touch, [0, 1, 2, 0]), (M + struct.pack('<I', 7) + touch, []),
    (M + struct.pack('<I', 64) + touch, []), (M + struct.pack('<I', 7) + touch, [0] * 100),
    (M + struct.pack('<I', 7) + b'x' * 131073, [0, 1, 2]),
]
n = sum(ask(data, fds) for data, fds in cases)
assert not os.path.exists('evil')
print('refused', n)
held = []
for i in range(400):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.setblocking(False)
    try: s.connect(os.path.dirname(os.environ['CLAUDE_CODE_SHELL']) + '/exec')
    except BlockingIOError: pass
    held.append(s)
`;

/** A command with an environment of more than 5 MB. */
const LARGE = String.raw`
import os, subprocess
variables = dict(os.environ)
variables.update({'V%d' % i: 'x' * 120000 for i in range(45)})
subprocess.run([variables['CLAUDE_CODE_SHELL'], '-c', 'echo ' + chr(36) + '{#V1}'], env=variables)
`;

/** Hands a socket over that holds its closer for an hour, and keeps no other end of it; then a command is to run. */
const LINGER = String.raw`
import array, os, socket, struct, subprocess, time
door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
door.connect(os.path.dirname(os.environ['CLAUDE_CODE_SHELL']) + '/exec')
listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen(1)
full = socket.create_connection(listener.getsockname())
full.setblocking(False)
try:
    while True: full.send(b'x' * 65536)
except BlockingIOError: pass
full.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 3600))
door.sendmsg([b'no request'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [full.fileno()]))])
full.close()
time.sleep(0.3)
print(subprocess.run([os.environ['CLAUDE_CODE_SHELL'], '-c', 'echo runs'], timeout=60).returncode)
`;
