import fc from 'fast-check';
import { compactJson, member, stringValue } from './json-node.js';
import { type JsonNode, parseStrictJson } from './json-parse.js';

const bytesOf = (text: string) => new TextEncoder().encode(text);

function root(text: string): { bytes: Uint8Array; node: JsonNode } {
  const bytes = bytesOf(text);
  const result = parseStrictJson(bytes);
  if (!result.ok) throw new Error(`${text}: ${result.reason}`);
  return { bytes, node: result.root };
}

test('white space between tokens goes, and nothing else', () => {
  const { bytes, node } = root(' { "a b" : [ 1.0 , "\\" \\\\" , " " ] ,\r\n\t"ü" : -0e0 } ');
  expect(compactJson(bytes, node)).toBe('{"a b":[1.0,"\\" \\\\"," "],"ü":-0e0}');
});

test('a part can be compacted by itself', () => {
  const { bytes, node } = root('{"a": [ 1, 2 ], "b": 3}');
  expect(compactJson(bytes, member(node, 'a') as JsonNode)).toBe('[1,2]');
});

test('pretty-printed JSON compacts to what JSON.stringify writes', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(1, 2, '\t', '\r\n '), (value, indent) => {
      const { bytes, node } = root(JSON.stringify(value, null, indent));
      expect(compactJson(bytes, node)).toBe(JSON.stringify(value));
    }),
  );
});

test('strings say what JSON.parse says, lone surrogates included', () => {
  const anyText = fc.array(fc.nat(0xffff), { maxLength: 20 }).map((units) => String.fromCharCode(...units));
  fc.assert(
    fc.property(anyText, fc.boolean(), (text, escapeAll) => {
      const escaped = [...Array(text.length).keys()].map(
        (i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`,
      );
      const json = escapeAll ? `"${escaped.join('')}"` : JSON.stringify(text);
      const { bytes, node } = root(json);
      expect(stringValue(bytes, node)).toBe(text);
    }),
    { numRuns: 1000 },
  );
  const { bytes, node } = root(`"${'long '.repeat(50)}\\u00e9${'ü'.repeat(100)}\\b\\f\\n\\r\\t\\/\\\\\\""`);
  expect(stringValue(bytes, node)).toBe(`${'long '.repeat(50)}é${'ü'.repeat(100)}\b\f\n\r\t/\\"`);
});

test('what is not there is undefined', () => {
  const { bytes, node } = root('{"a":1,"b":"x"}');
  expect(member(node, 'c')).toBeUndefined();
  expect(member(undefined, 'a')).toBeUndefined();
  expect(member(member(node, 'a'), 'a')).toBeUndefined();
  expect(stringValue(bytes, member(node, 'a'))).toBeUndefined();
  expect(stringValue(bytes, undefined)).toBeUndefined();
  expect(stringValue(bytes, member(node, 'b'))).toBe('x');
});
