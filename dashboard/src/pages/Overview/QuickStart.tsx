import { lazy, type ReactNode, Suspense, useState } from "react";
import { useLocation } from "wouter";
import { useCan } from "../../api";
import { Button, Card, CodeBlock, LinkText } from "../../components";
import { plural } from "../../format";
import { jobPath } from "../../shell/url";
import { useJobTypes } from "../Jobs/useJobTypes";
import { asCli, asCurl } from "../Lanes/commands";
import styles from "./Overview.module.css";

const NewJobDialog = lazy(async () => ({ default: (await import("../Jobs/NewJob")).NewJobDialog }));

const HANDLER = `from laneway import Context, Laneway

lw = Laneway()


@lw.handler("greet")
async def greet(ctx: Context, name: str) -> str:
    async for _ in ctx.track(range(5)):
        ctx.log(f"preparing a greeting for {name}")
    return f"Hello, {name}!"
`;

/** The way to the first job, for a database without jobs. */
export function QuickStart({ hasWorker }: { hasWorker: boolean }) {
  const isSubmitter = useCan("jobs:submit");
  const known = useJobTypes().types.filter(({ is_known }) => is_known);
  const first = known[0]?.name ?? "greet";
  const payload = known.length === 0 ? { name: "Ann" } : {};
  return (
    <Card
      title="Run your first job"
      subtitle="No jobs yet. Once there are some, this page shows what runs, what waits and what fails."
    >
      <ol className={styles.steps}>
        <Step number={1} title="Write a handler" isDone={known.length > 0}>
          {known.length > 0 ? (
            <p>
              {`${plural(known.length, "job type is", "job types are")} published: ${names(known.map(({ name }) => name))}.`}
            </p>
          ) : (
            <CodeBlock label="handler" title="app.py" text={HANDLER} />
          )}
        </Step>
        <Step number={2} title="Start a worker" isDone={hasWorker}>
          {hasWorker ? (
            <p>
              A worker is live and takes jobs. <LinkText href="/workers">All workers</LinkText>
            </p>
          ) : (
            <>
              <p>On a machine that reaches the database of this server:</p>
              <CodeBlock label="command" text="laneway worker app:lw" />
              <p className={styles.note}>
                Without a database login, use <code>laneway remote-worker app:lw</code>.
              </p>
            </>
          )}
        </Step>
        <Step number={3} title="Submit a job" isDone={false}>
          {isSubmitter && known.length > 0 ? (
            <SubmitButton jobType={first} />
          ) : (
            <p>From anywhere, with a token:</p>
          )}
          <CodeBlock
            wrap
            label="command"
            text={asCli(`jobs submit ${first} '${JSON.stringify(payload)}'`)}
          />
          <CodeBlock
            wrap
            label="curl command"
            text={asCurl("POST", "jobs", { job_type: first, payload })}
          />
        </Step>
      </ol>
    </Card>
  );
}

function SubmitButton({ jobType }: { jobType: string }) {
  const [isOpen, setOpen] = useState(false);
  const [, go] = useLocation();
  return (
    <div className={styles.submit}>
      <Button variant="primary" icon="play" onPress={() => setOpen(true)}>
        Submit a job
      </Button>
      <p>or from anywhere, with a token:</p>
      {isOpen && (
        <Suspense>
          <NewJobDialog
            isOpen
            initial={{ job_type: jobType }}
            onClose={() => setOpen(false)}
            onSubmitted={({ id }) => go(jobPath(id))}
          />
        </Suspense>
      )}
    </div>
  );
}

function names(all: string[]): string {
  return all.length > 5 ? `${all.slice(0, 5).join(", ")} …` : all.join(", ");
}

type StepProps = { number: number; title: string; isDone: boolean; children: ReactNode };

function Step({ number, title, isDone, children }: StepProps) {
  return (
    <li className={styles.step}>
      <h3>
        <span className={styles.stepNumber} data-done={isDone || undefined} aria-hidden="true">
          {isDone ? "✓" : number}
        </span>
        {title}
        {isDone && <span className="visually-hidden"> (done)</span>}
      </h3>
      <div className={styles.stepBody}>{children}</div>
    </li>
  );
}
