// A process that speaks to a recorder as hooks do, many times over: `speaker HOME SESSION NAME COUNT socket|alone|both`. Prints the call id of each
// payload that was acknowledged; stops at the first that is not.
import { recordAlone } from '../recorder/alone.js';
import { askRecorder } from '../recorder/client.js';

const [home = '', session = '', name = '', count = '0', way = 'socket'] = process.argv.slice(2);
for (let n = 0; n < Number(count); n++) {
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
  const alone = way === 'alone' || (way === 'both' && n % 5 === 4);
  const answer = alone
    ? await recordAlone({ home, agent: 'claude-code', env: {}, payload, took: 'eof', startRecorder: false })
    : await askRecorder(home, 'hook', { meta: { agent: 'claude-code' }, payload, timeoutMs: 60_000 });
  if (answer === undefined || answer.exit !== 0 || answer.stderr !== '') {
    process.stderr.write(answer?.stderr ?? '');
    break;
  }
  process.stdout.write(`${id}\n`);
}
