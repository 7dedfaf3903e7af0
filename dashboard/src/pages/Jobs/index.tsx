import { PageHeader } from "../../components";

export default function Jobs() {
  return <PageHeader title="Jobs" />;
}
