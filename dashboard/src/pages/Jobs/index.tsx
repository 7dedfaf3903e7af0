import { useCallback, useState } from "react";
import { allows, useCan, useMe, useTopics } from "../../api";
import { BulkBar, BulkDialog, type BulkTarget, VERBS, type Verb } from "../../bulk";
import { Button, cx, Notice, PageHeader, SkeletonRows } from "../../components";
import { useJobFilter } from "../../filter";
import { plural } from "../../format";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { EmptyList } from "./EmptyList";
import { FilterBar } from "./FilterBar";
import styles from "./Jobs.module.css";
import { JobTable } from "./JobTable";
import { ListEnd } from "./ListEnd";
import { NewJobDialog } from "./NewJob";
import { StateList } from "./StateList";
import { type Job, useJobList } from "./useJobList";
import { useKnownValues } from "./useKnownValues";
import { useRows } from "./useRows";
import { useSlow } from "./useSlow";
import { ColumnButton, SavedViews, useColumns } from "./ViewMenu";

type Acting = { verb: Verb; target: BulkTarget };

/** All jobs: find some, read them, act on them. */
export default function Jobs() {
  useTopics(["jobs"]);
  const { filter, problem, setFilter } = useJobFilter();
  const list = useJobList(filter, problem === null);
  const [isFilterUsed, setFilterUsed] = useState(false);
  const known = useKnownValues(list.jobs, isFilterUsed);
  const { columns, chosen, setChosen } = useColumns();
  const canAct = useCanAct();
  const rows = useRows(list.jobs, JSON.stringify(filter), canAct);
  const [acting, setActing] = useState<Acting | null>(null);
  const [isNew, setNew] = useState(false);
  const canSubmit = useCan("jobs:submit");
  const isSlow = useSlow(list.pages.isFetching);

  const actOnOne = useCallback(
    (verb: Verb, job: Job) => setActing({ verb, target: { kind: "jobs", jobs: [job] } }),
    [],
  );
  const selectedJobs = list.jobs.filter(({ id }) => rows.selected.has(id));
  const target: BulkTarget = rows.isAllSelected
    ? { kind: "filter", filter }
    : { kind: "jobs", jobs: selectedJobs };
  const newJob = canSubmit && (
    <Button variant="primary" icon="plus" onPress={() => setNew(true)}>
      New job
    </Button>
  );
  const isReady = problem === null && !list.pages.isPending;
  return (
    <>
      <PageHeader title="Jobs" actions={newJob} />
      <div className={styles.page}>
        <StateList filter={filter} />
        <div className={styles.content}>
          <div className={styles.tools}>
            <FilterBar
              filter={filter}
              onChange={setFilter}
              known={known}
              onOpen={() => setFilterUsed(true)}
            />
            <div className={styles.viewTools}>
              <SavedViews filter={filter} />
              <ColumnButton chosen={chosen} onChange={setChosen} />
            </div>
          </div>
          {problem !== null && <Notice kind="warning" title={problem} />}
          {isSlow && (
            <Notice kind="warning" title="This search takes long">
              Narrow it down with a lane, a job type or since:1h.
            </Notice>
          )}
          <ErrorNotice of={list.pages} />
          {list.fresh > 0 && list.jobs.length > 0 && (
            <button type="button" className={styles.fresh} onClick={() => void list.showFresh()}>
              {plural(list.fresh, "new job")}
              {list.isMoreFresh && " or more"} — show
            </button>
          )}
          {problem === null && list.pages.isPending && (
            <SkeletonRows rows={12} columns="90px 2fr 1fr 2fr 1fr 1fr" />
          )}
          {isReady && list.jobs.length > 0 && (
            <div className={cx(styles.list, list.pages.isPlaceholderData && styles.outdated)}>
              <JobTable
                jobs={list.jobs}
                columns={columns}
                selected={canAct ? rows.selected : null}
                isAllSelected={rows.isAllSelected}
                currentId={rows.currentId}
                menuId={rows.menuId}
                onToggle={rows.toggle}
                onToggleAll={rows.toggleAll}
                onMenu={rows.setMenu}
                onVerb={actOnOne}
              />
            </div>
          )}
          {isReady && list.jobs.length === 0 && list.lookedBackTo === null && !list.pages.error && (
            <EmptyList filter={filter} onClear={() => setFilter({})} action={newJob || undefined} />
          )}
          {isReady && <ListEnd list={list} />}
          {(selectedJobs.length > 0 || rows.isAllSelected) && (
            <BulkBar
              target={target}
              onSelectAll={list.pages.hasNextPage ? rows.selectMatching : undefined}
              onVerb={(verb) => setActing({ verb, target })}
              onClear={rows.clear}
            />
          )}
        </div>
      </div>
      {acting && (
        <BulkDialog
          verb={acting.verb}
          target={acting.target}
          onClose={() => setActing(null)}
          onDone={rows.clear}
        />
      )}
      <NewJobDialog
        isOpen={isNew}
        onClose={() => setNew(false)}
        onSubmitted={() => void list.showFresh()}
      />
    </>
  );
}

function useCanAct(): boolean {
  const me = useMe();
  return VERBS.some(({ permission }) => allows(me, permission));
}
