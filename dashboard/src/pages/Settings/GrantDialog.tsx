import { type FormEvent, useState } from "react";
import { type components, messageOf, useAction, useApiPages } from "../../api";
import { Button, Dialog, DialogActions, Notice, Select, TextField } from "../../components";
import styles from "./Settings.module.css";

type Scope = components["schemas"]["NewGrant"]["scope"];

const SCOPES: { id: Scope; label: string }[] = [
  { id: "own", label: "Own jobs" },
  { id: "workspace", label: "One workspace" },
  { id: "all", label: "Everything" },
];

/** Give a role to a principal. */
export function GrantDialog({ principal, onClose }: { principal: string; onClose: () => void }) {
  const roles = useApiPages("/admin/roles", { query: { limit: 200 } }, { isWhole: true });
  const [role, setRole] = useState("viewer");
  const [scope, setScope] = useState<Scope>("all");
  const [workspace, setWorkspace] = useState("default");
  const [lanes, setLanes] = useState("");
  const grant = useAction("post", "/admin/grants", {
    showsError: true,
    done: `${role} granted to ${principal}`,
  });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const named = lanes.split(/[\s,]+/).filter((lane) => lane !== "");
    const body = {
      principal,
      role,
      scope,
      workspace: scope === "workspace" ? workspace : null,
      lanes: named.length > 0 ? named : null,
    };
    if (await grant.run({ body })) onClose();
  };
  return (
    <Dialog title={`Grant a role to ${principal}`} isOpen keepsInput onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <Select
          label="Role"
          options={roles.items.map(({ name }) => ({ id: name, label: name }))}
          value={role}
          onChange={setRole}
        />
        <Select
          label="Scope"
          options={SCOPES}
          value={scope}
          onChange={(id) => setScope(id as Scope)}
        />
        {scope === "workspace" && (
          <TextField label="Workspace" value={workspace} onChange={setWorkspace} isRequired />
        )}
        <TextField
          label="Lanes"
          hint="Names separated by spaces; empty: all lanes"
          value={lanes}
          onChange={setLanes}
        />
        {grant.error && <Notice kind="error" title={messageOf(grant.error)} live />}
        <DialogActions>
          <Button onPress={onClose}>Discard</Button>
          <Button type="submit" variant="primary" isPending={grant.isPending}>
            Grant
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
