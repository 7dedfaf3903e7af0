import { useEffect, useState } from "react";
import { copyText } from "../../components/clipboard";
import { shortId } from "../../format";
import styles from "./Jobs.module.css";

/** The short id of a job; a press copies the whole one. */
export function JobId({ id }: { id: string }) {
  const [said, setSaid] = useState<string | null>(null);
  useEffect(() => {
    if (said === null) return;
    const timer = setTimeout(() => setSaid(null), 1500);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => setSaid((await copyText(id)) ? "copied" : "not copied");
  return (
    <button
      type="button"
      className={styles.id}
      title={`Copy ${id}`}
      aria-label={`Copy id ${shortId(id)}`}
      onClick={() => void copy()}
    >
      {said === null ? shortId(id) : <output>{said}</output>}
    </button>
  );
}
