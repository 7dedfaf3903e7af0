/** Filters of jobs: as text, in the address, as parameters of the API, in words. */
export { parseAge } from "./age";
export * from "./complete";
export * from "./jobFilter";
export * from "./text";
export { useJobFilter } from "./useJobFilter";
export { filterWords } from "./words";
