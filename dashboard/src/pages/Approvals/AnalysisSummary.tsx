import { KeyValue, Notice } from "../../components";
import { analysisParts } from "./analysis";

/** What a decision costs, and what the analysis warns of. */
export function AnalysisSummary({ analysis }: { analysis: unknown }) {
  const { cost, warnings } = analysisParts(analysis);
  return (
    <>
      <KeyValue items={[{ name: "Cost", value: <CostWords cost={cost} /> }]} />
      <AnalysisWarnings warnings={warnings} />
    </>
  );
}

export function CostWords({ cost }: { cost: string | null }) {
  return cost ? <strong>{cost}</strong> : <>not estimated</>;
}

export function AnalysisWarnings({ warnings }: { warnings: readonly string[] }) {
  if (warnings.length === 0) return null;
  return (
    <Notice kind="warning" title="The analysis warns">
      <ul>
        {warnings.map((warning) => (
          <li key={warning}>{warning}</li>
        ))}
      </ul>
    </Notice>
  );
}
