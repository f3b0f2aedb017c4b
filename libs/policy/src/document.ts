import { z } from 'zod';
import { PROPERTIES } from './ruleset.js';
import type { Property } from './ruleset.js';

/*
 * The form of a policy file. Every field says what it means when it is absent and when it is empty; a test holds them to it, and the JSON
 * schema (docs/policy.schema.json) is made from here.
 */

/** Enough for any policy that a person reads; keeps what follows cheap on a hostile project file. */
const MAX_RULES = 1_000;
const text = z.string().min(1).max(1_024);
const list = (what: string) => z.array(text).max(MAX_RULES).describe(what);
/** Masks are compared with every path that is named: fewer of them. */
const MAX_MASKS = 100;
const shortList = (what: string) => z.array(text).max(32).describe(what);

const places =
  'Paths begin with `/`, `~`, `.` (the project), `$TMP`, `$ND7_HOME` or a variable such as `$CARGO_HOME`, and hold for the path and everything below it; the longest path decides.';

const pathRules = (right: string, implied: string) =>
  z
    .strictObject({
      allow: list(`Paths that may be ${right}.${implied} Absent or empty: this policy allows none.`).optional(),
      deny: list(`Paths that may not be ${right}. Absent or empty: this policy denies none.`).optional(),
      only: list(
        `A ceiling: nothing but these may be ${right}, whoever allows it. It allows nothing by itself. Absent: no ceiling. Empty: nothing at all.`,
      ).optional(),
    })
    .describe(`What may be ${right}. Absent or empty: this policy says nothing of it.`);

export const FilesSection = z
  .strictObject({
    read: pathRules('read', '').optional(),
    write: pathRules('written, made, renamed and removed', ' What may be written may be read.').optional(),
    exec: pathRules('run as a program', ' Only what may be read can be run.').optional(),
  })
  .describe(
    `Files and folders. ${places} What may not be read is hidden. Absent or empty: this policy says nothing of files.`,
  );

export const MaskRule = z.union([
  text,
  z.strictObject({
    pattern: text.describe(
      'Components split at `/`; `*` is any run of characters in one, `**` any number of them: `**/.env*`. Never absent or empty.',
    ),
    under: shortList('Folders below which it holds. Absent: the project. Empty: nowhere.').optional(),
    except: shortList('Patterns that are let out. Absent or empty: none.').optional(),
    exceptTracked: z
      .boolean()
      .describe(
        'Whether files that git tracks are let out, and with them what a session makes itself, which may be what git checks out. Absent: `true`, since masking them breaks checkout and stash.',
      )
      .optional(),
  }),
]);

const protectedNames = (what: string) =>
  list(
    what +
      ' A name or pattern holds at any depth in the project (`.vscode`, `.github/hooks`, `*.code-workspace`); `./x`, `~/x` and `/x` hold there alone; `git:x` holds in every git directory. Absent or empty: this policy names none.',
  ).optional();

export const ProtectSection = z
  .strictObject({
    refuse: protectedNames('Names that are not made, changed, renamed or removed, present at the start or not.'),
    record: protectedNames(
      'Names that may be changed; each change is recorded as something that will run or be trusted later.',
    ),
    mediate: z
      .array(
        z.strictObject({
          name: text.describe('A name as in `refuse`. Never absent or empty.'),
          by: z
            .enum(['git-config', 'git-pointer', 'claude-state'])
            .describe('What reads the change and says what may pass. Never absent.'),
          below: z.boolean().describe('Whether it holds for everything below. Absent: `false`.').optional(),
        }),
      )
      .max(MAX_RULES)
      .describe('Files whose change is let through as far as it runs nothing. Absent or empty: this policy names none.')
      .optional(),
    release: protectedNames('Names to take out of the protection, written as they stand there.'),
  })
  .describe(
    'Names in writable folders that something outside will run or trust later. Absent or empty: this policy adds none and releases none.',
  );

export const HostEntry = z.union([
  text,
  z.strictObject({
    host: text.describe(
      'Host and ports: `example.com` (port 443), `example.com:8443`, `*.example.com:8000-8100`, `example.com:*`, `192.0.2.1:443`, `*` (every name). Never absent or empty.',
    ),
    raw: z
      .boolean()
      .describe('Whether the tunnel may carry something else than TLS with this very name (ssh). Absent: `false`.')
      .optional(),
    privateAddresses: z
      .boolean()
      .describe(
        'Whether the name may lead to private addresses. Loopback, link-local and metadata addresses never. Absent: `false`.',
      )
      .optional(),
  }),
]);

const hosts = (what: string) => z.array(HostEntry).max(MAX_RULES).describe(what).optional();
const ports = (what: string) =>
  z
    .array(z.union([z.int().min(1).max(65_535), z.string().regex(/^\d{1,5}(-\d{1,5})?$/)]))
    .max(MAX_RULES)
    .describe(what)
    .optional();

export const NetworkSection = z
  .strictObject({
    allow: hosts('Hosts that may be reached through the proxy. Absent or empty: this policy allows none.'),
    deny: hosts('Hosts that may not; `*` here means addresses too. Absent or empty: this policy denies none.'),
    only: hosts(
      'A ceiling: no other hosts, whoever allows them. It allows none by itself. Absent: no ceiling. Empty: no host at all.',
    ),
    listen: ports(
      'Ports that a server inside may be reached on from this machine: `3000`, `"8000-8010"`. Absent or empty: none.',
    ),
    loopback: ports('Ports of this machine’s own services that may be connected to. Absent or empty: none.'),
  })
  .describe(
    'The network, through the egress proxy only. Absent or empty: this policy allows nothing and denies nothing.',
  );

export const SocketsSection = z
  .strictObject({
    allow: list(
      'Unix sockets outside the session that may be connected to: `ssh-agent`, `gpg-agent`, `docker`, `podman`, `dbus-session`, `wayland`, `x11`, or a path. Absent or empty: this policy allows none.',
    ).optional(),
    deny: list('Sockets that may not, by the same names. Absent or empty: this policy denies none.').optional(),
  })
  .describe('Unix sockets. Absent or empty: this policy says nothing of them.');

export const CredentialRule = z.strictObject({
  name: text.describe('What it is called in records and errors. Never absent or empty.'),
  hosts: z.array(text).min(1).max(64).describe('Exact names it is sent to, and no others. Never absent or empty.'),
  way: z
    .enum(['endpoint', 'terminate'])
    .describe(
      '`endpoint`: the client talks plain HTTP to a listener inside; `terminate`: the proxy ends TLS for these hosts. Never absent.',
    ),
  header: text.describe('Header that carries it. Absent: `authorization`.').optional(),
  value: text.describe('Value of the header, with `{}` where the secret goes. Absent: `Bearer {}`.').optional(),
  endpointVariable: text.describe('Variable that points the client at the listener. Absent: none is set.').optional(),
  placeholderVariable: text.describe('Variable that holds a placeholder inside. Absent: none is set.').optional(),
  from: z
    .union([
      z.strictObject({ variable: text.describe('Variable of the environment outside. Never absent.') }),
      z.strictObject({ file: text.describe('File outside; its first line. Never absent.') }),
      z.strictObject({
        command: z
          .array(text)
          .min(1)
          .max(64)
          .describe('Program and arguments, run outside without a shell; its first line. Never absent or empty.'),
      }),
    ])
    .describe('Where the secret is read, outside. Never absent.'),
});

const names = (what: string) => list(what + ' Names of variables, with `*` for any run of characters.').optional();

export const EnvironmentSection = z
  .strictObject({
    pass: names('Variables that pass from outside. Absent or empty: this policy passes none.'),
    unset: names('Variables that do not pass; case makes no difference. Absent or empty: this policy holds none back.'),
    set: z
      .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string().max(32_768))
      .describe(
        'Variables set inside; a value may begin with a place, as paths do. Absent or empty: none. An empty value is an empty variable.',
      )
      .optional(),
  })
  .describe('The environment inside. Absent or empty: this policy says nothing of it.');

const PropertyName = z.enum(Object.keys(PROPERTIES) as [Property, ...Property[]]);

export const PolicyDocument = z
  .strictObject({
    $schema: z.string().describe('For editors; nd7 does not read it. Absent or empty: the same.').optional(),
    nd7: z.literal(1).describe('Version of this language: 1. Never absent.'),
    extends: list(
      'Profiles, packs and (in your own policy) files beside this one that this policy builds on. Absent in your own policy: `["default"]`; elsewhere: none. Empty: none, so that everything is denied that this file does not allow.',
    ).optional(),
    packs: z
      .record(z.string(), z.boolean())
      .describe('Packs to switch on or off by name: `{"cargo": false}`. Absent or empty: as the profiles have them.')
      .optional(),
    files: FilesSection.optional(),
    masks: z
      .array(MaskRule)
      .max(MAX_MASKS)
      .describe(
        'Names that are masked wherever they turn up, whenever they are made. Absent or empty: this policy masks none.',
      )
      .optional(),
    protect: ProtectSection.optional(),
    makeFolders: z
      .array(
        z.union([
          text,
          z.strictObject({
            path: text.describe('The folder. Never absent or empty.'),
            ifPrograms: z
              .array(text)
              .min(1)
              .max(16)
              .describe('Only where a program of one of these names is on PATH. Absent: always. Never empty.')
              .optional(),
          }),
        ]),
      )
      .max(MAX_RULES)
      .describe('Folders to make before the start where they are missing. Absent or empty: none.')
      .optional(),
    seeds: z
      .array(
        z.strictObject({
          from: text.describe('File to copy. Never absent.'),
          to: text.describe('Where to, if nothing is there. Never absent.'),
        }),
      )
      .max(MAX_RULES)
      .describe('Files to copy before the start. Absent or empty: none.')
      .optional(),
    sockets: SocketsSection.optional(),
    network: NetworkSection.optional(),
    credentials: z
      .array(CredentialRule)
      .max(MAX_RULES)
      .describe('Secrets that stay outside and are put on by the proxy. Absent or empty: none.')
      .optional(),
    environment: EnvironmentSection.optional(),
    privateTmp: z
      .boolean()
      .describe('Whether `$TMP` is a fresh folder of the session. Absent: as the policies below say, at last `true`.')
      .optional(),
    patterns: z
      .enum(['strict', 'names'])
      .describe(
        'How masks hold without mounts: `strict` performs every read (slower), `names` refuses only the making of such names. Absent: as below, at last `names`.',
      )
      .optional(),
    weakestTier: z
      .enum(['T1', 'T2', 'T3'])
      .describe('The weakest tier to start with. Absent: as below, at last `T2`.')
      .optional(),
    require: z
      .array(PropertyName)
      .max(MAX_RULES)
      .describe('Properties without which nothing starts. Absent or empty: this policy demands none.')
      .optional(),
    recording: z
      .enum(['required', 'best-effort'])
      .describe(
        '`required`: what cannot be recorded is not done. `best-effort`: it goes on and a gap entry tells. Absent: as below, at last `required`.',
      )
      .optional(),
  })
  .describe('A policy of nd7: what a confined session may do.');

export type PolicyDocument = z.infer<typeof PolicyDocument>;
export type PathRules = NonNullable<NonNullable<PolicyDocument['files']>['read']>;

/** The JSON schema of a policy file, for editors: draft 2020-12. */
export function policySchema(): Record<string, unknown> {
  return { title: 'nd7 policy', ...z.toJSONSchema(PolicyDocument, { target: 'draft-2020-12' }) };
}
