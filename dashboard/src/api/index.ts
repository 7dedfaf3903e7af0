/** Everything that pages need of the server: read, act, follow. */
export type { components, operations } from "./_generated/schema";
export * from "./access";
export * from "./hooks";
export { ExactNumber, parseJson, writeJson } from "./json";
export { LiveProvider, useLive, useTopics } from "./live";
export { messageOf, Problem, Unreachable } from "./problem";
export { request } from "./request";
export { ROOT, UI_PATH } from "./root";
export type { Me } from "./session";
export { useCan, useMe, useSession } from "./use_session";
