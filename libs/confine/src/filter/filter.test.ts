// The filter is run by an interpreter of its own, written from the kernel's documentation, and compared with rules that stand here in words.
import fc from 'fast-check';
import { callFilter } from './filter.js';
import { ALLOW, ARCH, ASK, EACCES, EAFNOSUPPORT, ENOSYS, EPERM, args, expected, interpret } from './filter.fixture.js';
import { allowedCalls, refusedCalls, type Architecture } from './syscalls.js';

describe.each<Architecture>(['x86_64', 'aarch64'])('the filter for %s', (architecture) => {
  const program = callFilter(architecture, { scoped: true });
  const allowed = allowedCalls(architecture);
  const refused = refusedCalls(architecture);
  const run = (number: number, values: bigint[], arch = ARCH[architecture]): string =>
    interpret(program, { arch, number, args: values });

  it('is as short as the kernel takes it, and no number stands in both lists', () => {
    expect(program.length % 8).toBe(0);
    expect(program.length / 8).toBeLessThan(600);
    const numbers = [...allowed.values(), ...refused.values()];
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  it('lets what is listed pass as its arguments say', () => {
    for (const [name, number] of allowed)
      fc.assert(
        fc.property(args, (values) => {
          expect([name, run(number, values)]).toEqual([name, expected(name, values)]);
        }),
        { numRuns: ['socket', 'clone', 'ioctl', 'seccomp', 'mknodat'].includes(name) ? 1000 : 30 },
      );
  });

  it('refuses signals to the own process group where Landlock does not keep them inside, and nothing else besides', () => {
    const unscoped = callFilter(architecture, { scoped: false });
    const number = allowed.get('kill') as number;
    fc.assert(
      fc.property(args, fc.constantFrom(...allowed.values()), (values, other) => {
        const call = { arch: ARCH[architecture], number: other, args: values };
        const isGroup = other === number && (values[0] as bigint) % 2n ** 32n === 0n;
        expect(interpret(unscoped, call)).toBe(isGroup ? EPERM : interpret(program, call));
      }),
    );
    expect(interpret(unscoped, { arch: ARCH[architecture], number, args: [2n ** 32n, 9n, 0n, 0n, 0n, 0n] })).toBe(
      EPERM,
    );
  });

  it('asks a supervisor about every call that makes or moves a name or opens one for writing, and answers the others as ever', () => {
    const observed = callFilter(architecture, { scoped: true, observed: true });
    expect(observed.length / 8).toBeLessThan(700);
    const asked =
      'creat mkdir mkdirat symlink symlinkat link linkat rename renameat renameat2 unlink unlinkat rmdir chmod fchmodat truncate umask execve execveat connect bind'.split(
        ' ',
      );
    const answer = (name: string, values: bigint[]): string => {
      const low = values.map((value) => Number(value & 0xffffffffn));
      if (asked.includes(name)) return ASK;
      if (name === 'utimensat') return values[1] === 0n ? ALLOW : ASK;
      if (name === 'openat2' || name.startsWith('landlock_')) return ENOSYS;
      const before = expected(name, values);
      // No pair of datagrams, which sends to any path.
      if (name === 'socketpair')
        return before === ALLOW && ![1, 5].includes((low[1] as number) & 0xf) ? EACCES : before;
      if (name === 'mknod' || name === 'mknodat') return before === ALLOW ? ASK : before;
      if (name !== 'open' && name !== 'openat') return before;
      const flags = low[name === 'open' ? 1 : 2] as number;
      // O_PATH; O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, __O_TMPFILE.
      if ((flags & 0o10000000) !== 0) return ALLOW;
      return (flags & (3 | 0o100 | 0o1000 | 0o20000000)) !== 0 ? ASK : ALLOW;
    };
    for (const [name, number] of allowed)
      fc.assert(
        fc.property(args, (values) => {
          const got = interpret(observed, { arch: ARCH[architecture], number, args: values });
          expect([name, got]).toEqual([name, answer(name, values)]);
        }),
        { numRuns: ['open', 'openat', 'mknod', 'mknodat', 'socketpair'].includes(name) ? 1000 : 30 },
      );
    for (const number of refused.values())
      expect(interpret(observed, { arch: ARCH[architecture], number, args: Array(6).fill(0n) as bigint[] })).toBe(
        EPERM,
      );
  });

  it('lets a supervisor look besides at what is read and looked at where a session learns, and refuses nothing less', () => {
    const observed = callFilter(architecture, { scoped: true, observed: true });
    const learns = callFilter(architecture, { scoped: true, observed: true, learns: true });
    expect(callFilter(architecture, { scoped: true, learns: true })).toEqual(program);
    const looked = (
      'open openat access faccessat faccessat2 stat lstat newfstatat statx readlink readlinkat ' +
      'unlink unlinkat rmdir chmod fchmodat connect bind'
    ).split(' ');
    for (const [name, number] of [...allowed, ...refused])
      fc.assert(
        fc.property(args, (values) => {
          const call = { arch: ARCH[architecture], number, args: values };
          const before = interpret(observed, call);
          const now = interpret(learns, call);
          const flags = Number((values[name === 'open' ? 1 : 2] as bigint) & 0xffffffffn);
          const isOpen = name === 'open' || name === 'openat';
          const wanted = looked.includes(name) && !(isOpen && (flags & 0o10000000) !== 0) ? ASK : before;
          expect([name, now]).toEqual([name, wanted]);
        }),
        { numRuns: 20 },
      );
  });

  it('asks besides, where no mounts and namespaces hold, about what those would', () => {
    const zero = (name: string, low: number[]): bigint[] => [...low.map(BigInt), 0n, 0n, 0n, 0n, 0n, 0n].slice(0, 6);
    const bare = (scoped: boolean, asksReads = false) => {
      const built = callFilter(architecture, { scoped, observed: true, bare: true, asksReads });
      expect(built.length / 8).toBeLessThan(900);
      return (name: string, ...low: number[]): string => {
        const number = allowed.get(name);
        if (number === undefined) return 'not here';
        const got = interpret(built, { arch: ARCH[architecture], number, args: zero(name, low) });
        // The upper half of an argument is nothing to the kernel.
        const high = zero(name, low).map((value) => value + (7n << 32n));
        expect([name, interpret(built, { arch: ARCH[architecture], number, args: high })]).toEqual([name, got]);
        return got;
      };
    };
    const [ask, unscoped, reads] = [bare(true), bare(false), bare(true, true)];
    for (const name of [
      'unlink',
      'unlinkat',
      'rmdir',
      'chmod',
      'fchmod',
      'fchmodat',
      'fchmodat2',
      'lchown',
      'fchownat',
    ])
      expect([name, ask(name)]).toEqual([name, allowed.has(name) ? ASK : 'not here']);
    for (const name of ['utime', 'utimensat', 'setxattr', 'fremovexattr', 'connect', 'bind', 'listen'])
      expect([name, ask(name)]).toEqual([name, allowed.has(name) ? ASK : 'not here']);
    for (const name of ['shmget', 'semop', 'msgget', 'mq_open']) expect([name, ask(name)]).toEqual([name, EPERM]);
    for (const name of ['setxattrat', 'file_setattr']) expect([name, ask(name)]).toEqual([name, ENOSYS]);
    // A call that means the caller itself goes on.
    for (const name of ['prlimit64', 'sched_setaffinity', 'sched_setattr'])
      expect([ask(name, 0), ask(name, 5)]).toEqual([ALLOW, ASK]);
    expect([ask('setpriority', 0, 0), ask('setpriority', 0, 9), ask('setpriority', 2, 0)]).toEqual([ALLOW, ASK, EPERM]);
    expect([ask('ioprio_set', 1, 0), ask('ioprio_set', 1, 9), ask('ioprio_set', 3, 0)]).toEqual([ALLOW, ASK, EPERM]);
    expect([ask('ioctl', 3, 0x40086602), ask('ioctl', 3, 0x401c5820), ask('ioctl', 3, 0x5412)]).toEqual(
      Array(3).fill(EPERM),
    );
    // Streams alone; netlink and datagrams would reach the machine's own network.
    expect([ask('socket', 1, 1), ask('socket', 1, 5), ask('socket', 1, 2), ask('socket', 2, 1, 6)]).toEqual([
      ...[ALLOW, ALLOW, EACCES, ALLOW],
    ]);
    expect([ask('socket', 2, 2), ask('socket', 10, 1, 262), ask('socket', 16, 0o2000003)]).toEqual([
      ...[EACCES, EACCES, EAFNOSUPPORT],
    ]);
    expect([
      ask('socketpair', 1, 1),
      ask('socketpair', 1, 5),
      ask('socketpair', 1, 2),
      ask('socketpair', 2, 1),
    ]).toEqual([...[ALLOW, ALLOW, EACCES, EAFNOSUPPORT]]);
    // Landlock keeps signals inside, or the supervisor does.
    for (const name of ['kill', 'tkill', 'tgkill', 'rt_sigqueueinfo', 'rt_tgsigqueueinfo'])
      expect([ask(name, 7), unscoped(name, 7)]).toEqual([ALLOW, ASK]);
    expect(unscoped('pidfd_send_signal')).toBe(ENOSYS);
    for (const owner of [8, 15]) expect([ask('fcntl', 3, owner), unscoped('fcntl', 3, owner)]).toEqual([ALLOW, EPERM]);
    for (const owner of [0x8901, 0x8902])
      expect([ask('ioctl', 3, owner), unscoped('ioctl', 3, owner)]).toEqual([ALLOW, EPERM]);
    expect([ask('openat', 3, 0, 0), reads('openat', 3, 0, 0), reads('openat', 3, 0, 0o10000000)]).toEqual([
      ...[ALLOW, ASK, ALLOW],
    ]);
  });

  it('answers alone where nobody is asked: with no question but about a terminal’s other end, and by the Landlock that holds the rest', () => {
    const alone = (landlock: number) => {
      const built = callFilter(architecture, { scoped: landlock >= 6, alone: landlock });
      expect(built.length / 8).toBeLessThan(900);
      return (name: string, ...low: number[]): string => {
        const number = allowed.get(name);
        const args = [...low.map(BigInt), 0n, 0n, 0n, 0n, 0n, 0n].slice(0, 6);
        return number === undefined ? 'not here' : interpret(built, { arch: ARCH[architecture], number, args });
      };
    };
    const [nine, six, five, three, two] = [alone(9), alone(6), alone(5), alone(3), alone(2)];
    fc.assert(
      fc.property(fc.constantFrom(...allowed.keys()), args, (name, values) =>
        [nine, six, two].every(
          (run) =>
            (name === 'ioctl' && (values[1] ?? 0n) % (1n << 32n) === 0x5441n) ||
            run(name, ...values.map((value) => Number(value & 0xffffffffn))) !== ASK,
        ),
      ),
    );
    for (const name of ['chmod', 'fchmodat', 'utimensat', 'unlinkat', 'connect', 'bind', 'listen', 'execve', 'rename'])
      expect([name, six(name)]).toEqual([name, allowed.has(name) ? ALLOW : 'not here']);
    for (const name of ['setxattr', 'fremovexattr', 'shmget', 'semop', 'mq_open'])
      expect([name, six(name)]).toEqual([name, EPERM]);
    for (const name of ['setxattrat', 'file_setattr']) expect([name, six(name)]).toEqual([name, ENOSYS]);
    for (const name of ['prlimit64', 'sched_setaffinity', 'sched_setattr'])
      expect([six(name, 0), six(name, 5)]).toEqual([ALLOW, EPERM]);
    expect([six('setpriority', 0, 0), six('setpriority', 0, 9), six('ioprio_set', 1, 9)]).toEqual([
      ALLOW,
      EPERM,
      EPERM,
    ]);
    for (const run of [nine, six, five])
      expect([run('ioctl', 3, 0x5441), run('ioctl', 3, 0x5412), run('ioctl', 3, 0x5401)]).toEqual([ASK, EPERM, ALLOW]);
    // Unix sockets only in pairs before Landlock tells them apart; TCP where its ports are told apart.
    expect([six('socket', 1, 1), six('socket', 1, 5), six('socketpair', 1, 1), six('socketpair', 1, 2)]).toEqual([
      ...[EACCES, EACCES, ALLOW, EACCES],
    ]);
    expect([
      nine('socket', 1, 1),
      nine('socket', 1, 0o2000005),
      nine('socket', 1, 2),
      nine('socketpair', 1, 2),
    ]).toEqual([...[ALLOW, ALLOW, EACCES, EACCES]]);
    expect([six('socket', 2, 1), six('socket', 10, 1, 6), six('socket', 2, 1, 262), six('socket', 2, 2)]).toEqual([
      ...[ALLOW, ALLOW, EACCES, EACCES],
    ]);
    expect([three('socket', 2, 1), three('socket', 10, 1, 6), six('socket', 16, 0o2000003)]).toEqual([
      ...[EACCES, EACCES, EAFNOSUPPORT],
    ]);
    // What cuts a file short without opening it to write.
    const [cuts, writes] = [0o1000, 0o1001];
    expect([two('openat', 3, 0, cuts), two('openat', 3, 0, writes), two('openat2'), two('truncate')]).toEqual([
      ...[EACCES, ALLOW, ENOSYS, EACCES],
    ]);
    expect([three('openat', 3, 0, cuts), three('openat2'), three('truncate')]).toEqual([ALLOW, ALLOW, ALLOW]);
    for (const owner of [8, 15]) expect([six('fcntl', 3, owner), five('fcntl', 3, owner)]).toEqual([ALLOW, EPERM]);
    expect([six('ioctl', 3, 0x8901), five('ioctl', 3, 0x8901), six('ioctl', 3, 0x40086602)]).toEqual([
      ...[ALLOW, EPERM, EPERM],
    ]);
  });

  it('refuses what is known and not listed with EPERM, and all else with ENOSYS', () => {
    for (const number of refused.values())
      expect([number, run(number, Array(6).fill(0n) as bigint[])]).toEqual([number, EPERM]);
    const known = new Set([...allowed.values(), ...refused.values()]);
    for (let number = 0; number < 1200; number++)
      if (!known.has(number)) expect([number, run(number, Array(6).fill(0n) as bigint[])]).toEqual([number, ENOSYS]);
    fc.assert(
      fc.property(fc.integer({ min: 1200, max: 0xffffffff }), args, (number, values) => run(number, values) === ENOSYS),
    );
  });

  it('refuses every number of another architecture, and of x32', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 0xffffffff }),
        fc.integer({ min: 0, max: 600 }),
        args,
        (arch, number, values) => (arch === ARCH[architecture] ? true : run(number, values, arch) === ENOSYS),
      ),
    );
    for (const number of allowed.values()) {
      expect(run(number, Array(6).fill(0n) as bigint[], 0x40000003)).toBe(ENOSYS);
      if (architecture === 'x86_64') expect(run(number + 0x40000000, Array(6).fill(0n) as bigint[])).toBe(ENOSYS);
    }
  });

  it('lists what programs cannot do without', () => {
    for (const name of [
      'read',
      'write',
      'openat',
      'execve',
      'exit_group',
      'mmap',
      'futex',
      'clone',
      'wait4',
      'ptrace',
      'connect',
    ])
      expect(allowed.has(name)).toBe(true);
    for (const name of [
      'mount',
      'umount2',
      'bpf',
      'keyctl',
      'add_key',
      'userfaultfd',
      'setns',
      'perf_event_open',
      'pidfd_getfd',
    ])
      expect(refused.has(name)).toBe(true);
    for (const name of ['clone3', 'io_uring_setup']) expect(allowed.has(name) || refused.has(name)).toBe(false);
  });
});
