import { PageHeader } from "../../components";

export default function Job() {
  return <PageHeader title="Job" />;
}
