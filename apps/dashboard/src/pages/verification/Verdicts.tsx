import type { SessionReport, Standing, Verdict } from '@nd7/verify';
import type { Proof } from '../../check/proofs.js';
import { Term } from '../../ui/base.js';
import { cx } from '../../ui/cx.js';
import { shortHash } from '../../ui/short-hash.js';
import { Icon, type IconName } from '../../ui/Icon.js';
import { layout } from '../../ui/Panel.js';
import { provenClass } from '../../ui/Proof.js';
import { Said } from '../../ui/Said.js';
import { Words } from '../../ui/Words.js';
import type { SessionResult } from '../../worker/protocol.js';
import css from './verification.module.css';

const FOUR = [
  ['integrity', 'Integrity', 'Nothing that is here was changed.'],
  ['completeness', 'Completeness', 'Nothing is missing from what was recorded.'],
  ['authenticity', 'Authenticity', 'Who says so, and with which key.'],
  ['freshness', 'Freshness', 'How old the last word is.'],
] as const;

const LOOKS: Record<Exclude<Standing, 'good'>, { icon: IconName; look: string | undefined }> = {
  part: { icon: 'v-warn', look: css.warn },
  bad: { icon: 'v-bad', look: css.bad },
  unchecked: { icon: 'v-none', look: css.none },
};

/**
 * The four verdicts, kept apart: each has a word, a shape, and a sentence. `machine`: what the vault calls the machine with this key; it stands
 * in the place of the key, and the sentence says whose word it is.
 */
export function Verdicts({
  result,
  machine,
}: {
  result: Proof<SessionResult>;
  machine?: { key: string; name: string } | undefined;
}) {
  return (
    <section className={cx(layout.panel, css.verdicts)} aria-labelledby="four">
      <h2 className="sr" id="four">
        Four verdicts
      </h2>
      {FOUR.map(([name, title, means]) => {
        const { state, verdict, text } = named(result.report, name, machine);
        const green = provenClass(result, name, 'tile');
        const { icon, look } = state === 'good' ? { icon: 'v-ok' as const, look: green } : LOOKS[state];
        return (
          <div key={name} className={cx(css.verdict, look)}>
            <Icon name={icon} size="large" />
            <h3>
              <Term says={means}>{title}</Term>
            </h3>
            <b>
              <Said text={verdict} />
            </b>
            <p>
              <Words text={text} />
            </p>
          </div>
        );
      })}
    </section>
  );
}

function named(
  report: SessionReport,
  name: (typeof FOUR)[number][0],
  machine: { key: string; name: string } | undefined,
): Verdict {
  const verdict = report[name];
  const key = machine === undefined ? '' : shortHash(machine.key);
  if (machine === undefined || name !== 'authenticity' || verdict.verdict !== `Signed by ${key}`) return verdict;
  return {
    ...verdict,
    verdict: `Signed by ${machine.name}`,
    text: `${verdict.text} Machine key ${key}; its name is the vault’s word.`,
  };
}
