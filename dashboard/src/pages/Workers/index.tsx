import { PageHeader } from "../../components";

export default function Workers() {
  return <PageHeader title="Workers" />;
}
