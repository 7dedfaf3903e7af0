import { PageHeader } from "../../components";

export default function Failures() {
  return <PageHeader title="Failures" />;
}
