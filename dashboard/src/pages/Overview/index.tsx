import { PageHeader } from "../../components";

export default function Overview() {
  return <PageHeader title="Overview" />;
}
