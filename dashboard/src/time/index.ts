export { useNow } from "./clock";
export { Elapsed, Time } from "./Time";
