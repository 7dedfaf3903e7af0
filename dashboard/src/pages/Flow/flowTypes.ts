import type { components } from "../../api";

/** A flow with the number of its jobs, as lists show it. */
export type FlowSummary = components["schemas"]["FlowOut"];
/** One job of a flow: its state and edges, without payload and result. */
export type FlowJob = components["schemas"]["FlowJobOut"];
