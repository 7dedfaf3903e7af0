import { useParams } from "wouter";
import { useCan } from "../../api";
import { EmptyState, PageHeader, Tabs } from "../../components";
import { Database } from "./Database";
import { People } from "./People";
import { PreferencesTab } from "./PreferencesTab";
import { Roles } from "./Roles";
import { Tokens } from "./Tokens";

/** Preferences of this browser; access and the database for those who may see them. */
export default function Settings() {
  const { tab = "preferences" } = useParams<{ tab?: string }>();
  const managesAccess = useCan("access:manage");
  const seesWorkers = useCan("workers:view");
  const tabs = [
    { id: "preferences", label: "Preferences", isShown: true, content: <PreferencesTab /> },
    { id: "tokens", label: "Tokens", isShown: managesAccess, content: <Tokens /> },
    { id: "people", label: "People and services", isShown: managesAccess, content: <People /> },
    { id: "roles", label: "Roles", isShown: managesAccess, content: <Roles /> },
    { id: "database", label: "Database", isShown: seesWorkers, content: <Database /> },
  ].filter(({ isShown }) => isShown);
  const current = tabs.find(({ id }) => id === tab);
  return (
    <>
      <PageHeader title="Settings" />
      <Tabs
        label="Settings"
        items={tabs.map(({ id, label }) => ({
          href: id === "preferences" ? "/settings" : `/settings/${id}`,
          label,
          isCurrent: id === tab,
        }))}
      />
      {current?.content ?? (
        <EmptyState icon="key" title="Not for you">
          You lack the permission for this page.
        </EmptyState>
      )}
    </>
  );
}
