import { PageHeader } from "../../components";

export default function Approvals() {
  return <PageHeader title="Approvals" />;
}
