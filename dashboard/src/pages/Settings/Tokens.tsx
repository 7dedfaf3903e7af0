import { type FormEvent, useState } from "react";
import { type components, messageOf, useAction, useApiPages } from "../../api";
import {
  Badge,
  Button,
  Card,
  Cell,
  CodeBlock,
  ConfirmDialog,
  Dialog,
  DialogActions,
  EmptyState,
  HeaderCell,
  Notice,
  Row,
  Select,
  SkeletonRows,
  Table,
  TableBody,
  TableHead,
  TextField,
} from "../../components";
import { ErrorNotice } from "../../shell/ErrorNotice";
import { MoreButton } from "../../shell/MoreButton";
import { Time } from "../../time";
import styles from "./Settings.module.css";

type Token = components["schemas"]["TokenOut"];

const DAY_S = 86_400;
const LIVES = [
  { id: String(30 * DAY_S), label: "30 days" },
  { id: String(90 * DAY_S), label: "90 days" },
  { id: String(365 * DAY_S), label: "1 year" },
  { id: "never", label: "Never" },
];

export function Tokens() {
  const tokens = useApiPages("/admin/tokens");
  // Read before the form opens: a list without options does not open.
  const principals = useApiPages("/admin/principals", { query: { limit: 200 } }, { isWhole: true });
  const [isCreating, setCreating] = useState(false);
  return (
    <Card
      flush
      title="Tokens"
      subtitle="Programs and workers sign in with them. The secret is shown once."
      actions={
        <Button icon="plus" onPress={() => setCreating(true)}>
          New token
        </Button>
      }
    >
      <ErrorNotice of={tokens} />
      {tokens.isPending && <SkeletonRows />}
      {tokens.data && tokens.items.length === 0 && (
        <EmptyState icon="key" title="No tokens yet">
          Create one for a program that submits jobs, or for a remote worker.
        </EmptyState>
      )}
      {tokens.items.length > 0 && (
        <Table label="Tokens" bare>
          <TableHead>
            <HeaderCell>Name</HeaderCell>
            <HeaderCell>Principal</HeaderCell>
            <HeaderCell>Begins with</HeaderCell>
            <HeaderCell>Last used</HeaderCell>
            <HeaderCell>Expires</HeaderCell>
            <HeaderCell hidden>Actions</HeaderCell>
          </TableHead>
          <TableBody>
            {tokens.items.map((token) => (
              <Row key={token.id}>
                <Cell rowHeader label="Name">
                  {token.name}
                </Cell>
                <Cell label="Principal">{token.principal}</Cell>
                <Cell label="Begins with">
                  <code>{token.hint}…</code>
                </Cell>
                <Cell label="Last used">
                  <Time at={token.last_used_at} />
                </Cell>
                <Cell label="Expires">
                  {token.expires_at === null ? "never" : <Time at={token.expires_at} />}
                </Cell>
                <Cell control>
                  <Revoke token={token} />
                </Cell>
              </Row>
            ))}
          </TableBody>
        </Table>
      )}
      <MoreButton of={tokens} />
      {isCreating && (
        <NewToken
          principals={principals.items.map(({ name }) => name)}
          onClose={() => setCreating(false)}
        />
      )}
    </Card>
  );
}

function Revoke({ token }: { token: Token }) {
  const [isAsking, setAsking] = useState(false);
  const revoke = useAction("post", "/admin/tokens/{token_id}/revoke", {
    done: `${token.name} revoked`,
  });
  if (token.revoked_at !== null) return <Badge>Revoked</Badge>;
  return (
    <>
      <Button size="sm" onPress={() => setAsking(true)}>
        Revoke
      </Button>
      <ConfirmDialog
        title={`Revoke ${token.name}?`}
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        danger
        confirmLabel="Revoke"
        isPending={revoke.isPending}
        onConfirm={() => revoke.confirm({ params: { path: { token_id: token.id } } })}
      >
        Programs of {token.principal} that use it are refused within seconds. This cannot be undone.
      </ConfirmDialog>
    </>
  );
}

type NewTokenProps = { principals: readonly string[]; onClose: () => void };

function NewToken({ principals, onClose }: NewTokenProps) {
  const [principal, setPrincipal] = useState("");
  const [name, setName] = useState("");
  const [life, setLife] = useState(String(90 * DAY_S));
  const [secret, setSecret] = useState<string | null>(null);
  const create = useAction("post", "/admin/tokens", { showsError: true });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const expires_in = life === "never" ? null : Number(life);
    const made = await create.run({ body: { principal, name, expires_in } });
    if (made) setSecret(made.data.secret);
  };
  if (secret !== null) {
    return (
      <Dialog title={`Token ${name}`} isOpen isKept onClose={onClose}>
        <p>Copy the secret now. It cannot be shown again.</p>
        <CodeBlock label="secret" text={secret} wrap autoFocus />
        <DialogActions>
          <Button variant="primary" onPress={onClose}>
            Done
          </Button>
        </DialogActions>
      </Dialog>
    );
  }
  return (
    <Dialog title="New token" isOpen keepsInput onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <Select
          label="Principal"
          options={principals.map((each) => ({ id: each, label: each }))}
          value={principal}
          onChange={setPrincipal}
        />
        <TextField label="Name" value={name} onChange={setName} isRequired />
        <Select label="Expires after" options={LIVES} value={life} onChange={setLife} />
        {create.error && <Notice kind="error" title={messageOf(create.error)} live />}
        <DialogActions>
          <Button onPress={onClose}>Discard</Button>
          <Button
            type="submit"
            variant="primary"
            isPending={create.isPending}
            isDisabled={principal === "" || name === ""}
          >
            Create
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
