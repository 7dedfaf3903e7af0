import { type FormEvent, useState } from "react";
import { type components, messageOf, useAction, useApiPages } from "../../api";
import {
  Badge,
  Button,
  Card,
  Cell,
  ConfirmDialog,
  Dialog,
  DialogActions,
  HeaderCell,
  Notice,
  Row,
  Select,
  Skeleton,
  SkeletonRows,
  Table,
  TableBody,
  TableHead,
  TextField,
} from "../../components";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { MoreButton } from "../../shell/MoreButton";
import { Time } from "../../time";
import { GrantDialog } from "./GrantDialog";
import styles from "./Settings.module.css";

type Principal = components["schemas"]["PrincipalOut"];
type Grant = components["schemas"]["RoleGrantOut"];

/** Principals and the roles that they have. */
export function People() {
  const principals = useApiPages("/admin/principals");
  const grants = useApiPages("/admin/grants", { query: { limit: 200 } }, { isWhole: true });
  const [isCreating, setCreating] = useState(false);
  return (
    <Card
      flush
      title="People and services"
      subtitle="Roles decide what each may do, and on which jobs."
      actions={
        <Button icon="plus" onPress={() => setCreating(true)}>
          New principal
        </Button>
      }
    >
      <ErrorNotice of={principals} />
      <ErrorNotice of={grants} />
      {principals.isPending && <SkeletonRows />}
      {principals.items.length > 0 && (
        <Table label="People and services" bare>
          <TableHead>
            <HeaderCell>Name</HeaderCell>
            <HeaderCell>Kind</HeaderCell>
            <HeaderCell>Roles</HeaderCell>
            <HeaderCell>Created</HeaderCell>
            <HeaderCell hidden>Actions</HeaderCell>
          </TableHead>
          <TableBody>
            {principals.items.map((one) => (
              <PrincipalRow
                key={one.id}
                principal={one}
                grants={
                  grants.isPending || grants.hasNextPage
                    ? null
                    : grants.items.filter((grant) => grant.principal === one.name)
                }
              />
            ))}
          </TableBody>
        </Table>
      )}
      <MoreButton of={principals} />
      {isCreating && <NewPrincipal onClose={() => setCreating(false)} />}
    </Card>
  );
}

/** `grants` is null until all are read. */
function PrincipalRow({ principal, grants }: { principal: Principal; grants: Grant[] | null }) {
  const [dialog, setDialog] = useState<"grant" | "disable" | null>(null);
  const isDisabled = principal.disabled_at !== null;
  const change = useAction("patch", "/admin/principals", {
    done: `${principal.name} ${isDisabled ? "enabled" : "disabled"}`,
  });
  const init = { body: { name: principal.name, disabled: !isDisabled } };
  return (
    <Row>
      <Cell rowHeader label="Name">
        {principal.name} {isDisabled && <Badge tone="warning">Disabled</Badge>}
      </Cell>
      <Cell label="Kind">{principal.kind}</Cell>
      <Cell label="Roles" wide>
        <span className={styles.words}>
          {grants?.map((grant) => (
            <GrantBadge key={grant.id} grant={grant} />
          ))}
          {grants === null && <Skeleton width={120} />}
          {grants?.length === 0 && "none"}
        </span>
      </Cell>
      <Cell label="Created">
        <Time at={principal.created_at} />
      </Cell>
      <Cell control>
        <span className={styles.buttons}>
          <Button size="sm" onPress={() => setDialog("grant")}>
            Grant role
          </Button>
          <Button
            size="sm"
            isPending={change.isPending}
            onPress={() => (isDisabled ? void change.run(init) : setDialog("disable"))}
          >
            {isDisabled ? "Enable" : "Disable"}
          </Button>
        </span>
        {dialog === "grant" && (
          <GrantDialog principal={principal.name} onClose={() => setDialog(null)} />
        )}
        <ConfirmDialog
          title={`Disable ${principal.name}?`}
          isOpen={dialog === "disable"}
          onClose={() => setDialog(null)}
          danger
          confirmLabel="Disable"
          isPending={change.isPending}
          onConfirm={() => change.confirm(init)}
        >
          Its tokens are refused and its browser sessions end. Enabling it again restores the
          tokens.
        </ConfirmDialog>
      </Cell>
    </Row>
  );
}

function GrantBadge({ grant }: { grant: Grant }) {
  const [isAsking, setAsking] = useState(false);
  const revoke = useAction("delete", "/admin/grants/{grant_id}", {
    done: `${grant.role} revoked from ${grant.principal}`,
  });
  const scope = grant.scope === "workspace" ? `workspace ${grant.workspace}` : grant.scope;
  const lanes = grant.lanes === null ? "" : `, lanes ${grant.lanes.join(", ")}`;
  return (
    <>
      <Button size="sm" variant="quiet" iconEnd="cross" onPress={() => setAsking(true)}>
        {grant.role} ({scope}
        {lanes})
      </Button>
      <ConfirmDialog
        title={`Revoke ${grant.role} from ${grant.principal}?`}
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        danger
        confirmLabel="Revoke"
        isPending={revoke.isPending}
        onConfirm={() => revoke.confirm({ params: { path: { grant_id: grant.id } } })}
      >
        It loses the permissions of this role at once.
      </ConfirmDialog>
    </>
  );
}

function NewPrincipal({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [kind, setKind] = useState<Principal["kind"]>("person");
  const create = useAction("post", "/admin/principals", {
    showsError: true,
    done: `${name} created`,
  });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (await create.run({ body: { name, kind } })) onClose();
  };
  return (
    <Dialog title="New principal" isOpen keepsInput onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <TextField label="Name" value={name} onChange={setName} isRequired />
        <Select
          label="Kind"
          options={[
            { id: "person", label: "Person" },
            { id: "service", label: "Service" },
          ]}
          value={kind}
          onChange={(id) => setKind(id as Principal["kind"])}
        />
        {create.error && <Notice kind="error" title={messageOf(create.error)} live />}
        <DialogActions>
          <Button onPress={onClose}>Discard</Button>
          <Button
            type="submit"
            variant="primary"
            isPending={create.isPending}
            isDisabled={name === ""}
          >
            Create
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
