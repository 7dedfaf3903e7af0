/** Actions on many jobs: chosen ones, or all that match a filter. */
export { BulkBar, useVerbs } from "./BulkBar";
export { BulkDialog, type BulkDialogProps } from "./BulkDialog";
export { type BulkTarget, type BulkVerb, fits, takes, VERBS, type Verb, verbOf } from "./verbs";
