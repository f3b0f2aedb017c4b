import type { ReactNode } from 'react';

const filled = { fill: 'currentColor', stroke: 'none' } as const;
/** The mark inside a filled shape is drawn in the colour of the ground. */
const cut = { stroke: 'var(--bg-1)', strokeWidth: 1.9 } as const;

function line(d: string): ReactNode {
  return <path d={d} />;
}

export type IconName =
  | 'search'
  | 'theme'
  | 'leave'
  | 'fork'
  | 'list'
  | 'shield'
  | 'laptop'
  | 'doc'
  | 'copy'
  | 'filter'
  | 'x'
  | 'chev'
  | 'down'
  | 'plus'
  | 'quote'
  | 'diamond'
  | 'square'
  | 'ring'
  | 'user'
  | 'chat'
  | 'term'
  | 'file'
  | 'lock'
  | 'bot'
  | 'pencil'
  | 'seal'
  | 'clock'
  | 'play'
  | 'drop'
  | 'key'
  | 'gap'
  | 'note'
  | 'out'
  | 'v-ok'
  | 'v-warn'
  | 'v-bad'
  | 'v-says'
  | 'v-none'
  | 'v-run';

/** The drawings by name. `v-…` are the six verdict shapes, each of which belongs to one word list of the dashboard. */
export const drawings: Record<IconName, ReactNode> = {
  search: (
    <>
      <circle cx="7" cy="7" r="4.2" />
      <path d="M10.2 10.2l3.3 3.3" />
    </>
  ),
  theme: (
    <>
      <circle cx="8" cy="8" r="5.7" />
      <path d="M8 2.3v11.4A5.7 5.7 0 008 2.3z" fill="currentColor" />
    </>
  ),
  leave: line('M6.5 2.5H3v11h3.5M6.5 8h7M10.7 5.2L13.5 8l-2.8 2.8'),
  fork: (
    <>
      <circle cx="4" cy="3.2" r="1.6" />
      <circle cx="12" cy="3.2" r="1.6" />
      <circle cx="8" cy="12.8" r="1.6" />
      <path d="M4 4.8v1.4C4 8.6 8 8 8 11.2M12 4.8v1.4C12 8.6 8 8 8 11.2" />
    </>
  ),
  list: line('M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01'),
  shield: line('M8 1.8l5.2 1.9v4.1c0 3.2-2.2 5.3-5.2 6.4-3-1.1-5.2-3.2-5.2-6.4V3.7zM5.6 8l1.7 1.7 3.1-3.3'),
  laptop: line('M3.5 3.5h9V10h-9zM1.8 12.7h12.4'),
  doc: line('M4 1.8h5l3 3v9.4H4zM9 1.8v3h3M6 8.5h4M6 11h4'),
  copy: line('M6 6h7.2v7.2H6zM10 6V2.8H2.8V10H6'),
  filter: line('M2 3.5h12L9.5 8.8v4.4l-3-1.6V8.8z'),
  x: line('M4 4l8 8M12 4l-8 8'),
  chev: line('M6 3.5L10.5 8 6 12.5'),
  down: line('M3.5 6L8 10.5 12.5 6'),
  plus: line('M8 3v10M3 8h10'),
  quote: line('M3 9h3.5V5.5H3V9c0 2 .8 3 2.4 3.6M9 9h3.5V5.5H9V9c0 2 .8 3 2.4 3.6'),
  diamond: line('M8 2.2L13.8 8 8 13.8 2.2 8z'),
  square: <path d="M3 3h10v10H3z" fill="currentColor" />,
  ring: (
    <>
      <circle cx="8" cy="8" r="5" />
      <circle cx="8" cy="8" r="1.4" fill="currentColor" />
    </>
  ),
  user: (
    <>
      <circle cx="8" cy="5.3" r="2.6" />
      <path d="M2.8 13.6c.6-2.6 2.6-4 5.2-4s4.6 1.4 5.2 4" />
    </>
  ),
  chat: line('M2.5 3h11v7.5h-6L4.5 13v-2.5h-2z'),
  term: line('M2 3h12v10H2zM4.5 6l2 2-2 2M8.5 10.2h3'),
  file: line('M4 1.8h5l3 3v9.4H4zM9 1.8v3h3'),
  lock: line('M3.8 7.2h8.4v6H3.8zM5.4 7.2V5a2.6 2.6 0 015.2 0v2.2'),
  bot: (
    <>
      <path d="M3.5 6h9v6.5h-9zM8 6V3.2M6 9h.01M10 9h.01M1.8 8.5v2M14.2 8.5v2" />
      <circle cx="8" cy="2.6" r=".7" />
    </>
  ),
  pencil: line('M3 13l.6-2.8L10.8 3 13 5.2l-7.2 7.2z'),
  seal: (
    <>
      <circle cx="8" cy="6.4" r="4" />
      <path d="M5.6 9.8L4.8 14 8 12.4 11.2 14l-.8-4.2" />
    </>
  ),
  clock: (
    <>
      <circle cx="8" cy="8" r="5.8" />
      <path d="M8 4.6V8l2.4 1.6" />
    </>
  ),
  play: line('M5 3.2l7.4 4.8L5 12.8z'),
  drop: line('M8 2v7.4M5 6.8L8 9.8l3-3M2.5 10.5v3h11v-3'),
  key: (
    <>
      <circle cx="5" cy="11" r="2.6" />
      <path d="M7 9l6-6M10.6 5.4l2 2" />
    </>
  ),
  gap: line('M2 8h3.2M10.8 8H14M6.6 4.6v6.8M9.4 4.6v6.8'),
  note: line('M3 3h10v10H3zM5.6 6.4h4.8M5.6 9.4h3'),
  out: line('M9.5 3H13v3.5M13 3L7.6 8.4M11 9v4H3V5h4'),
  'v-ok': (
    <>
      <circle cx="8" cy="8" r="7" {...filled} />
      <path d="M4.7 8.3L7 10.6l4.4-5" {...cut} />
    </>
  ),
  'v-warn': (
    <>
      <path d="M8 1.2L15.2 14.4H.8z" {...filled} />
      <path d="M8 6v4M8 12.2v.1" {...cut} />
    </>
  ),
  'v-bad': (
    <>
      <path d="M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1z" {...filled} />
      <path d="M5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2" {...cut} />
    </>
  ),
  'v-says': (
    <>
      <circle cx="8" cy="8" r="6.2" />
      <circle cx="8" cy="8" r="2" {...filled} />
    </>
  ),
  'v-none': <circle cx="8" cy="8" r="6.2" strokeDasharray="2.6 2.3" />,
  'v-run': (
    <>
      <circle cx="8" cy="8" r="6.2" />
      <path d="M8 1.8a6.2 6.2 0 010 12.4z" {...filled} />
    </>
  ),
};
