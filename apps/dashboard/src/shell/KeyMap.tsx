import { Modal } from '../ui/base.js';
import { controls } from '../ui/controls.js';
import { switchKeys, useKeysOn } from './keys.js';
import css from './shell.module.css';

const MAP: readonly (readonly [what: string, ...keys: string[]])[] = [
  ['Find', '/'],
  ['This map', '?'],
  ['Sessions', 'g', 's'],
  ['Incidents', 'g', 'i'],
  ['Verify', 'g', 'v'],
  ['Machines', 'g', 'm'],
  ['Next, previous row or event', 'j', 'k'],
  ['Open', 'Enter'],
  ['Close, back', 'Esc'],
  ['Filter', 'f'],
  ['Verify', 'v'],
  ['Next, previous finding', 'n', 'p'],
  ['Jump to an entry', 'g', '1 2 …', 'Enter'],
  ['Entry before, entry after', '[', ']'],
  ['Fold or open', 'o'],
  ['Raw line', 'r'],
  ['Copy as evidence', 'c'],
  ['Proof step', '←', '→'],
];

/** All keys on one page, and the switch for the single ones. */
export function KeyMap(props: { open: boolean; onClose: () => void }) {
  const on = useKeysOn();
  return (
    <Modal open={props.open} onClose={props.onClose} title="Keyboard map">
      <dl className={css.map}>
        {MAP.map(([what, ...keys]) => (
          <div key={what + keys.join('')}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label className={controls.check}>
        <input
          type="checkbox"
          checked={on}
          onChange={(event) => {
            switchKeys(event.currentTarget.checked);
          }}
        />
        <span>Single keys work. They never do while a text field has the focus.</span>
      </label>
    </Modal>
  );
}
