import { LinkText } from "../../components";
import { shortId } from "../../format";
import { flowPath, href, jobPath, lanePath } from "../../shell/url";
import styles from "./Audit.module.css";
import type { AuditEntry } from "./AuditTable";

const ID = /^[0-9a-f-]{36}$/;

/** What was changed, with a link to it where it has a page. */
export function Target({ entry: { kind, name } }: { entry: AuditEntry }) {
  if (name === null) return <span className="muted">{kind}</span>;
  const path = pathOf(kind, name);
  const words = path !== null && ID.test(name) ? shortId(name) : name;
  return (
    <span className={styles.target}>
      {kind !== "route" && <span className="muted">{kind}</span>}{" "}
      {path === null ? (
        <span>{words}</span>
      ) : (
        <LinkText quiet href={path}>
          {words}
        </LinkText>
      )}
    </span>
  );
}

function pathOf(kind: string, name: string): string | null {
  if (kind === "job") return ID.test(name) ? jobPath(name) : null;
  if (kind === "flow") return ID.test(name) ? flowPath(name) : null;
  if (kind === "lane") return lanePath(name);
  if (kind === "limit") return href("/limits", { name });
  if (kind === "schedule") return href("/schedules", { name });
  return null;
}
