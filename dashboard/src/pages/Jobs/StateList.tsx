import { Link } from "wouter";
import { useApi } from "../../api";
import { cx, Icon, statusLook, statusWords, toneClass } from "../../components";
import { isCounted, type JobFilter, STATUSES, statusWord, toCountQuery } from "../../filter";
import { count } from "../../format";
import { href } from "../../shell/url";
import styles from "./Jobs.module.css";

/** The states with their number of jobs; each is a link to the list it counts. */
export function StateList({ filter }: { filter: JobFilter }) {
  const query = toCountQuery(filter);
  // Without conditions, the navigation asks the same.
  const counts = useApi("/jobs/counts", Object.keys(query).length > 0 ? { query } : undefined);
  const showsCounts = isCounted(filter);
  return (
    <nav className={styles.states} aria-label="States">
      <ul>
        <li>
          <StateLink filter={filter} status={null} />
        </li>
        {STATUSES.map((status) => {
          const found = counts.data?.items.find((each) => each.status === status);
          return (
            <li key={status}>
              <StateLink
                filter={filter}
                status={status}
                number={showsCounts && found ? count(found.count, found.is_capped) : null}
              />
            </li>
          );
        })}
      </ul>
      {!showsCounts && (
        <p className={styles.statesHint}>No counts: they take no text, flow, worker or error.</p>
      )}
    </nav>
  );
}

type LinkProps = { filter: JobFilter; status: string | null; number?: string | null };

function StateLink({ filter, status, number = null }: LinkProps) {
  const isHere = (filter.status ?? null) === status;
  const { tone, icon } = statusLook(status ?? "");
  return (
    <Link
      href={href("/jobs", { ...filter, status })}
      className={cx(styles.state, toneClass(status ? tone : "neutral"))}
      aria-current={isHere ? "page" : undefined}
    >
      <Icon name={status ? icon : "job"} size={14} className={styles.stateIcon} />
      <span className={styles.stateName}>{status ? statusWords(statusWord(status)) : "All"}</span>
      {number !== null && <span className={styles.stateCount}>{number}</span>}
    </Link>
  );
}
