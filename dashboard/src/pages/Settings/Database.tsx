import { useApi } from "../../api";
import {
  Badge,
  Card,
  Cell,
  HeaderCell,
  KeyValue,
  Notice,
  Row,
  SkeletonLines,
  Table,
  TableBody,
  TableHead,
} from "../../components";
import { bytes, count, duration } from "../../format";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { Time } from "../../time";
import styles from "./Settings.module.css";

const LISTENER = {
  listening: "Changes by other processes arrive at once.",
  polling: "Notifications do not reach this server: it polls twice a second.",
  off: "No stream is open.",
};

/** Versions, sizes, dead rows and how this server learns of changes. */
export function Database() {
  const found = useApi("/admin/database");
  const data = found.data;
  if (found.error) return <ErrorNotice of={found} />;
  if (data === undefined) return <SkeletonLines count={8} />;
  const oldest = data.oldest_transaction;
  return (
    <div className={styles.stack}>
      {data.pending.length > 0 && (
        <Notice kind="warning" title="The schema is behind">
          Run <code>laneway db migrate</code>. It applies {data.pending.join(", ")}.
        </Notice>
      )}
      {data.changed.length > 0 && (
        <Notice kind="error" title="Applied migrations have another text">
          {data.changed.join(", ")}
        </Notice>
      )}
      <Card title="Server">
        <KeyValue
          items={[
            { name: "PostgreSQL", value: data.server_version },
            { name: "Schema", value: data.schema_version ?? "none" },
            { name: "Size", value: bytes(data.bytes) },
            {
              name: "Connection",
              value: data.connection === "pooled" ? "through a transaction pooler" : "direct",
            },
            {
              name: "Listener",
              value: (
                <>
                  <Badge tone={data.listener === "polling" ? "warning" : "neutral"}>
                    {data.listener}
                  </Badge>{" "}
                  {LISTENER[data.listener]}
                </>
              ),
            },
            {
              name: "Oldest transaction",
              value:
                oldest === null
                  ? "none"
                  : `pid ${oldest.pid}, ${oldest.application || "no name"}, ${oldest.user}: ${duration(oldest.age_s)}`,
            },
          ]}
        />
      </Card>
      <Card flush title="Tables" subtitle="The largest first, with their indexes.">
        <Table label="Tables" bare>
          <TableHead>
            <HeaderCell>Table</HeaderCell>
            <HeaderCell numeric>Size</HeaderCell>
            <HeaderCell numeric>Live rows</HeaderCell>
            <HeaderCell numeric>Dead rows</HeaderCell>
            <HeaderCell>Vacuumed</HeaderCell>
          </TableHead>
          <TableBody>
            {data.tables.map((table) => (
              <Row key={table.name}>
                <Cell rowHeader label="Table">
                  <code>{table.name}</code>
                </Cell>
                <Cell numeric label="Size">
                  {bytes(table.bytes)}
                </Cell>
                <Cell numeric label="Live rows">
                  {count(table.live_rows)}
                </Cell>
                <Cell numeric label="Dead rows">
                  {count(table.dead_rows)}
                </Cell>
                <Cell label="Vacuumed">
                  <Time at={table.vacuumed_at} />
                </Cell>
              </Row>
            ))}
          </TableBody>
        </Table>
      </Card>
    </div>
  );
}
