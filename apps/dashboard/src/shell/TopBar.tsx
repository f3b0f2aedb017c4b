import { useState } from 'react';
import { useMe } from '../api/queries.js';
import { Button } from '../ui/controls.js';
import { cx } from '../ui/cx.js';
import { Icon } from '../ui/Icon.js';
import { Link, useNavigate } from '../ui/router.js';
import { readersZone } from '../ui/time-words.js';
import { FIND_ID, useCurrentFind } from './find.js';
import css from './shell.module.css';
import { useSignOut } from './sign-out.js';
import { toggleTheme } from './theme.js';

/** The bar on top: the field that finds (what, the open page decides), the zone of all times, the keyboard map, the theme; on a phone the way out, too. */
export function TopBar(props: { onMap: () => void }) {
  const me = useMe();
  const zone = readersZone(new Date());
  const signOut = useSignOut();
  return (
    <header className={css.top}>
      <Link to="/sessions" className={cx(css.home, 'only-m')}>
        nd7
      </Link>
      {me.data !== undefined && <FindField />}
      <span className="end hide-m small mute nowrap">
        Times in <b className="dim">{zone.name}</b>
        {zone.name !== 'UTC' && `, ${zone.offset}`}
      </span>
      <Button look="ghost" className="hide-m" aria-label="Keyboard map" onClick={props.onMap}>
        <kbd>?</kbd>
      </Button>
      <Button look="ghost" square aria-label="Switch theme" onClick={toggleTheme}>
        <Icon name="theme" />
      </Button>
      {me.data !== undefined && (
        <Button look="ghost" square className="only-m" aria-label="Sign out" title="Sign out" onClick={signOut}>
          <Icon name="leave" />
        </Button>
      )}
    </header>
  );
}

function FindField() {
  const find = useCurrentFind();
  const navigate = useNavigate();
  const [own, setOwn] = useState('');
  const value = find?.value ?? own;
  const words = find?.placeholder ?? 'Find a session';
  return (
    <label className={css.find}>
      <Icon name="search" size="small" />
      <span className="sr">{words}</span>
      <input
        id={FIND_ID}
        type="search"
        placeholder={words}
        value={value}
        onChange={(event) => {
          (find?.onChange ?? setOwn)(event.currentTarget.value);
        }}
        onKeyDown={(event) => {
          if (event.key === 'Escape') event.currentTarget.blur();
          if (event.key === 'Enter' && find === undefined && own.trim() !== '')
            void navigate({ to: '/sessions', search: { q: own.trim() } });
        }}
      />
      <kbd>/</kbd>
    </label>
  );
}
