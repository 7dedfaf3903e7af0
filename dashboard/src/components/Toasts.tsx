import {
  createContext,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { IconButton } from "./Button";
import { cx } from "./cx";
import { Icon, type IconName } from "./Icon";
import type { Tone } from "./status";
import styles from "./Toasts.module.css";
import { toneClass } from "./tones";

export type ToastKind = "success" | "info" | "error";

export interface ToastOptions {
  kind?: ToastKind;
  title: string;
  detail?: ReactNode;
  /** A link or a button. */
  action?: ReactNode;
}

export interface ToastApi {
  /** Show a toast; returns a function that closes it. */
  show: (options: ToastOptions) => () => void;
  success: (title: string, detail?: ReactNode) => void;
  error: (title: string, detail?: ReactNode) => void;
}

interface Toast extends ToastOptions {
  id: number;
}

const looks: Record<ToastKind, { tone: Tone; icon: IconName; word: string }> = {
  success: { tone: "completed", icon: "success", word: "Done" },
  info: { tone: "info", icon: "info", word: "Note" },
  error: { tone: "failed", icon: "error", word: "Problem" },
};

const SHOWN_MS = 6000;
const MOST_SHOWN = 5;

const ToastContext = createContext<ToastApi | null>(null);

export function useToast(): ToastApi {
  const api = useContext(ToastContext);
  if (!api) throw new Error("useToast needs a ToastProvider around it");
  return api;
}

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const lastId = useRef(0);
  const close = useCallback((id: number) => {
    setToasts((all) => all.filter((toast) => toast.id !== id));
  }, []);
  const api = useMemo<ToastApi>(() => {
    const show = (options: ToastOptions) => {
      lastId.current += 1;
      const id = lastId.current;
      setToasts((all) => [...all, { ...options, id }].slice(-MOST_SHOWN));
      return () => close(id);
    };
    return {
      show,
      success: (title, detail) => void show({ kind: "success", title, detail }),
      error: (title, detail) => void show({ kind: "error", title, detail }),
    };
  }, [close]);
  return (
    <ToastContext value={api}>
      {children}
      <section
        aria-label="Notifications"
        aria-live="polite"
        aria-relevant="additions"
        className={styles.stack}
        data-react-aria-top-layer="true"
        data-print="hide"
      >
        {toasts.map((toast) => (
          <ToastCard key={toast.id} toast={toast} onClose={close} />
        ))}
      </section>
    </ToastContext>
  );
}

function ToastCard({ toast, onClose }: { toast: Toast; onClose: (id: number) => void }) {
  const { id, kind = "info", title, detail, action } = toast;
  const { tone, icon, word } = looks[kind];
  const [isHeld, setHeld] = useState(false);
  useEffect(() => {
    if (kind === "error" || isHeld) return;
    const timer = setTimeout(() => onClose(id), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [id, kind, isHeld, onClose]);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: hovering only stops the clock
    <div
      className={cx(styles.toast, toneClass(tone))}
      data-kind={kind}
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
      onFocus={() => setHeld(true)}
      onBlur={() => setHeld(false)}
    >
      <Icon name={icon} className={styles.icon} label={word} />
      <div className={styles.body}>
        <p className={styles.title}>{title}</p>
        {detail && <div className={styles.detail}>{detail}</div>}
        {action && <div className={styles.action}>{action}</div>}
      </div>
      <IconButton icon="cross" label="Close" size="sm" onPress={() => onClose(id)} />
    </div>
  );
}
