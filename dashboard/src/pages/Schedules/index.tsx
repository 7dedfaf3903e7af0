import { useState } from "react";
import { useApiPages, useCan, useTopics } from "../../api";
import { Button, EmptyState, PageHeader, SkeletonRows } from "../../components";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { MoreButton } from "../../shell/MoreButton";
import { ScheduleDialog } from "./ScheduleDialog";
import { ScheduleTable } from "./ScheduleTable";

/** Schedules in plain words, with what comes next and how the last slots went. */
export default function Schedules() {
  const schedules = useApiPages("/admin/schedules");
  const canManage = useCan("schedules:manage");
  const [isCreating, setCreating] = useState(false);
  useTopics(["lanes"]);
  return (
    <>
      <PageHeader
        title="Schedules"
        subtitle="Each schedule submits a job at its times, once however many processes run."
        actions={
          canManage && (
            <Button variant="primary" icon="plus" onPress={() => setCreating(true)}>
              New schedule
            </Button>
          )
        }
      />
      <ErrorNotice of={schedules} />
      {schedules.isPending && <SkeletonRows rows={4} />}
      {schedules.data && schedules.items.length === 0 && (
        <EmptyState icon="clock" title="No schedules yet">
          A schedule submits a job on a cron expression, such as <code>30 2 * * 1-5</code> in
          Europe/Berlin. Create one here, with <code>laneway schedules set</code>, or in code with{" "}
          <code>@lw.schedule(…)</code>.
        </EmptyState>
      )}
      {schedules.items.length > 0 && (
        <ScheduleTable schedules={schedules.items} canManage={canManage} />
      )}
      <MoreButton of={schedules} />
      {isCreating && <ScheduleDialog onClose={() => setCreating(false)} />}
    </>
  );
}
