import { type ReactNode, useState } from "react";
import { Button } from "./Button";
import { Dialog } from "./Dialog";

export interface ConfirmDialogProps {
  title: ReactNode;
  isOpen: boolean;
  onClose: () => void;
  /** What happens to how many, and whether it can be undone. */
  children: ReactNode;
  confirmLabel: string;
  cancelLabel?: string;
  danger?: boolean;
  /** The dialog closes when this resolves, and stays open when it rejects. */
  onConfirm: () => Promise<unknown> | unknown;
  /** Pending for a reason outside of `onConfirm`. */
  isPending?: boolean;
  /** Something is missing, such as a required reason. */
  isBlocked?: boolean;
}

export function ConfirmDialog({
  title,
  isOpen,
  onClose,
  children,
  confirmLabel,
  cancelLabel = "Keep as it is",
  danger,
  onConfirm,
  isPending = false,
  isBlocked = false,
}: ConfirmDialogProps) {
  const [isConfirming, setConfirming] = useState(false);
  const confirm = async () => {
    setConfirming(true);
    try {
      await onConfirm();
      onClose();
    } catch {
      // The action reports its problem; the dialog stays open for another try.
    } finally {
      setConfirming(false);
    }
  };
  return (
    <Dialog
      title={title}
      isOpen={isOpen}
      onClose={onClose}
      size="sm"
      isAlert
      footer={
        <>
          <Button onPress={onClose}>{cancelLabel}</Button>
          <Button
            variant={danger ? "danger" : "primary"}
            isPending={isPending || isConfirming}
            isDisabled={isBlocked}
            onPress={confirm}
            autoFocus={!danger}
          >
            {confirmLabel}
          </Button>
        </>
      }
    >
      {children}
    </Dialog>
  );
}
