import type { components } from "../../api";
import { LinkText } from "../../components";
import { duration, shortId } from "../../format";
import { jobPath, lanePath } from "../../shell/url";
import { Time } from "../../time";
import styles from "./Reasons.module.css";
import { causePage, type Reason, type ReasonPart, reasonParts } from "./reason";

type Explanation = components["schemas"]["ExplanationOut"];

/** Every reason why a job is not running, the most decisive first. */
export function Reasons({ explanation, without }: ReasonsProps) {
  const shown = explanation.reasons.filter(({ code }) => !without?.includes(code));
  if (shown.length === 0) return null;
  return (
    <ol className={styles.reasons}>
      {shown.map((reason) => {
        const page = causePage(reason.code);
        return (
          <li key={`${reason.code} ${reason.message}`} className={styles.reason}>
            <p className={styles.message}>
              <ReasonText reason={reason} lane={explanation.lane} />
            </p>
            <p className={styles.code}>
              <code>{reason.code}</code>
              {page && <LinkText href={page.path}>{page.name}</LinkText>}
            </p>
          </li>
        );
      })}
    </ol>
  );
}

type ReasonsProps = {
  explanation: Explanation;
  /** Codes that the page says in another place. */
  without?: string[];
};

/** The text of a reason, with links to what it names. */
export function ReasonText({ reason, lane }: { reason: Reason; lane: string }) {
  return reasonParts(reason, lane).map((part, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a fixed text
    <Part key={at} part={part} />
  ));
}

function Part({ part }: { part: ReasonPart }) {
  switch (part.kind) {
    case "text":
      return part.text;
    case "command":
      return <code className={styles.command}>{part.text}</code>;
    case "time":
      return <Time at={part.at} full />;
    case "length":
      return duration(part.seconds);
    case "job":
      return (
        <LinkText href={jobPath(part.id)} title={part.id} className={styles.id}>
          {shortId(part.id)}
        </LinkText>
      );
    case "lane":
      return <LinkText href={lanePath(part.name)}>{part.name}</LinkText>;
    case "limit":
      return <LinkText href="/limits">{part.name}</LinkText>;
  }
}

/** When a job may start, and for how long jobs of its type ran lately. */
export function Estimate({ explanation }: { explanation: Explanation }) {
  const { starts_in_s: starts, runs_for_s: runs } = explanation;
  return (
    <p className={styles.estimate}>
      {starts === null ? (
        "There is no estimate yet of when it starts."
      ) : (
        <>
          May start{" "}
          <strong>{starts < 1.5 ? "at any moment" : `in about ${duration(starts)}`}</strong>.
        </>
      )}
      {runs !== null && ` Jobs of this type recently ran for about ${duration(runs)}.`}
    </p>
  );
}
