/** Actions on many jobs: chosen ones, or all that match a filter. */
export { BulkBar, useVerbs } from "./BulkBar";
export { BulkDialog, type BulkDialogProps } from "./BulkDialog";
export {
  type BulkTarget,
  fits,
  type Job,
  takes,
  VERBS,
  type Verb,
  type VerbId,
  verbOf,
} from "./verbs";
