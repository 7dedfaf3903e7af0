import { useCan, useTopics } from "../../api";
import { PageHeader, Tabs } from "../../components";
import { href, useUrlValue } from "../../shell/url";
import { Decided } from "./Decided";
import { Inbox } from "./Inbox";

/** Jobs that wait for a decision, and what was decided lately. */
export default function Approvals() {
  const [tab] = useUrlValue("tab");
  const isDecided = tab === "decided";
  const isApprover = useCan("jobs:approve");
  useTopics(["approvals"]);
  return (
    <>
      <PageHeader
        title="Approvals"
        subtitle={
          isApprover
            ? "You approve exactly what you see. If a job changes meanwhile, the approval is refused."
            : "Jobs that start only after a person has approved them."
        }
      />
      <Tabs
        label="Approvals"
        items={[
          { href: "/approvals", label: "Waiting", isCurrent: !isDecided },
          { href: href("/approvals", { tab: "decided" }), label: "Decided", isCurrent: isDecided },
        ]}
      />
      {isDecided ? <Decided /> : <Inbox />}
    </>
  );
}
