import { ShipError, type VaultError } from './error.js';

/** What a refusal means to the person at the machine, and how to mend it. */
export function refusalOf(error: VaultError, session: string): ShipError {
  const { code, reason } = error;
  const entry = error.bad_entry ?? error.next;
  const at = { session, ...(entry !== undefined && { entry }), reason: reason ?? code };
  if (code === 'fork') {
    return new ShipError(
      'fork',
      `FORK (409): the vault holds another history of session ${session}, signed by this machine too: one of the two was written anew. ${error.message}. Nothing was deleted; both claims are evidence at the vault. The recorder goes on in a new chain`,
      at,
      { cause: error },
    );
  }
  if (code === 'disagrees' || code === 'overlap' || code === 'gap') {
    return new ShipError(
      'disagrees',
      `DISAGREES (409 ${code}): what stands here for session ${session} is not what the vault holds. ${error.message}. Nothing was deleted. The recorder goes on in a new chain`,
      at,
      { cause: error },
    );
  }
  if (code === 'bad-answer')
    return new ShipError('bad-answer', `${error.message}. Is the url in vault.json the address of the vault?`, at, {
      cause: error,
    });
  return new ShipError(
    'refused',
    `the vault refuses session ${session} (${code}): ${error.message}${HINTS[code] === undefined ? '' : `. ${HINTS[code]}`}`,
    at,
    { cause: error },
  );
}

const HINTS: Partial<Record<VaultError['code'], string>> = {
  unauthorized: 'nd7 enrol URL TOKEN --replace does that; what is not shipped is kept here',
  revoked: "Ask the team's admin; what is not shipped is kept here",
  'bad-request-signature': 'The key in keys/machine.key is not the one this machine was enrolled with',
  'too-large': 'The segment is larger than the vault takes',
};
