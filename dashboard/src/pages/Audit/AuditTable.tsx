import { Fragment, useState } from "react";
import type { components } from "../../api";
import {
  Badge,
  Cell,
  cx,
  HeaderCell,
  IconButton,
  Row,
  Table,
  TableBody,
  TableHead,
  TooltipText,
} from "../../components";
import { Time } from "../../time";
import styles from "./Audit.module.css";
import { AuditDetail } from "./AuditDetail";
import { actionWords, changeWords, valueWords } from "./changes";
import { Target } from "./Target";

export type AuditEntry = components["schemas"]["AuditEntryOut"];

const DOORS: Record<AuditEntry["door"], string> = {
  ui: "dashboard",
  http: "HTTP",
  cli: "CLI",
  python: "Python",
  grpc: "gRPC",
  mcp: "MCP",
};

type Props = { entries: readonly AuditEntry[]; isOutdated: boolean };

export function AuditTable({ entries, isOutdated }: Props) {
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const toggle = (id: number) => {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
  };
  return (
    <div className={cx(isOutdated && styles.outdated)}>
      <Table label="Audit entries">
        <TableHead>
          <HeaderCell hidden>Details</HeaderCell>
          <HeaderCell>When</HeaderCell>
          <HeaderCell>Actor</HeaderCell>
          <HeaderCell>Action</HeaderCell>
          <HeaderCell>Target</HeaderCell>
          <HeaderCell>Change</HeaderCell>
          <HeaderCell>Via</HeaderCell>
        </TableHead>
        <TableBody>
          {entries.map((entry) => (
            <Fragment key={entry.id}>
              <EntryRow
                entry={entry}
                isOpen={open.has(entry.id)}
                onToggle={() => toggle(entry.id)}
              />
              {open.has(entry.id) && (
                <tr className={styles.detailRow}>
                  <td colSpan={7} id={`entry-${entry.id}`}>
                    <AuditDetail entry={entry} />
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </TableBody>
      </Table>
    </div>
  );
}

type RowProps = { entry: AuditEntry; isOpen: boolean; onToggle: () => void };

function EntryRow({ entry, isOpen, onToggle }: RowProps) {
  const isRefused = entry.outcome === "refused";
  return (
    <Row className={cx(isRefused && styles.refused)}>
      <Cell control>
        <IconButton
          icon={isOpen ? "chevron-down" : "chevron-right"}
          label={isOpen ? "Hide details" : "Show details"}
          size="sm"
          aria-expanded={isOpen}
          {...(isOpen && { "aria-controls": `entry-${entry.id}` })}
          onPress={onToggle}
        />
      </Cell>
      <Cell label="When" className={styles.whole ?? ""}>
        <Time full at={entry.at} />
      </Cell>
      <Cell label="Actor" className={styles.words ?? ""}>
        <Claimed isClaimed={entry.claimed.includes("actor")}>{entry.actor}</Claimed>
      </Cell>
      <Cell rowHeader className={styles.words ?? ""}>
        <span className={styles.action}>
          {actionWords(entry.action)}
          {isRefused && (
            <Badge tone="failed" icon="lock">
              Refused
            </Badge>
          )}
        </span>
      </Cell>
      <Cell label="Target" className={styles.words ?? ""}>
        <Target entry={entry} />
      </Cell>
      <Cell label="Change" truncate blank={isPlain(entry)} className={styles.change ?? ""}>
        <Change entry={entry} />
      </Cell>
      <Cell label="Via" className={styles.whole ?? ""}>
        <Claimed isClaimed={entry.claimed.includes("door")}>{DOORS[entry.door]}</Claimed>
      </Cell>
    </Row>
  );
}

/** Whether there are no values to show. */
function isPlain({ before, after }: AuditEntry): boolean {
  return (before === null || after === null) && valueWords(before ?? after ?? {}) === "";
}

function Change({ entry: { before, after } }: { entry: AuditEntry }) {
  const words = changeWords(before, after);
  if (words !== null) return <span title={words}>{words}</span>;
  if (before !== null && after !== null) return <span className="muted">unchanged</span>;
  const values = valueWords(before ?? after ?? {});
  return (
    <span className="muted" title={values}>
      {after === null && before !== null && "removed "}
      {values || "—"}
    </span>
  );
}

/** A value that the caller reported itself. */
function Claimed({ isClaimed, children }: { isClaimed: boolean; children: string }) {
  if (!isClaimed) return <>{children}</>;
  return (
    <TooltipText
      className={styles.claimed}
      text="The caller reported this itself; the server could not verify it."
    >
      {children}
    </TooltipText>
  );
}
