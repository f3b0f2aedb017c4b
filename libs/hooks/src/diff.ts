/** One line of a shown change: kept, removed or added. */
export interface DiffLine {
  mark: ' ' | '-' | '+';
  text: string;
}

/**
 * The change from one text to another as lines, with `context` unchanged lines around each change and a `…` line (mark ' ')
 * where lines were left out. For people to read: line ends are not shown. Quadratic in the changed middle only.
 */
export function diffLines(before: string, after: string, context = 2): DiffLine[] {
  const a = before === '' ? [] : before.split(/\r\n|\n/);
  const b = after === '' ? [] : after.split(/\r\n|\n/);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const lines: DiffLine[] = [
    ...a.slice(0, head).map((text) => ({ mark: ' ' as const, text })),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail).map((text) => ({ mark: ' ' as const, text })),
  ];
  return withContext(lines, context);
}

function middle(a: readonly string[], b: readonly string[]): DiffLine[] {
  // Longest common subsequence by the textbook table; settings files are small.
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  const cell = (i: number, j: number): number => table[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      table[i * width + j] = a[i] === b[j] ? cell(i + 1, j + 1) + 1 : Math.max(cell(i + 1, j), cell(i, j + 1));
  const out: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push({ mark: ' ', text: a[i++] ?? '' });
      j++;
    } else if (i < a.length && (j >= b.length || cell(i + 1, j) >= cell(i, j + 1)))
      out.push({ mark: '-', text: a[i++] ?? '' });
    else out.push({ mark: '+', text: b[j++] ?? '' });
  }
  return out;
}

function withContext(lines: readonly DiffLine[], context: number): DiffLine[] {
  const near = lines.map((_, at) =>
    lines.slice(Math.max(0, at - context), at + context + 1).some((line) => line.mark !== ' '),
  );
  const out: DiffLine[] = [];
  lines.forEach((line, at) => {
    if (near[at]) out.push(line);
    else if (near[at - 1] || (at === 0 && near.includes(true))) out.push({ mark: ' ', text: '…' });
  });
  return out;
}
