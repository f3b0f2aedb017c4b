// The real Claude Code client against a scripted model on loopback, in a throw-away home with nd7 attached by `nd7 init`.
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { python, referenceVerdict } from '@nd7/testing';

const REPOSITORY = join(import.meta.dirname, '../..');
const BIN = join(REPOSITORY, 'apps/agent/bin/nd7.js');
const FAKE = join(REPOSITORY, 'tests/fake-api');
/** The version the captures were made with; npm would pick an older one on Node 20. */
export const VERSION = '2.1.332';
export const CODEX_VERSION = '0.171.0';
const KEY = 'sk-dummy-loopback-only-0123456789';

/** Where real clients are installed for tests. */
export const clientsFolder = (): string => process.env['ND7_TEST_CACHE'] ?? join(REPOSITORY, '.cache/clients');

/** The client's binary, fetched from npm into a cache folder where it is not there yet; or why it cannot be had. */
export function findClient(): { path: string } | { problem: string } {
  const name = `claude-code-${process.platform}-${process.arch === 'arm64' ? 'arm64' : 'x64'}`;
  return fetched(`@anthropic-ai/claude-code@${VERSION}`, `@anthropic-ai/${name}/claude`);
}

/** The same of Codex: the script that its package has on PATH. */
export function findCodex(): { path: string } | { problem: string } {
  return fetched(`@openai/codex@${CODEX_VERSION}`, '@openai/codex/bin/codex.js');
}

/** A file of a package that is fetched from npm where it is not there yet; or why it cannot be had. */
export function fetched(spec: string, file: string): { path: string } | { problem: string } {
  // A folder for each: npm removes from one what it was not asked for this time, also while another test uses it.
  const cache = join(clientsFolder(), spec.replaceAll('/', '+'));
  const path = join(cache, 'node_modules', file);
  if (existsSync(path)) return { path };
  mkdirSync(cache, { recursive: true });
  const npm = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--no-save', '--prefix', cache, spec], {
    encoding: 'utf8',
    timeout: 600_000,
  });
  return existsSync(path)
    ? { path }
    : { problem: `npm could not fetch it: ${(npm.stderr ?? '').trim().split('\n').at(-1) ?? ''}` };
}

export const has = (program: string): boolean => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;

export interface Entry {
  seq: number;
  source: string;
  kind: string;
  data: Record<string, unknown>;
  peer?: Record<string, unknown>;
  detached?: { at: string; why: string; bytes?: number }[];
}

/** One throw-away home, project and model. */
export class World {
  readonly folder: string;
  readonly home: string;
  readonly project: string;
  readonly nd7Home: string;
  /** What stands before the client's command: nothing, or `nd7 run`. */
  before: readonly string[] = [];
  /** What clients and nd7 have said on stderr. */
  said = '';
  readonly children: ChildProcess[] = [];
  /** Of the model, on loopback. */
  port = 0;

  private constructor(
    private readonly client: string,
    parent: string,
  ) {
    this.folder = realpathSync(mkdtempSync(join(parent, 'nd7-e2e-')));
    this.home = join(this.folder, 'home');
    this.project = join(this.folder, 'project');
    this.nd7Home = join(this.home, '.nd7');
  }

  /** `scenarios` are added to those of tests/fake-api, by name. */
  static async make(
    client: string,
    scenarios: Record<string, unknown> = {},
    parent: string = tmpdir(),
  ): Promise<World> {
    const world = new World(client, parent);
    mkdirSync(join(world.home, '.claude'), { recursive: true });
    for (const folder of ['src', '.claude']) mkdirSync(join(world.project, folder), { recursive: true });
    spawnSync('git', ['init', '-q'], { cwd: world.project });
    writeFileSync(join(world.project, 'README.md'), '# a project\n');
    writeFileSync(join(world.project, 'CLAUDE.md'), 'Be brief.\n');
    const all = { ...(JSON.parse(readFileSync(join(FAKE, 'scenarios/claude.json'), 'utf8')) as object), ...scenarios };
    writeFileSync(join(world.folder, 'scenarios.json'), JSON.stringify(all));
    await world.startModel();
    return world;
  }

  /** `nd7` in this world; throws when it fails. */
  nd7(...args: string[]): string {
    const ran = spawnSync(process.execPath, [BIN, ...args], {
      cwd: this.project,
      env: this.environment(),
      encoding: 'utf8',
    });
    if (ran.status !== 0) throw new Error(`nd7 ${args.join(' ')}: exit ${ran.status}\n${ran.stdout}${ran.stderr}`);
    return ran.stdout;
  }

  environment(more: Record<string, string> = {}): Record<string, string> {
    return {
      PATH: process.env['PATH'] ?? '/usr/bin:/bin',
      HOME: this.home,
      LANG: 'C.UTF-8',
      TERM: 'xterm-256color',
      SHELL: '/bin/bash',
      USER: 'dev',
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${this.port}`,
      ANTHROPIC_API_KEY: KEY,
      DISABLE_TELEMETRY: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_ERROR_REPORTING: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      // Whatever else would like to leave meets a closed door.
      HTTPS_PROXY: 'http://127.0.0.1:9',
      HTTP_PROXY: 'http://127.0.0.1:9',
      NO_PROXY: '127.0.0.1,localhost',
      ...more,
    };
  }

  /** Starts the client headless; `output` is its stream of JSON lines once it has ended. */
  start(prompt: string, args: string[] = []): { child: ChildProcess; output: Promise<Record<string, unknown>[]> } {
    const [program = this.client, ...words] = [...this.before, this.client];
    const child = spawn(
      program,
      [
        ...words,
        '-p',
        prompt,
        '--output-format',
        'stream-json',
        '--verbose',
        '--allowedTools',
        'Bash,Read,Write,Edit,Agent',
        ...args,
      ],
      {
        cwd: this.project,
        env: this.environment(),
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    this.children.push(child);
    let text = '';
    child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    child.stderr?.on('data', (chunk: Buffer) => (this.said += chunk.toString()));
    const output = new Promise<Record<string, unknown>[]>((resolve) =>
      child.once('close', () =>
        resolve(
          Buffer.from(text, 'latin1')
            .toString()
            .split('\n')
            .filter((line) => line.startsWith('{'))
            .map((line) => JSON.parse(line) as Record<string, unknown>),
        ),
      ),
    );
    return { child, output };
  }

  run(prompt: string, args: string[] = []): Promise<Record<string, unknown>[]> {
    return this.start(prompt, args).output;
  }

  /** Every transcript that the client has written. */
  transcripts(): string[] {
    const folder = join(this.home, '.claude/projects');
    if (!existsSync(folder)) return [];
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.jsonl'))
      .map((name) => join(folder, name));
  }

  sessions(): string[] {
    const folder = join(this.nd7Home, 'sessions');
    return existsSync(folder) ? readdirSync(folder) : [];
  }

  entries(session: string): Entry[] {
    const path = join(this.nd7Home, 'sessions', session, 'log.jsonl');
    if (!existsSync(path)) return [];
    return readFileSync(path, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Entry);
  }

  /** The session's verdict by the product; where python3 is there the independent reading must say the same. */
  verdict(session: string): { verdict: string; entries: number; reason?: string } {
    const report = JSON.parse(this.nd7('verify', session, '--json')) as {
      verdict: string;
      entries: number;
      reason?: string;
    };
    if (python() !== '') {
      const reference = referenceVerdict(session, join(this.nd7Home, 'sessions', session));
      if (reference.verdict !== report.verdict) throw new Error(`nd7ref.py: ${reference.text}`);
    }
    return report;
  }

  async end(): Promise<void> {
    for (const child of this.children) child.kill('SIGKILL');
    spawnSync(process.execPath, [BIN, 'recorder', '--stop'], { env: this.environment() });
    await until('the recorder is gone', () => !existsSync(join(this.nd7Home, 'run/hook')));
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }

  private async startModel(): Promise<void> {
    this.port = await new Promise<number>((resolve) => {
      const probe = createServer().listen(0, '127.0.0.1', () => {
        const at = probe.address();
        probe.close(() => resolve(typeof at === 'object' && at !== null ? at.port : 0));
      });
    });
    const model = spawn(
      process.execPath,
      [join(FAKE, 'fake-llm.mjs'), '--port', String(this.port), '--scenarios', join(this.folder, 'scenarios.json')],
      {
        cwd: this.project,
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    this.children.push(model);
    await new Promise<void>((resolve, reject) => {
      model.stdout?.once('data', () => resolve());
      model.once('exit', (code) => reject(new Error(`the model ended with ${code}`)));
    });
  }
}

export async function until(what: string, condition: () => boolean, limitMs = 120_000): Promise<void> {
  const end = performance.now() + limitMs;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The tool calls in a client's stream of output: the truth the log is held against. */
export function callsIn(output: readonly Record<string, unknown>[]): { id: string; name: string; input: unknown }[] {
  return output.flatMap((line) => {
    const content = (line['message'] as { content?: unknown } | undefined)?.content;
    if (line['type'] !== 'assistant' || !Array.isArray(content)) return [];
    return content.flatMap((block: { type?: string; id?: string; name?: string; input?: unknown }) =>
      block.type === 'tool_use' ? [{ id: block.id ?? '', name: block.name ?? '', input: block.input }] : [],
    );
  });
}

export const sessionIn = (output: readonly Record<string, unknown>[]): string =>
  String(output.find((line) => typeof line['session_id'] === 'string')?.['session_id'] ?? '');
