// Reads and evaluates the part of SBPL that `compile.ts` writes, under both orders that are told of: the first rule that matches decides, or the last.

type Expression = string | { text: string } | Expression[];

export interface Asked {
  operation: string;
  path?: string;
  /** `localhost:3128` */
  remote?: string;
}

/** Parses a whole profile. Throws for what is no expression. */
export function parse(text: string): Expression[] {
  const tokens: string[] = [];
  const token = /\s*([()]|"(?:[^"\\]|\\.)*"|[^\s()"]+)\s*/gsy;
  for (let end = 0; end < text.length; end = token.lastIndex) {
    const found = token.exec(text)?.[1];
    if (found === undefined) throw new Error(`no expression: ${text.slice(end, end + 40)}`);
    tokens.push(found);
  }
  let at = 0;
  const read = (): Expression => {
    const token = tokens[at++];
    if (token === undefined || token === ')') throw new Error('an expression without an end');
    if (token.startsWith('"')) return { text: token.slice(1, -1).replace(/\\(.)/gs, '$1') };
    if (token !== '(') return token;
    const list: Expression[] = [];
    while (tokens[at] !== ')') list.push(read());
    at++;
    return list;
  };
  const all: Expression[] = [];
  while (at < tokens.length) all.push(read());
  return all;
}

export class Evaluator {
  readonly #rules: { allow: boolean; operations: string[]; filters: Expression[]; noSandbox: boolean }[] = [];

  constructor(
    profile: { text: string; parameters: Readonly<Record<string, string>> },
    private readonly order: 'first' | 'last',
  ) {
    const [version, ...rules] = parse(profile.text);
    if (JSON.stringify(version) !== '["version","1"]') throw new Error('no version');
    this.parameters = profile.parameters;
    for (const rule of rules) {
      const [verb, ...rest] = rule as Expression[];
      const operations = rest.filter((one) => typeof one === 'string');
      const filters = rest.filter((one) => typeof one !== 'string');
      const noSandbox = filters.some((one) => JSON.stringify(one) === '["with","no-sandbox"]');
      if ((verb !== 'allow' && verb !== 'deny') || operations.length === 0)
        throw new Error(`no rule: ${JSON.stringify(rule)}`);
      this.#rules.push({
        allow: verb === 'allow',
        operations,
        filters: filters.filter((one) => (one as Expression[])[0] !== 'with'),
        noSandbox,
      });
    }
  }

  readonly parameters: Readonly<Record<string, string>>;

  decide(asked: Asked): { allow: boolean; noSandbox: boolean } {
    const found = this.#rules.filter(
      ({ operations, filters }) =>
        operations.some((one) => one !== 'default' && matchesOperation(one, asked.operation)) &&
        (filters.length === 0 || filters.some((filter) => this.#holds(filter, asked))),
    );
    const rule = this.order === 'first' ? found[0] : found.at(-1);
    return { allow: rule?.allow ?? false, noSandbox: rule?.noSandbox ?? false };
  }

  #holds(filter: Expression, asked: Asked): boolean {
    const [name, ...args] = filter as Expression[];
    switch (name) {
      case 'require-all':
        return args.every((one) => this.#holds(one, asked));
      case 'require-any':
        return args.some((one) => this.#holds(one, asked));
      case 'require-not':
        return !this.#holds(args[0] as Expression, asked);
      case 'literal':
        return asked.path === this.#text(args[0] as Expression);
      case 'subpath': {
        const folder = this.#text(args[0] as Expression);
        return (
          asked.path !== undefined && (folder === '/' || asked.path === folder || asked.path.startsWith(`${folder}/`))
        );
      }
      case 'regex':
        return asked.path !== undefined && this.#regex(args[0] as Expression).test(asked.path);
      case 'remote':
        return args[0] === 'tcp' && asked.remote === this.#text(args[1] as Expression);
      // Of processes, services and addresses of its own nothing is asked here.
      case 'target':
      case 'local':
      case 'global-name':
      case 'extension':
        return false;
      default:
        throw new Error(`no filter: ${JSON.stringify(filter)}`);
    }
  }

  readonly #compiled = new Map<Expression, RegExp>();

  #regex(expression: Expression): RegExp {
    const regex = this.#compiled.get(expression) ?? new RegExp(this.#text(expression));
    this.#compiled.set(expression, regex);
    return regex;
  }

  #text(expression: Expression): string {
    if (!Array.isArray(expression)) return typeof expression === 'string' ? expression : expression.text;
    const [name, ...args] = expression;
    const texts = args.map((one) => this.#text(one));
    if (name === 'string-append') return texts.join('');
    if (name === 'regex-quote')
      return (texts[0] as string).replace(/[^A-Za-z0-9_/]/gu, (c) => (c.length > 1 || c > '\x7f' ? c : `\\${c}`));
    if (name !== 'param') throw new Error(`no text: ${JSON.stringify(expression)}`);
    const value = this.parameters[texts[0] as string];
    if (value === undefined) throw new Error(`no parameter ${texts[0]}`);
    return value;
  }
}

/** `file-read*` is all that begins with `file-read`. */
function matchesOperation(rule: string, operation: string): boolean {
  return rule === operation || (rule.endsWith('*') && operation.startsWith(rule.slice(0, -1)));
}
