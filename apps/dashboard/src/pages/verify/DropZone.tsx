import { useId, useState } from 'react';
import { cx } from '../../ui/cx.js';
import { Icon } from '../../ui/Icon.js';
import { type Dropped, droppedFiles } from './files.js';
import css from './verify.module.css';

/** Takes files or a session's whole folder, by dropping or by choosing. */
export function DropZone(props: { onFiles: (files: Dropped[]) => void; busy?: string | undefined }) {
  const [over, setOver] = useState(false);
  const id = useId();
  return (
    <div
      className={cx(css.drop, over && css.over)}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => {
        setOver(false);
      }}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void droppedFiles(event.dataTransfer).then(props.onFiles);
      }}
    >
      <Icon name="drop" size="large" />
      <b className="strong">
        {props.busy ?? (over ? 'Let go to read it here' : 'Drop files or a session’s folder to check them here')}
      </b>
      <span className="small">
        <code>log.jsonl</code>, <code>head.json</code>, <code>*.tlog-proof</code>
      </span>
      <span className="tiny mute">Read in this browser, sent nowhere.</span>
      <input
        id={id}
        className={css.file}
        type="file"
        multiple
        onChange={(event) => {
          props.onFiles([...(event.currentTarget.files ?? [])].map((file) => ({ file })));
          event.currentTarget.value = '';
        }}
      />
      <label htmlFor={id} className={css.choose}>
        Choose files
      </label>
    </div>
  );
}
