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
