import { Inject, Injectable } from '@nestjs/common';
import { formatTime, fromHex } from '@nd7/entry';
import { formatStatement } from '@nd7/receipt';
import { enrolMessage } from '@nd7/segment';
import { sha256Hex, verifySignatures } from '@nd7/signing';
import { isStrictKey } from '@nd7/tlog';
import { pathOf, type EnrolAnswer, type Enrolment, type EnrolRequest } from '@nd7/vault-api';
import { newMachineToken, tokenHash } from '../access/tokens.js';
import { VaultConfig } from '../config.js';
import { Database } from '../db/database.js';
import { Problem } from '../http/problem.js';
import { TeamLog } from '../log/team-log.js';
import { CLOCK, RANDOM, type Clock, type Random } from '../ports.js';
import { policyText } from '../tiles/log.controller.js';
import { EnrolStore } from './enrol.store.js';

/** First trust of a machine: a one-time secret that a person carried over, and the machine's signature. */
@Injectable()
export class EnrolService {
  constructor(
    private readonly config: VaultConfig,
    private readonly db: Database,
    private readonly store: EnrolStore,
    private readonly log: TeamLog,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(RANDOM) private readonly random: Random,
  ) {}

  /** What a machine compares with its token before it shows the secret. Undefined for a hash that no secret has. */
  async describe(secretHash: string): Promise<Enrolment> {
    const team = await this.store.teamOf(secretHash);
    if (team === undefined) throw new Problem('not-found', 'this vault made no such enrolment token');
    const [vkey, policy] = await Promise.all([
      this.log.vkey(team),
      this.db.tenant(team, (tx) => this.store.policy(tx)),
    ]);
    return { vault: this.config.name, team, origin: this.log.origin(team), vkey, policy: policy ?? policyText(vkey) };
  }

  async enrol(request: EnrolRequest): Promise<EnrolAnswer> {
    const secretHash = tokenHash(request.secret);
    const team = await this.store.teamOf(secretHash);
    if (team === undefined) throw new Problem('bad-enrolment', 'this vault made no such enrolment token');
    await this.checkClaim(request, this.log.origin(team));
    const token = newMachineToken(this.random);
    const policy = await this.db.tenant(team, async (tx) => {
      const now = this.clock.now();
      const secret = await this.store.secret(tx, secretHash, new Date(now));
      if (secret === undefined) throw new Problem('bad-enrolment', 'this vault made no such enrolment token');
      // The same machine again lost its answer: it gets a token, nothing is enrolled twice.
      const again = secret.usedBy === request.machine;
      if (secret.usedBy !== null && !again)
        throw new Problem('bad-enrolment', 'the enrolment token was used: make a new one (nd7-vault enrolment create)');
      if (secret.expired)
        throw new Problem(
          'bad-enrolment',
          'the enrolment token has expired: make a new one (nd7-vault enrolment create)',
        );
      if (!again) await this.admit(tx, team, secretHash, request, now);
      await this.store.addToken(tx, team, request.machine, tokenHash(token));
      return this.store.policy(tx);
    });
    const vkey = await this.log.vkey(team);
    return {
      machine: request.machine,
      token,
      origin: this.log.origin(team),
      vkey,
      team,
      policy: policy ?? policyText(vkey),
      receipt_location: pathOf('enrolReceipt', { machine: request.machine }),
    };
  }

  private async admit(
    tx: Parameters<EnrolStore['use']>[0],
    team: string,
    secretHash: string,
    request: EnrolRequest,
    now: number,
  ): Promise<void> {
    const { machine, name, name_hash: nameHash, signature } = request;
    if (await this.store.isOtherRole(tx, machine))
      throw new Problem('key-role', 'this key is known as a session or vault key: make a machine key of its own');
    // A machine of this team that enrols again with a fresh secret only wants a token: it has its statement.
    const known = await this.store.known(tx, machine);
    if (known === 'revoked') throw new Problem('revoked', 'this machine key was revoked: enrol under a new one');
    if (known === 'new') {
      const statement = formatStatement({
        type: 'enrol',
        origin: this.log.origin(team),
        machine,
        nameHash,
        signature,
        received: formatTime(now),
      });
      const leafId = await this.log.enqueue(tx, team, statement);
      await this.store.addMachine(tx, { team, machine, name, nameHash, signature, enrolled: new Date(now), leafId });
    }
    if (!(await this.store.use(tx, team, secretHash, machine)))
      throw new Problem('bad-enrolment', 'the enrolment token was used a moment ago');
  }

  private async checkClaim(request: EnrolRequest, origin: string): Promise<void> {
    const key = fromHex(request.machine);
    if (key === undefined || !isStrictKey(key)) throw new Problem('bad-claim', 'machine is not an Ed25519 public key');
    // A name is guessable, a leaf is for ever: the hash is salted with the secret, which the vault sees once and does not keep.
    if (request.name_hash !== sha256Hex(Buffer.from(`nd7/name/v1\n${request.secret}\n${request.name}\n`, 'utf8'))) {
      throw new Problem(
        'bad-claim',
        'name_hash is not SHA-256 of "nd7/name/v1\\n", the secret, "\\n", the name, "\\n"',
      );
    }
    const message = enrolMessage({ origin, machine: request.machine, nameHash: request.name_hash });
    const [good] = await verifySignatures([{ key, message, signature: Buffer.from(request.signature, 'base64') }]);
    if (good !== true)
      throw new Problem('bad-claim', `the signature is not by the machine key over the enrol text for ${origin}`);
  }
}
