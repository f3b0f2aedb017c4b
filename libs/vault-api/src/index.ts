/**
 * The HTTP contract of the vault: its routes, what they take and answer, and every problem code.
 *
 * It promises one description for the vault (which checks bodies with it), for the machines and the dashboard (which read answers
 * with it) and for people (the OpenAPI page is made from it). It decides nothing: no signature, hash or right is checked here; a body
 * that has the right shape has only the right shape. Called by apps/vault, libs/ship and the dashboard.
 */
export { ROUTES, pathOf, type Route, type RouteName, type Who } from './routes.js';
export {
  Enrolment,
  EnrolRequest,
  EnrolAnswer,
  SessionStatus,
  OpenRequest,
  CloseRequest,
  HEARTBEAT_SESSIONS,
  HeartbeatRequest,
  HeartbeatAnswer,
  SignInRequest,
  Me,
  SessionRow,
  SessionList,
  SessionListQuery,
  SessionPage,
  SegmentRow,
  MachineRow,
  MachineList,
  Seen,
  Incident,
  IncidentList,
  IncidentListQuery,
  LogState,
  TeamPolicy,
  EnrolmentToken,
  parseEnrolmentToken,
} from './bodies.js';
export { PROBLEMS, ProblemDocument, problemDocument, type ProblemCode, type ProblemExtra } from './problems.js';
export { openApi } from './openapi.js';
