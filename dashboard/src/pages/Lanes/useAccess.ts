import { useMe } from "../../api";
import { coversEverything, coversLane } from "./access";

export const useManagesLane = (lane: string) => coversLane(useMe(), "workers:manage", lane);
export const useManagesEverything = () => coversEverything(useMe(), "workers:manage");
export const useSeesEverything = () => coversEverything(useMe(), "workers:view");
