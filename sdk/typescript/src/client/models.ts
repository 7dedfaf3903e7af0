/** The API's values, under the names of this package. Their fields have the same names at every interface. */

export type {
  ApprovalRequest,
  Attempt,
  CancelRequest,
  Decision,
  Explanation,
  FieldError,
  Job,
  JobDetail,
  JobError,
  JobEventName,
  JobPage,
  JobRequest,
  LogLine,
  Problem,
  Progress,
  Reason,
  Rejection,
  Status,
  Step,
  Submitted as SubmittedJob,
} from "../_generated/api.js";
