import { type ReactNode, useEffect, useRef } from "react";
import { Dialog as AriaDialog } from "react-aria-components/Dialog";
import { Heading } from "react-aria-components/Heading";
import { Modal, ModalOverlay } from "react-aria-components/Modal";
import { IconButton } from "./Button";
import { cx } from "./cx";
import styles from "./Dialog.module.css";

export interface DialogProps {
  title: ReactNode;
  isOpen: boolean;
  /** Left out: only an answer closes it. */
  onClose?: (() => void) | undefined;
  children: ReactNode;
  /** Buttons at the bottom, the main one last. */
  footer?: ReactNode;
  size?: "sm" | "md" | "lg";
  /** Closes by its own buttons only: for what a stray click or key must not lose. */
  isKept?: boolean;
  /** The same, but only once something was entered or chosen in it. */
  keepsInput?: boolean;
  /** The role "alertdialog", for a question that needs an answer. */
  isAlert?: boolean;
}

// What is chosen by a press: steps of a number, options of a list, chips.
const CHOICES = "button, [role=option]";
const FIELDS = [
  "input:not([type=hidden]):not([tabindex='-1']):not(:disabled)",
  "textarea:not(:disabled)",
  "button[aria-haspopup=listbox]:not([tabindex='-1']):not(:disabled)",
].join();

/**
 * Puts the focus on its first field, traps it, closes by Escape unless kept, and gives the focus
 * back to where it was.
 */
export function Dialog({
  title,
  isOpen,
  onClose,
  children,
  footer,
  size = "md",
  isKept,
  keepsInput,
  isAlert,
}: DialogProps) {
  const hasInput = useRef(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: opened again, nothing was entered yet
  useEffect(() => {
    hasInput.current = false;
  }, [isOpen]);
  const noteInput = () => {
    hasInput.current = true;
  };
  const noteChoice = ({ target }: { target: EventTarget }) => {
    if (target instanceof Element && target.closest(CHOICES)) noteInput();
  };
  return (
    <ModalOverlay
      className={styles.overlay ?? ""}
      isOpen={isOpen}
      onOpenChange={(open) => !open && !(keepsInput && hasInput.current) && onClose?.()}
      isDismissable={!isKept && onClose !== undefined}
      isKeyboardDismissDisabled={isKept || onClose === undefined}
    >
      <Modal className={cx(styles.modal, styles[size])}>
        <AriaDialog className={styles.dialog ?? ""} role={isAlert ? "alertdialog" : "dialog"}>
          <header className={styles.header}>
            <Heading slot="title" level={2} className={styles.title ?? ""}>
              {title}
            </Heading>
            {onClose && <IconButton icon="cross" label="Close" size="sm" onPress={onClose} />}
          </header>
          <Focused>
            <div className={styles.body} onInputCapture={noteInput} onClickCapture={noteChoice}>
              {children}
            </div>
            {footer && <footer className={styles.footer}>{footer}</footer>}
          </Focused>
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

/** Content whose first field has the focus when it appears, unless something else asked for it. */
function Focused({ children }: { children: ReactNode }) {
  const content = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const shown = content.current;
    if (shown === null || shown.contains(document.activeElement)) return;
    const first = shown.querySelector<HTMLElement>(FIELDS);
    // A field with suggestions would cover the others with them.
    if (first?.getAttribute("role") !== "combobox") first?.focus();
  }, []);
  // React Aria gives the focus back in the next frame: this looks in the one after it.
  useEffect(() => () => void requestAnimationFrame(() => requestAnimationFrame(focusPage)), []);
  return (
    <div ref={content} className={styles.content}>
      {children}
    </div>
  );
}

/** Keep the keyboard on the page after a dialog that removed the button which opened it. */
function focusPage() {
  if (document.activeElement === document.body) document.getElementById("main")?.focus();
}

/** The buttons at the end of a form in a dialog, the main one last. */
export function DialogActions({ children }: { children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>;
}
