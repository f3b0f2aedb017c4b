// A process that speaks to a recorder as hooks do, many times over: `speaker HOME SESSION NAME COUNT socket|alone|both|again`. Prints the call id of each
// payload that was acknowledged; stops at the first that is not. With `again` it says it again, past the recorder every fifth time, until it is acknowledged
// or its standard input ends.
import { recordAlone } from '../recorder/alone.js';
import { askRecorder } from '../recorder/client.js';

const [home = '', session = '', name = '', count = '0', way = 'socket'] = process.argv.slice(2);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
let isOver = false;
if (way === 'again') process.stdin.once('end', () => (isOver = true)).resume();

for (let n = 0; n < Number(count) && !isOver; n++) {
  const id = `${name}-${n}`;
  const payload = Buffer.from(
    JSON.stringify({
      session_id: session,
      hook_event_name: 'PreToolUse',
      tool_name: 'Bash',
      tool_input: { command: `echo ${id}` },
      tool_use_id: id,
    }),
  );
  const alone = way === 'alone' || (way !== 'socket' && n % 5 === 4);
  const say = () =>
    alone
      ? recordAlone({ home, agent: 'claude-code', env: {}, payload, took: 'eof', startRecorder: false })
      : askRecorder(home, 'hook', { meta: { agent: 'claude-code' }, payload, timeoutMs: 60_000 });
  let answer = await say();
  while (way === 'again' && answer === undefined && !isOver) {
    await pause(5);
    answer = await say();
  }
  if (way === 'again') await pause(15);
  if (answer === undefined && isOver) break;
  if (answer === undefined || answer.exit !== 0 || answer.stderr !== '') {
    process.stderr.write(answer?.stderr ?? '');
    break;
  }
  process.stdout.write(`${id}\n`);
}
