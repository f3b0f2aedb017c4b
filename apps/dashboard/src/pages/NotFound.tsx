import { PageHead, Panel } from '../ui/Panel.js';
import { Link } from '../ui/router.js';
import { Empty } from '../ui/states.js';

/** An address that leads nowhere. */
export function NotFound() {
  return (
    <>
      <PageHead title="There is no such page" />
      <Panel label="Not found">
        <Empty icon="search" title="Nothing is at this address" action={<Link to="/sessions">To the sessions</Link>}>
          <p>The link may be cut, or of another version of this page.</p>
        </Empty>
      </Panel>
    </>
  );
}
