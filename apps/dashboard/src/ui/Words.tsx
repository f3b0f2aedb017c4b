import { Fragment } from 'react';
import { Said } from './Said.js';
import { Time } from './Time.js';

/** In the sentences of a report: a time as RFC 3339 has it, or a shortened hash. */
const PART = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|[0-9a-f]{8}…[0-9a-f]{6})/;

/** A sentence of a report, made for any terminal: here its times are in the reader's zone, and neither they nor hashes break at the end of a line. */
export function Words({ text }: { text: string }) {
  return text.split(PART).map((part, i) => {
    if (i % 2 === 0) return part === '' ? null : <Said key={i} text={part} />;
    return (
      <Fragment key={i}>
        {part.includes('…') ? <code className="nowrap">{part}</code> : <Time at={part} as="exact" />}
      </Fragment>
    );
  });
}
