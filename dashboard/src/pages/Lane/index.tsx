import { PageHeader } from "../../components";

export default function Lane() {
  return <PageHeader title="Lane" />;
}
