import { useState } from "react";
import {
  Button,
  ConfirmDialog,
  Dialog,
  ErrorBoundary,
  TextField,
  useToast,
} from "../../components";
import styles from "./Gallery.module.css";
import { Sample, Section } from "./Section";

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export function OverlaySection() {
  const toast = useToast();
  const [open, setOpen] = useState<"dialog" | "confirm" | null>(null);
  const [isBroken, setBroken] = useState(false);
  const close = () => setOpen(null);
  return (
    <Section title="Dialogs and toasts">
      <Sample name="Dialog, ConfirmDialog, Toasts">
        <Button onPress={() => setOpen("dialog")}>Open dialog</Button>
        <Button variant="danger" onPress={() => setOpen("confirm")}>
          Delete 25 jobs
        </Button>
        <Button onPress={() => toast.success("Job queued again", "ingest 8f3a")}>Good toast</Button>
        <Button onPress={() => toast.error("Could not cancel", "The job has finished.")}>
          Bad toast
        </Button>
        <Button onPress={() => setBroken(true)}>Break a part</Button>
      </Sample>
      <div className={styles.wide}>
        <ErrorBoundary>{isBroken && <Broken />}</ErrorBoundary>
      </div>
      <Dialog
        title="Sign in"
        isOpen={open === "dialog"}
        onClose={close}
        footer={
          <>
            <Button onPress={close}>Cancel</Button>
            <Button variant="primary" onPress={close}>
              Sign in
            </Button>
          </>
        }
      >
        <TextField label="Token" mono autoFocus hint="Create one with: laneway tokens create" />
      </Dialog>
      <ConfirmDialog
        title="Delete 25 failed jobs?"
        isOpen={open === "confirm"}
        onClose={close}
        confirmLabel="Delete 25 jobs"
        danger
        onConfirm={() => wait(1200)}
      >
        Their payloads, results and logs are removed. This cannot be undone.
      </ConfirmDialog>
    </Section>
  );
}

function Broken(): never {
  throw new Error("This part is broken on purpose");
}
