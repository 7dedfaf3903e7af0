import { Button, Select, TypedField } from "../../components";
import styles from "./Audit.module.css";
import type { AuditFilterValues } from "./useAuditFilter";

const ANY = "any";
const OUTCOMES = [
  { id: ANY, label: "Any outcome" },
  { id: "done", label: "Done" },
  { id: "refused", label: "Refused" },
];
const DOORS = [
  { id: ANY, label: "Any interface" },
  { id: "ui", label: "Dashboard" },
  { id: "http", label: "HTTP API" },
  { id: "cli", label: "Command line" },
  { id: "python", label: "Python" },
  { id: "grpc", label: "Remote worker" },
  { id: "mcp", label: "Assistant (MCP)" },
];
const TIMES = [
  { id: ANY, label: "Any time" },
  { id: "1h", label: "Last hour" },
  { id: "24h", label: "Last 24 hours" },
  { id: "7d", label: "Last 7 days" },
  { id: "30d", label: "Last 30 days" },
];
const KINDS = ["job", "flow", "lane", "limit", "schedule", "gate", "access", "worker", "route"];

type Props = { filter: AuditFilterValues; onChange: (filter: AuditFilterValues) => void };

export function AuditFilter({ filter, onChange }: Props) {
  const set = (change: AuditFilterValues) => onChange({ ...filter, ...change });
  const choice = (key: "outcome" | "door" | "since") => ({
    value: filter[key] ?? ANY,
    onChange: (id: string) => set({ [key]: id === ANY ? "" : id }),
  });
  const times = TIMES.some(({ id }) => id === (filter.since ?? ANY))
    ? TIMES
    : [...TIMES, { id: filter.since ?? ANY, label: `Since ${filter.since}` }];
  return (
    <search className={styles.filter}>
      <TypedField label="Actor" value={filter.actor} onApply={(actor) => set({ actor })} />
      <TypedField
        label="Action"
        placeholder="lane.tuned"
        value={filter.action}
        onApply={(action) => set({ action })}
      />
      <KindField value={filter.kind ?? ""} onApply={(kind) => set({ kind })} />
      <TypedField
        label="Target"
        placeholder="name or job id"
        value={filter.name}
        onApply={(name) => set({ name })}
      />
      <Select label="Outcome" options={OUTCOMES} {...choice("outcome")} />
      <Select label="Via" options={DOORS} {...choice("door")} />
      <Select label="When" options={times} {...choice("since")} />
      {Object.keys(filter).length > 0 && (
        <div className={styles.clear}>
          <Button variant="quiet" icon="cross" onPress={() => onChange({})}>
            Clear
          </Button>
        </div>
      )}
    </search>
  );
}

function KindField({ value, onApply }: { value: string; onApply: (value: string) => void }) {
  const options = [ANY, ...KINDS, ...(value && !KINDS.includes(value) ? [value] : [])];
  return (
    <Select
      label="Kind"
      options={options.map((id) => ({ id, label: id === ANY ? "Any kind" : id }))}
      value={value || ANY}
      onChange={(id) => onApply(id === ANY ? "" : id)}
    />
  );
}
