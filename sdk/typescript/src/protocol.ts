/** The client and the messages of proto/laneway/v1/dispatch.proto, under short names. */

import { loadPackageDefinition } from "@grpc/grpc-js";
import { fromJSON } from "@grpc/proto-loader";

import { definition } from "./_generated/definition.js";
import type { ProtoGrpcType } from "./_generated/dispatch.js";

export type { AcquireLimitsRequest } from "./_generated/laneway/v1/AcquireLimitsRequest.js";
export type { AcquireLimitsResponse__Output as AcquireLimitsResponse } from "./_generated/laneway/v1/AcquireLimitsResponse.js";
export type { Answer__Output as Answer } from "./_generated/laneway/v1/Answer.js";
export type { Assignment__Output as Assignment } from "./_generated/laneway/v1/Assignment.js";
export type { BeginWaitRequest } from "./_generated/laneway/v1/BeginWaitRequest.js";
export type { BeginWaitResponse__Output as BeginWaitResponse } from "./_generated/laneway/v1/BeginWaitResponse.js";
export type { Claim__Output as Claim } from "./_generated/laneway/v1/Claim.js";
export type { DispatchServiceClient as Client } from "./_generated/laneway/v1/DispatchService.js";
export type { HeartbeatRequest } from "./_generated/laneway/v1/HeartbeatRequest.js";
export type { HeartbeatResponse__Output as HeartbeatResponse } from "./_generated/laneway/v1/HeartbeatResponse.js";
export type { JobResult__Output as JobResult } from "./_generated/laneway/v1/JobResult.js";
export type { JobType } from "./_generated/laneway/v1/JobType.js";
export type { LogLine } from "./_generated/laneway/v1/LogLine.js";
export type { Progressed__Output as Progressed } from "./_generated/laneway/v1/Progressed.js";
export type { ReadResultsRequest } from "./_generated/laneway/v1/ReadResultsRequest.js";
export type { ReadResultsResponse__Output as ReadResultsResponse } from "./_generated/laneway/v1/ReadResultsResponse.js";
export type { ReadWaitsRequest } from "./_generated/laneway/v1/ReadWaitsRequest.js";
export type { ReadWaitsResponse__Output as ReadWaitsResponse } from "./_generated/laneway/v1/ReadWaitsResponse.js";
export type { ReleaseLimitsRequest } from "./_generated/laneway/v1/ReleaseLimitsRequest.js";
export type { ReleaseLimitsResponse__Output as ReleaseLimitsResponse } from "./_generated/laneway/v1/ReleaseLimitsResponse.js";
export type { ReportProgressRequest } from "./_generated/laneway/v1/ReportProgressRequest.js";
export type { ReportProgressResponse__Output as ReportProgressResponse } from "./_generated/laneway/v1/ReportProgressResponse.js";
export type { ReportResultRequest } from "./_generated/laneway/v1/ReportResultRequest.js";
export type { ReportResultResponse__Output as ReportResultResponse } from "./_generated/laneway/v1/ReportResultResponse.js";
export type { Result } from "./_generated/laneway/v1/Result.js";
export type { Step } from "./_generated/laneway/v1/Step.js";
export type { StoredWait__Output as StoredWait } from "./_generated/laneway/v1/StoredWait.js";
export type { StreamJobsRequest } from "./_generated/laneway/v1/StreamJobsRequest.js";
export type { StreamJobsResponse__Output as StreamJobsResponse } from "./_generated/laneway/v1/StreamJobsResponse.js";
export type { SubJob } from "./_generated/laneway/v1/SubJob.js";
export type { SubmitSubJobsRequest } from "./_generated/laneway/v1/SubmitSubJobsRequest.js";
export type { SubmitSubJobsResponse__Output as SubmitSubJobsResponse } from "./_generated/laneway/v1/SubmitSubJobsResponse.js";
export type { Update } from "./_generated/laneway/v1/Update.js";

// The same as in scripts/generate.mjs.
const shape = { longs: Number, enums: String, defaults: true, oneofs: true };
const loaded = fromJSON(definition as unknown as Parameters<typeof fromJSON>[0], shape);

export const DispatchService = (loadPackageDefinition(loaded) as unknown as ProtoGrpcType).laneway
  .v1.DispatchService;
