import { NO_OPINION } from '@nd7/hooks';
import type { HookAnswer, HookReading } from '@nd7/hooks';
import type { RecorderConfig } from './config.js';
import type { Silencing } from './settings-watch.js';

/** A call about to run, or a payload nobody can read: it may announce one. */
export function announcesCall(reading: HookReading): boolean {
  return reading.kind === 'tool.before' || !reading.readable;
}

/** The answer to a payload that could not be recorded. */
export function answerUnrecorded(reading: HookReading, config: RecorderConfig, error: Error): HookAnswer {
  if (config.recording !== 'required' || !announcesCall(reading)) return NO_OPINION;
  const why =
    config.problem === undefined
      ? 'the policy here is "recording": "required"'
      : `${config.problem}, so that the strictest policy holds`;
  const text = `nd7 could not record this call, and ${why}: ${error.message}. Run \`nd7 doctor\` in a terminal to mend it.`;
  return reading.deny(text) ?? NO_OPINION;
}

/** The answer to a call of a session whose first key no receipt pins, where the policy wants one. */
export function answerUnpinned(reading: HookReading, isEnrolled: boolean): HookAnswer {
  const next = isEnrolled
    ? 'check that the vault can be reached (`nd7 status`), then try again'
    : 'enrol this machine (`nd7 enrol URL TOKEN`)';
  const text = `nd7: no receipt pins this session's key yet, and the policy here is "pin": "required": ${next}.`;
  return reading.deny(text) ?? NO_OPINION;
}

/** Whether a settings change that would silence the recorder is refused. A machine's managed policy is above this one. */
export function refusesSilencing(reading: HookReading, config: RecorderConfig): boolean {
  return config.recording === 'required' && reading.facts.source !== 'policy_settings';
}

/** The alarm's data, and the answer. */
export function answerSilencing(
  reading: HookReading,
  config: RecorderConfig,
  silencing: Silencing,
): { alarm: Record<string, unknown>; answer: HookAnswer } {
  const refused = refusesSilencing(reading, config);
  const alarm = { reason: refused ? 'silencing refused' : 'silencing', how: silencing.how, file: silencing.file };
  if (!refused) return { alarm, answer: NO_OPINION };
  const what = silencing.how === 'disable-all-hooks' ? 'sets "disableAllHooks"' : 'removes the hooks of nd7';
  const text = `nd7: this change ${what} in ${silencing.file} while recording is required; it is not applied. Take it back, or ask the person whose machine this is to run \`nd7 uninstall\`.`;
  return { alarm, answer: reading.deny(text) ?? NO_OPINION };
}
