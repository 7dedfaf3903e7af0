import { PageHeader } from "../../components";

export default function Schedules() {
  return <PageHeader title="Schedules" />;
}
