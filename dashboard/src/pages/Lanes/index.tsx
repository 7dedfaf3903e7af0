import { PageHeader } from "../../components";

export default function Lanes() {
  return <PageHeader title="Lanes" />;
}
