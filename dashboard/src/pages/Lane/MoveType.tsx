import { useAction } from "../../api";
import { ConfirmDialog } from "../../components";

type Props = {
  jobType: string | null;
  from: string | null;
  to: string;
  onClose: () => void;
};

/** Asks before a job type leaves another lane. */
export function MoveType({ jobType, from, to, onClose }: Props) {
  const take = useAction("post", "/admin/workers/lanes/{name}/take", {
    done: `${jobType} is in lane ${to} now`,
  });
  if (jobType === null) return null;
  return (
    <ConfirmDialog
      isOpen
      title={`Move ${jobType} here?`}
      confirmLabel="Move it"
      onClose={onClose}
      onConfirm={() =>
        take.confirm({ params: { path: { name: to } }, body: { job_type: jobType } })
      }
    >
      <p>
        {`A job type is in one lane only. ${jobType} leaves lane ${from} at once and takes its queued jobs along; running jobs finish there.`}
      </p>
    </ConfirmDialog>
  );
}
