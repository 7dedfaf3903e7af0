import { PageHeader } from "../../components";

export default function Settings() {
  return <PageHeader title="Settings" />;
}
