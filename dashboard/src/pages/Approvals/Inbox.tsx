import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { type components, keyOf, useApi, useApiPages, useCan, useMe } from "../../api";
import { Button, EmptyState, SkeletonRows } from "../../components";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { useKeys } from "../../shell/useKeys";
import { actionsFor } from "../Job/actionRules";
import { ApprovalCard } from "./ApprovalCard";
import { ApprovalItem } from "./ApprovalItem";
import styles from "./Approvals.module.css";
import { ApproveMany } from "./ApproveMany";
import { DecisionDialog, type DecisionVerb } from "./DecisionDialog";

type Job = components["schemas"]["JobOut"];
type Detail = components["schemas"]["JobDetailOut"];
/** The open dialog, and the place of its card in the list. */
type Asked = { job: Detail; decision: DecisionVerb; at: number };

const FOCUS_MS = 50;
const WAITING = { status: "awaiting_approval", oldest_first: true, limit: 50 } as const;

/** Requests that wait for a decision, the oldest first. */
export function Inbox() {
  const found = useApiPages("/jobs", { query: WAITING }, { small: true });
  // An event may have changed a job before the list is read again.
  const jobs = found.items.filter(({ status }) => status === "awaiting_approval");
  const [asked, setAsked] = useState<Asked | null>(null);
  const [opened, setOpened] = useState<Readonly<Record<string, boolean>>>({});
  const list = useRef<HTMLDivElement>(null);
  const focusNext = useFocusAfter(list, jobs);
  const lanes = useLanes();
  const ask = (job: Detail, decision: DecisionVerb) => {
    setAsked({ job, decision, at: jobs.findIndex(({ id }) => id === job.id) });
  };
  // The oldest is open until a person closes it.
  const isOpen = (id: string) => opened[id] ?? id === jobs[0]?.id;
  const open = (id: string, isNowOpen = true) => setOpened({ ...opened, [id]: isNowOpen });
  useCardKeys(list, ask, open);
  if (found.isPending) return <SkeletonRows rows={5} columns="2fr 1fr 1fr 1fr" />;
  if (found.isError) return <ErrorNotice of={found} />;
  return (
    <>
      <ApproveMany jobs={jobs} isMore={found.hasNextPage} />
      {jobs.length === 0 && !found.hasNextPage ? (
        <EmptyState icon="approval" title="Nothing waits for a decision">
          Jobs of types with <code>approval=True</code> appear here before they run.
        </EmptyState>
      ) : (
        <div ref={list} className={styles.items}>
          {jobs.map((job) => (
            <ApprovalItem
              key={job.id}
              job={job}
              isOpen={isOpen(job.id)}
              onToggle={() => open(job.id, !isOpen(job.id))}
            >
              <CardWithHistory
                job={job}
                sample={jobs.find(({ job_type }) => job_type === job.job_type) ?? job}
                lane={lanes.find(({ name }) => name === job.lane)}
                onDecide={ask}
              />
            </ApprovalItem>
          ))}
        </div>
      )}
      {found.hasNextPage && (
        <div className={styles.more}>
          <Button isPending={found.isFetchingNextPage} onPress={() => void found.fetchNextPage()}>
            Show more
          </Button>
        </div>
      )}
      {asked && (
        <DecisionDialog
          job={asked.job}
          decision={asked.decision}
          onClose={() => setAsked(null)}
          onDecided={() => focusNext(asked.job.id, asked.at)}
        />
      )}
    </>
  );
}

type CardProps = {
  job: Job;
  /** A job of the same type: one estimate serves all of them. */
  sample: Job;
  lane: components["schemas"]["LaneStatusOut"] | undefined;
  onDecide: (job: Detail, decision: DecisionVerb) => void;
};

function CardWithHistory({ job, sample, lane, onDecide }: CardProps) {
  const explanation = useApi("/jobs/{job_id}/explain", { path: { job_id: sample.id } });
  const runsForS = explanation.data?.runs_for_s;
  return <ApprovalCard job={job} lane={lane} runsForS={runsForS} onDecide={onDecide} />;
}

function useLanes() {
  const isAllowed = useCan("workers:view");
  const found = useApi("/admin/workers/lanes", { query: { limit: 200 } }, { enabled: isAllowed });
  return found.data?.items ?? [];
}

/**
 * Keys of the inbox: j and k move between requests, A and R decide about the focused one. A closed
 * one opens first, so that its content is on the screen.
 */
function useCardKeys(
  list: React.RefObject<HTMLDivElement | null>,
  ask: (job: Detail, decision: DecisionVerb) => void,
  open: (id: string) => void,
) {
  const me = useMe();
  const cache = useQueryClient();
  const cards = () => [...(list.current?.children ?? [])] as HTMLElement[];
  const current = () => cards().findIndex((card) => card.contains(document.activeElement));
  const move = (by: number) => {
    const next = Math.min(Math.max(current() + by, 0), cards().length - 1);
    focusItem(cards()[next]);
  };
  const decide = (decision: DecisionVerb) => {
    const card = cards()[current()];
    const id = card?.dataset.job;
    if (id === undefined) return;
    if (!card?.hasAttribute("data-open")) return open(id);
    const job = cache.getQueryData<Detail>(keyOf("/jobs/{job_id}", { path: { job_id: id } }));
    if (job && actionsFor(me, job, Date.now()).has(decision)) ask(job, decision);
  };
  const approve = () => decide("approve");
  const reject = () => decide("reject");
  useKeys({ j: () => move(1), k: () => move(-1), a: approve, A: approve, r: reject, R: reject });
}

/** Returns how to say that a job was decided: when its card is gone, the next one gets the focus. */
function useFocusAfter(list: React.RefObject<HTMLDivElement | null>, jobs: Job[]) {
  const decided = useRef<{ id: string; at: number } | null>(null);
  useEffect(() => {
    const done = decided.current;
    if (done === null || jobs.some(({ id }) => id === done.id)) return;
    decided.current = null;
    // The dialog gives the focus back first.
    setTimeout(() => {
      const cards = [...(list.current?.children ?? [])] as HTMLElement[];
      const next = cards[Math.min(done.at, cards.length - 1)];
      if (next) focusItem(next);
      else document.getElementById("main")?.focus();
    }, FOCUS_MS);
  });
  return (id: string, at: number) => {
    decided.current = { id, at };
  };
}

function focusItem(item: HTMLElement | undefined) {
  item?.querySelector<HTMLElement>("[aria-expanded]")?.focus();
}
