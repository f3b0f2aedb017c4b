import { useEffect, useRef, useState } from 'react';
import { TrustBar } from '../trust/TrustBar.js';
import { ApiError } from '../api/client.js';
import { useMe, useOpenIncidents } from '../api/queries.js';
import { cx } from '../ui/cx.js';
import { Icon, type IconName } from '../ui/Icon.js';
import { Link, Outlet, useNavigate, useRouterState } from '../ui/router.js';
import { FIND_ID } from './find.js';
import { KeyMap } from './KeyMap.js';
import { takeKey, useChord, useKeys } from './keys.js';
import { documentTitle, pageAbove } from './pages.js';
import css from './shell.module.css';
import { SIGN_IN, useSignOut } from './sign-out.js';
import { TopBar } from './TopBar.js';

/** The frame of every page: top bar, navigation, trust bar; the keys that work everywhere; the way to the sign-in page. */
export function Shell() {
  const navigate = useNavigate();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const href = useRouterState({ select: (state) => state.location.href });
  const me = useMe();
  const [map, setMap] = useState(false);
  const main = useRef<HTMLElement>(null);
  const signedOut = me.error instanceof ApiError && me.error.code === 'signed-out';

  useEffect(() => {
    // The sign-in page leads back to where the reader was.
    if (signedOut && path !== SIGN_IN)
      void navigate({ to: SIGN_IN, hash: `to=${encodeURIComponent(href)}`, replace: true });
  }, [signedOut, path, href, navigate]);

  useEffect(() => {
    const goTo = {
      s: () => void navigate({ to: '/sessions' }),
      i: () => void navigate({ to: '/incidents' }),
      v: () => void navigate({ to: '/verify' }),
      m: () => void navigate({ to: '/machines' }),
    };
    const heard = (event: KeyboardEvent) => {
      if (takeKey(event, goTo)) event.preventDefault();
    };
    document.addEventListener('keydown', heard);
    return () => {
      document.removeEventListener('keydown', heard);
    };
  }, [navigate]);

  useKeys({
    '?': () => {
      setMap(true);
    },
    Escape: () => {
      const up = pageAbove(path);
      if (up !== undefined) void navigate({ href: up });
    },
    '/': () => {
      document.getElementById(FIND_ID)?.focus();
    },
  });

  useFocusOnNavigation(path, main);
  useEffect(() => {
    document.title = documentTitle(path);
  }, [path]);

  return (
    <>
      <a
        className={css.skip}
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      <div className={css.app}>
        <nav className={css.brand} aria-label="Home">
          <Link to="/sessions" className={css.home}>
            <span>nd7</span>
            <small className="cut">{me.data?.team}</small>
          </Link>
        </nav>
        <TopBar
          onMap={() => {
            setMap(true);
          }}
        />
        <SideNav path={path} />
        <TrustBar
          me={me.data}
          stands={me.isLoading ? 'asking' : me.error !== null && !signedOut ? 'no answer' : undefined}
        />
        <main className={css.main} id="main" tabIndex={-1} ref={main}>
          <Outlet />
        </main>
      </div>
      <ChordHint />
      <KeyMap
        open={map}
        onClose={() => {
          setMap(false);
        }}
      />
    </>
  );
}

/** A new page begins at its top and takes the focus to its content, as a loaded page would, so that a screen reader begins there. */
function useFocusOnNavigation(path: string, main: React.RefObject<HTMLElement | null>): void {
  const last = useRef(path);
  useEffect(() => {
    if (last.current === path) return;
    last.current = path;
    window.scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [path, main]);
}

function SideNav({ path }: { path: string }) {
  const me = useMe();
  const open = useOpenIncidents(me.data !== undefined).data ?? 0;
  const item = (
    to: '/incidents' | '/sessions' | '/verify' | '/machines',
    icon: IconName,
    word: string,
    here: boolean,
    count?: number,
  ) => (
    <Link
      to={to}
      className={css.link}
      activeOptions={{ exact: true, includeSearch: false }}
      aria-current={here ? 'page' : undefined}
    >
      <Icon name={icon} />
      <span>{word}</span>
      {count !== undefined && count > 0 && (
        <span className={css.alarms}>
          <Icon name="v-bad" size="small" />
          {count}
          <span className="sr"> open</span>
        </span>
      )}
    </Link>
  );
  const isVerify = path.startsWith('/verify') || path.endsWith('/verification');
  return (
    <nav className={css.side} aria-label="Main">
      {item('/incidents', 'fork', 'Incidents', path.startsWith('/incidents'), open)}
      {item('/sessions', 'list', 'Sessions', path === '/sessions' || (path.startsWith('/machines/') && !isVerify))}
      {item('/verify', 'shield', 'Verify', isVerify)}
      {item('/machines', 'laptop', 'Machines', path === '/machines')}
      {me.data !== undefined && (
        <div className={cx(css.who)}>
          <span className={css.reader} title={me.data.reader}>
            {me.data.reader}
          </span>
          <SignOut />
        </div>
      )}
    </nav>
  );
}

function SignOut() {
  return (
    <button type="button" onClick={useSignOut()}>
      Sign out
    </button>
  );
}

/** What may follow `g`, while it is awaited. */
function ChordHint() {
  const chord = useChord();
  if (chord === undefined) return null;
  return (
    <div className={css.chord} role="status">
      {chord === '' ? (
        <>
          <b>Go to</b>
          <span>
            <kbd>s</kbd> sessions
          </span>
          <span>
            <kbd>i</kbd> incidents
          </span>
          <span>
            <kbd>v</kbd> verify
          </span>
          <span>
            <kbd>m</kbd> machines
          </span>
          <span className="mute">or an entry’s number</span>
        </>
      ) : (
        <>
          <b>Entry {Number(chord).toLocaleString('en')}</b>
          <span>
            <kbd>Enter</kbd> jumps
          </span>
        </>
      )}
    </div>
  );
}
