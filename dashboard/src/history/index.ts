/** Histories of lanes, limits and schedules. */
export { ChangeHistory } from "./ChangeHistory";
export { changedFields, type FieldChange, type State } from "./changes";
export { FieldChanges, type FieldWords } from "./FieldChanges";
