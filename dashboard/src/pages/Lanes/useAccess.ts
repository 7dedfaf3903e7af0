import { coversEverything, coversLane, useMe } from "../../api";

export const useManagesLane = (lane: string) => coversLane(useMe(), "workers:manage", lane);
export const useManagesEverything = () => coversEverything(useMe(), "workers:manage");
export const useSeesEverything = () => coversEverything(useMe(), "workers:view");
