import type { Command } from 'commander';
import type { Answer, Question, Ruleset, Source } from '@nd7/policy';
import { CliError, type Io } from '../cli/io.js';

interface WhyOptions {
  read?: boolean;
  write?: boolean;
  exec?: boolean;
  socket?: boolean;
  listen?: boolean;
  loopback?: boolean;
  profile?: string;
  for?: string;
  session?: string | boolean;
}

/** `nd7 why WHAT`: allowed or denied, by which rule, and the nearest way that is open. */
export function register(program: Command, io: Io): void {
  program
    .command('why')
    .description('say whether a session may use a path, host, port or variable, by which rule, and what it may instead')
    .argument('<what>', 'a path, a host or host:port, $VARIABLE; a port with --listen or --loopback')
    .option('--read', 'of a path: reading only')
    .option('--write', 'of a path: writing only')
    .option('--exec', 'of a path: running only')
    .option('--socket', 'the path is a socket to connect to')
    .option('--listen', 'a port that a server inside is reached on')
    .option('--loopback', 'a port of this machine’s own services')
    .option('--profile <name>', 'the rules, in place of what your policy extends')
    .option('--for <program>', 'the program that would be run: claude and codex bring their pack')
    .option('--session [id]', 'by the rules of a session that lives, what was granted and denied it included')
    .addHelpText(
      'after',
      '\nThe answer is that of the rules which `nd7 run` would start with here (of a session’s own with --session), and changes nothing. docs/policy.md',
    )
    .action((what: string, options: WhyOptions) => whyCommand(what, options, io));
}

async function whyCommand(what: string, options: WhyOptions, io: Io): Promise<void> {
  const { rulesetHere, homeOf } = await import('../policy/here.js');
  const { pathOf, factsOf } = await import('../policy/facts.js');
  const { why } = await import('@nd7/policy');
  const ruleset =
    options.session === undefined || options.session === false
      ? rulesetHere(io, options.profile ?? null, options.for ?? '').ruleset
      : await rulesetOf(options.session === true ? undefined : options.session, io);
  // What a living session has is its tier’s, which its rules do not say.
  const facts = { ...factsOf(), ...(options.session ? {} : { ownFolders: ['/var/tmp'] }) };
  const path = pathOf(what, io.cwd, homeOf(io));
  const questions = questionsOf(what, path, options);
  // A rule may name the link or what it leads to: either denies.
  const answers = questions.map((question) => {
    const asSaid = 'path' in question && path !== null ? why(ruleset, { ...question, path: path.said }, facts) : null;
    return asSaid?.outcome === 'denied' ? asSaid : why(ruleset, question, facts);
  });
  if (io.isJson) io.json({ what, leads_to: path?.leadsTo ?? null, answers: answers.map(asJson) });
  else await print(answers, path?.leadsTo ?? null, io);
}

/** What holds in a living session at this moment. */
async function rulesetOf(session: string | undefined, io: Io): Promise<Ruleset> {
  const { sessionFor, askSession } = await import('../grants/find.js');
  const found = await sessionFor(io, session);
  return (await askSession<{ ruleset: Ruleset }>(found, 'rules', {})).ruleset;
}

function questionsOf(what: string, path: { path: string; isSocket: boolean } | null, options: WhyOptions): Question[] {
  if (options.listen === true || options.loopback === true) {
    const port = Number(what);
    if (!/^[1-9]\d{0,4}$/.test(what) || port > 65_535)
      throw new CliError(2, `"${what}" is no port`, 'A port is a number from 1 to 65535.');
    return [{ about: options.listen === true ? 'listen' : 'loopback', port }];
  }
  if (/^\$[A-Za-z_]\w*$/.test(what)) return [{ about: 'variable', name: what.slice(1) }];
  if (path === null) return [{ about: 'host', authority: what }];
  if (options.socket === true || path.isSocket) return [{ about: 'socket', path: path.path }];
  const all = ['read', 'write', 'exec'] as const;
  const asked = all.filter((right) => options[right] === true);
  return (asked.length > 0 ? asked : all).map((about) => ({ about, path: path.path }));
}

function asJson({ question, outcome, by, source, reason, instead }: Answer): object {
  return {
    about: question.about,
    outcome,
    by,
    reason,
    rule: source && {
      policy: source.policy,
      layer: source.layer,
      file: source.file,
      line: source.line,
      text: source.text,
    },
    instead: instead.map((way) => way.text),
  };
}

async function print(answers: Answer[], leadsTo: string | null, io: Io): Promise<void> {
  const { safeLine } = await import('../show/safe.js');
  if (leadsTo !== null) io.out(io.paint('dim', `that is ${safeLine(leadsTo)}`));
  for (const { outcome, reason, source, instead } of answers) {
    io.out(
      `${io.paint(outcome === 'denied' ? 'red' : outcome === 'allowed' ? 'green' : 'yellow', outcome.padEnd(8))}  ${safeLine(reason)}`,
    );
    if (source !== null) io.out(`          ${io.paint('dim', 'rule')}  ${safeLine(ruleText(source))}`);
    for (const { text } of instead) io.out(`          ${io.paint('dim', 'or')}    ${safeLine(text)}`);
  }
}

/** Where a rule stands, and the rule: `~/.nd7/policy.jsonc:4 (user) files.read.deny: ~/diary`. */
export function ruleText({ file, line, layer, policy, text }: Source): string {
  if (file === null) return `${layer} ${policy}, ${text}`;
  return `${file}${line === null ? '' : `:${line}`} (${layer}), ${text}`;
}
