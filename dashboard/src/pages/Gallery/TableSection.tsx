import { useState } from "react";
import {
  Button,
  Cell,
  Checkbox,
  HeaderCell,
  LinkText,
  Menu,
  ProgressBar,
  Row,
  SlotBoxes,
  Sparkline,
  StatusBadge,
  Table,
  TableBody,
  TableHead,
} from "../../components";
import { history } from "./data";
import { Sample, Section } from "./Section";

const lanes = [
  { name: "interactive", used: 3, total: 5, waiting: "12", oldest: "8 s", done: "41", fail: "0.4" },
  { name: "maintenance", used: 1, total: 1, waiting: "87", oldest: "41 min", done: "0", fail: "0" },
  { name: "default", used: 3, total: null, waiting: "0", oldest: "–", done: "2", fail: "0" },
];

const jobs = [
  { id: "8f3a", type: "ingest", status: "running", label: "running", percent: 61, age: "42 s" },
  { id: "91c0", type: "projection", status: "failed", label: "failed", percent: 28, age: "12 min" },
  { id: "a7e2", type: "report", status: "approved", label: "queued", percent: 0, age: "3 h" },
];

export function TableSection() {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set(["91c0"]));
  const [sort, setSort] = useState<"ascending" | "descending">("descending");
  const choose = (id: string, isSelected: boolean) => {
    const next = new Set(selected);
    if (isSelected) next.add(id);
    else next.delete(id);
    setSelected(next);
  };
  return (
    <Section title="Tables">
      <Sample name="Table">
        <Table label="Lanes">
          <TableHead>
            <HeaderCell>Lane</HeaderCell>
            <HeaderCell>Slots</HeaderCell>
            <HeaderCell
              numeric
              sort={sort}
              onSort={() => setSort(sort === "ascending" ? "descending" : "ascending")}
            >
              Waiting
            </HeaderCell>
            <HeaderCell numeric>Oldest</HeaderCell>
            <HeaderCell numeric>Done/min</HeaderCell>
            <HeaderCell numeric>Failed %</HeaderCell>
            <HeaderCell>Last 30 min</HeaderCell>
            <HeaderCell hidden>Actions</HeaderCell>
          </TableHead>
          <TableBody>
            {lanes.map((lane) => (
              <Row key={lane.name}>
                <Cell rowHeader label="Lane">
                  <LinkText href={`/lanes/${lane.name}`} quiet>
                    {lane.name}
                  </LinkText>
                </Cell>
                <Cell label="Slots">
                  <SlotBoxes used={lane.used} total={lane.total} />
                </Cell>
                <Cell label="Waiting" numeric>
                  {lane.waiting}
                </Cell>
                <Cell label="Oldest" numeric>
                  {lane.oldest}
                </Cell>
                <Cell label="Done/min" numeric>
                  {lane.done}
                </Cell>
                <Cell label="Failed %" numeric>
                  {lane.fail}
                </Cell>
                <Cell label="Last 30 min">
                  <Sparkline values={history} label={`Done per minute: ${lane.done} now`} />
                </Cell>
                <Cell control>
                  <Button size="sm">Drain</Button>
                </Cell>
              </Row>
            ))}
          </TableBody>
        </Table>
      </Sample>
      <Sample name="Table, dense, with selection">
        <Table label="Jobs" dense maxHeight="220px">
          <TableHead>
            <HeaderCell hidden>Select</HeaderCell>
            <HeaderCell>Status</HeaderCell>
            <HeaderCell>Job</HeaderCell>
            <HeaderCell>Progress</HeaderCell>
            <HeaderCell>Error</HeaderCell>
            <HeaderCell numeric>Age</HeaderCell>
            <HeaderCell hidden>Actions</HeaderCell>
          </TableHead>
          <TableBody>
            {jobs.map((job) => (
              <Row key={job.id} selected={selected.has(job.id)} current={job.id === "8f3a"}>
                <Cell control>
                  <Checkbox
                    label={`Select job ${job.id}`}
                    isSelected={selected.has(job.id)}
                    onChange={(isSelected) => choose(job.id, isSelected)}
                  />
                </Cell>
                <Cell label="Status">
                  <StatusBadge status={job.status} label={job.label} plain />
                </Cell>
                <Cell rowHeader label="Job">
                  <LinkText href={`/jobs/${job.id}`}>
                    {job.type} <span className="mono muted">{job.id}</span>
                  </LinkText>
                </Cell>
                <Cell label="Progress">
                  <ProgressBar percent={job.percent} label={`Progress of ${job.id}`} />
                </Cell>
                <Cell label="Error" truncate>
                  {job.status === "failed" &&
                    "httpx.HTTPStatusError: Server error 503 Service Unavailable for url https://example.org"}
                </Cell>
                <Cell label="Age" numeric>
                  {job.age}
                </Cell>
                <Cell control>
                  <Menu
                    label={`Actions of job ${job.id}`}
                    items={[{ id: "retry", label: "Retry", icon: "retry", onAction: () => {} }]}
                  />
                </Cell>
              </Row>
            ))}
          </TableBody>
        </Table>
      </Sample>
    </Section>
  );
}
