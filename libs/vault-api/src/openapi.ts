// The OpenAPI 3.1 description, made from the routes; nothing in it is written twice.
import { z } from 'zod';
import { PROBLEMS, ProblemDocument } from './problems.js';
import { ROUTES, type Route, type Who } from './routes.js';

type Json = Record<string, unknown>;

const SECURITY: Record<Who, Json[]> = {
  anyone: [],
  machine: [{ machine: [] }],
  reader: [{ reader: [] }, { cookie: [] }],
  either: [{ machine: [] }, { reader: [] }, { cookie: [] }],
};

const SIGNED_HEADERS = ['nd7-time', 'nd7-nonce', 'nd7-request-signature'];

function schemaOf(type: z.ZodType, io: 'input' | 'output'): Json {
  const schema = z.toJSONSchema(type, { io }) as Json;
  delete schema['$schema']; // the document says the dialect once
  return schema;
}

function header(name: string, description: string): Json {
  return { name, in: 'header', required: true, description, schema: { type: 'string' } };
}

function parametersOf(route: Route): Json[] {
  const inPath = [...route.path.matchAll(/\{([a-z_]+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const query = route.query === undefined ? {} : (schemaOf(route.query, 'input')['properties'] as Json);
  const inQuery = Object.entries(query).map(([name, schema]) => ({ name, in: 'query', required: false, schema }));
  const signed =
    route.who === 'machine' ? SIGNED_HEADERS.map((name) => header(name, 'signed request (docs/receipt.md)')) : [];
  const claim =
    route.body === 'entries'
      ? [
          header('nd7-claim', 'base64 of the claim’s lines, origin … head'),
          header('nd7-signature', 'base64 of the machine’s signature over the claim'),
          { name: 'content-encoding', in: 'header', required: false, schema: { enum: ['zstd', 'identity'] } },
        ]
      : [];
  return [...inPath, ...inQuery, ...signed, ...claim];
}

function bodyOf(route: Route): Json {
  if (route.body === undefined) return {};
  const content =
    route.body === 'entries'
      ? { 'application/x-ndjson': { schema: { type: 'string', format: 'binary' } } }
      : { 'application/json': { schema: schemaOf(route.body, 'input') } };
  return { requestBody: { required: true, content } };
}

function answersOf(route: Route): Json {
  const answers: Json = {};
  for (const [status, answer] of Object.entries(route.answers)) {
    const media = answer.json === undefined ? answer.media : 'application/json';
    const schema = answer.json === undefined ? { type: 'string' } : schemaOf(answer.json, 'output');
    answers[status] = {
      description: answer.means,
      ...(media === undefined ? {} : { content: { [media]: { schema } } }),
    };
  }
  for (const status of new Set(route.problems.map((code) => PROBLEMS[code].status))) {
    const codes = route.problems.filter((code) => PROBLEMS[code].status === status);
    answers[String(status)] = {
      description: codes.map((code) => `\`${code}\`: ${PROBLEMS[code].title}`).join('\n\n'),
      content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
    };
  }
  return answers;
}

/** The whole document; `version` is the vault's, `url` where it is reached. */
export function openApi(info: { version: string; url: string }): Json {
  const paths: Record<string, Json> = {};
  for (const [name, route] of Object.entries<Route>(ROUTES)) {
    (paths[route.path] ??= {})[route.method.toLowerCase()] = {
      operationId: name,
      summary: route.summary,
      security: SECURITY[route.who],
      parameters: parametersOf(route),
      ...bodyOf(route),
      responses: answersOf(route),
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'nd7 vault',
      version: info.version,
      description: 'Ingest, receipts and reading of one nd7 vault.',
      license: { name: 'MIT' },
    },
    servers: [{ url: info.url }],
    paths,
    components: {
      schemas: { Problem: schemaOf(ProblemDocument, 'output') },
      securitySchemes: {
        machine: { type: 'http', scheme: 'bearer', description: 'nd7m1_…; every request is signed besides' },
        reader: { type: 'http', scheme: 'bearer', description: 'nd7r1_…' },
        cookie: { type: 'apiKey', in: 'cookie', name: 'nd7_session' },
      },
    },
  };
}
