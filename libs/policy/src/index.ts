/**
 * The policy language: what people write, how layers meet, and what comes of it for one session (docs/policy.md).
 *
 * It promises that nothing is allowed that no rule allows, that an empty list is nothing, and that a policy which may only narrow never
 * widens. It touches no disk, kernel or network: files come in as text, the outcome is data. `@nd7/confine` makes it hold.
 */
export { PROPERTIES } from './ruleset.js';
export type {
  Access,
  Credential,
  EnvironmentRules,
  FileNode,
  HostBound,
  HostRule,
  Layer,
  LayerName,
  LeafTreatment,
  Mask,
  Mediator,
  NetworkRules,
  PortRange,
  Property,
  ProtectedLeaf,
  Ruleset,
  SocketGrant,
  Source,
  Sourced,
  Tier,
} from './ruleset.js';
export { PolicyError } from './failure.js';
export type { PolicyErrorCode } from './failure.js';
export { policySchema } from './document.js';
export type { PolicyDocument } from './document.js';
export { readPolicy } from './read.js';
export type { PolicyFile } from './read.js';
export { filesNamedBy, isBuiltin } from './parts.js';
export type { CompileInput } from './parts.js';
export type { Places } from './path.js';
export { compile, rulesetHash } from './compile.js';
export type { Note } from './compile.js';
export {
  accessAt,
  decideHost,
  decideName,
  loopbackAddresses,
  maskAt,
  mayDial,
  nodeAt,
  portRule,
  writableRoots,
} from './decide.js';
export type { Facts, HostDecision } from './decide.js';
export { foldName, nameMatches } from './pattern.js';
export { PACKAGE_FOLDERS } from './builtin/index.js';
export { leafAt, looksLikeGitDir, maskedPrefix } from './names.js';
export { comparePaths, isWithin } from './path.js';
export { environmentInside } from './environment.js';
export { parseAuthority, parseHost, parseHostRule } from './host.js';
export type { Host, HostFault } from './host.js';
export { addressKind } from './address.js';
export type { AddressKind } from './address.js';
export { why } from './why.js';
export type { Answer, Question, Way } from './why.js';
export { compareGitConfig, isPlain, NO_PUSH, parseGitConfig, type ConfigEntry } from './git-config.js';
export type { ConfigChange, ConfigFault } from './git-config.js';
export { mayBeWorkTree, mayPoint } from './git-pointer.js';
export type { Pointer, PointerKind } from './git-pointer.js';
export { compareClaudeState } from './claude-state.js';
export { diff } from './diff.js';
export type { Change } from './diff.js';
export { explain } from './explain.js';
export type { Explanation, Statement } from './explain.js';
export { learn } from './learn/learn.js';
export { policyOfItems } from './learn/items.js';
export { profileText } from './learn/text.js';
export type { Held, LearnFacts, LearnInput, Learnt, RefusedName, Seen, SeenHost } from './learn/seen.js';
