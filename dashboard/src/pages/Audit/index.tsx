import { PageHeader } from "../../components";

export default function Audit() {
  return <PageHeader title="Audit" />;
}
