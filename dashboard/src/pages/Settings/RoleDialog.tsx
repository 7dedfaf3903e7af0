import { type FormEvent, useState } from "react";
import { type components, messageOf, useAction } from "../../api";
import {
  Button,
  Checkbox,
  ConfirmDialog,
  Dialog,
  DialogActions,
  Notice,
  TextField,
} from "../../components";
import styles from "./Settings.module.css";

type Role = components["schemas"]["RoleOut"];
type Permission = components["schemas"]["NewRole"]["permissions"][number];

const PERMISSIONS: Record<Permission, true> = {
  "jobs:submit": true,
  "jobs:read": true,
  "jobs:cancel": true,
  "jobs:approve": true,
  "jobs:debug": true,
  "workers:view": true,
  "workers:manage": true,
  "workers:claim": true,
  "workers:declare": true,
  "schedules:view": true,
  "schedules:manage": true,
  "metrics:read": true,
  "events:send": true,
  "access:manage": true,
  "audit:read": true,
};

export function NewRoleButton() {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button icon="plus" onPress={() => setOpen(true)}>
        New role
      </Button>
      {isOpen && <RoleDialog onClose={() => setOpen(false)} />}
    </>
  );
}

export function RoleActions({ role }: { role: Role }) {
  const [dialog, setDialog] = useState<"edit" | "delete" | null>(null);
  const remove = useAction("delete", "/admin/roles/{name}", { done: `${role.name} deleted` });
  return (
    <span className={styles.buttons}>
      <Button size="sm" onPress={() => setDialog("edit")}>
        Edit
      </Button>
      <Button size="sm" onPress={() => setDialog("delete")}>
        Delete
      </Button>
      {dialog === "edit" && <RoleDialog role={role} onClose={() => setDialog(null)} />}
      <ConfirmDialog
        title={`Delete ${role.name}?`}
        isOpen={dialog === "delete"}
        onClose={() => setDialog(null)}
        danger
        confirmLabel="Delete"
        isPending={remove.isPending}
        onConfirm={() => remove.confirm({ params: { path: { name: role.name } } })}
      >
        A role that somebody has cannot be deleted.
      </ConfirmDialog>
    </span>
  );
}

function RoleDialog({ role, onClose }: { role?: Role; onClose: () => void }) {
  const [name, setName] = useState(role?.name ?? "");
  const [chosen, setChosen] = useState(new Set<string>(role?.permissions));
  const create = useAction("post", "/admin/roles", { showsError: true, done: `${name} created` });
  const change = useAction("put", "/admin/roles/{name}", {
    showsError: true,
    done: `${name} changed`,
  });
  const action = role ? change : create;
  const toggle = (permission: string, isChosen: boolean) => {
    const next = new Set(chosen);
    if (isChosen) next.add(permission);
    else next.delete(permission);
    setChosen(next);
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const permissions = [...chosen] as Permission[];
    const done = role
      ? await change.run({ params: { path: { name: role.name } }, body: { permissions } })
      : await create.run({ body: { name, permissions } });
    if (done) onClose();
  };
  return (
    <Dialog title={role ? `Edit ${role.name}` : "New role"} isOpen keepsInput onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        {!role && <TextField label="Name" value={name} onChange={setName} isRequired />}
        <fieldset className={styles.choices}>
          <legend>Permissions</legend>
          {Object.keys(PERMISSIONS).map((permission) => (
            <Checkbox
              key={permission}
              isSelected={chosen.has(permission)}
              onChange={(isChosen) => toggle(permission, isChosen)}
            >
              {permission}
            </Checkbox>
          ))}
        </fieldset>
        {action.error && <Notice kind="error" title={messageOf(action.error)} live />}
        <DialogActions>
          <Button onPress={onClose}>Discard</Button>
          <Button
            type="submit"
            variant="primary"
            isPending={action.isPending}
            isDisabled={name === ""}
          >
            {role ? "Save" : "Create"}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
