import type { components } from "../../api";
import { Card, Cell, HeaderCell, Row, Table, TableBody, TableHead } from "../../components";
import { duration, plural } from "../../format";
import { Time } from "../../time";

type Step = components["schemas"]["StepOut"];

/** The finished steps of a job, which later attempts reuse. */
export function Steps({ steps }: { steps: Step[] }) {
  if (steps.length === 0) return null;
  return (
    <Card
      title="Steps"
      subtitle={`${plural(steps.length, "finished step")}; later attempts reuse their results`}
      flush
    >
      <Table label="Finished steps" bare dense stacked={false}>
        <TableHead>
          <HeaderCell>Step</HeaderCell>
          <HeaderCell numeric>Took</HeaderCell>
          <HeaderCell numeric>Attempt</HeaderCell>
          <HeaderCell numeric>Finished</HeaderCell>
        </TableHead>
        <TableBody>
          {steps.map((step) => (
            <Row key={step.name}>
              <Cell rowHeader>{step.name}</Cell>
              <Cell label="Took" numeric>
                {duration(step.took_s)}
              </Cell>
              <Cell label="Attempt" numeric>
                {step.attempt}
              </Cell>
              <Cell label="Finished" numeric>
                <Time at={step.at} />
              </Cell>
            </Row>
          ))}
        </TableBody>
      </Table>
    </Card>
  );
}
