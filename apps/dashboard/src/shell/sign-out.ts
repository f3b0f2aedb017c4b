import { vault } from '../api/client.js';
import { answers } from '../api/queries.js';
import { useNavigate } from '../ui/router.js';

/** Where a reader signs in. */
export const SIGN_IN = '/sign-in';

/** Ends the sign-in: whatever the vault answers, nothing that it told stays in the page. */
export function useSignOut(): () => void {
  const navigate = useNavigate();
  return () => {
    void vault.signOut().finally(() => {
      answers.clear();
      void navigate({ to: SIGN_IN });
    });
  };
}
