import { useEffect, useMemo, useState } from 'react';
import type { SessionAddress } from '../../api/client.js';
import { useMe } from '../../api/queries.js';
import { releaseRun, type Run, startRun } from '../../check/runs.js';
import { useRun } from '../../check/use-run.js';
import { usePin } from '../../trust/pins.js';

/** Starts the check of a session when its page opens, and lets go of its bytes when it closes. */
export function useSessionCheck(at: SessionAddress): { run: Run | undefined; check: () => void } {
  const me = useMe();
  const pin = usePin(me.data?.origin);
  const known = me.data !== undefined;
  const vkey = pin?.vkey;
  const [times, setTimes] = useState(0);
  const { machine, session } = at;
  const address = useMemo(() => ({ machine, session }), [machine, session]);
  useEffect(() => {
    if (!known) return;
    void startRun(address, { vkeys: vkey === undefined ? [] : [vkey], rows: true });
    return () => {
      releaseRun(address);
    };
  }, [address, known, vkey, times]);
  return {
    run: useRun(address),
    check: () => {
      setTimes(times + 1);
    },
  };
}
