import { PageHeader } from "../../components";

export default function Limits() {
  return <PageHeader title="Limits" />;
}
