import { type FormEvent, useState } from "react";
import { messageOf } from "../api";
import { signIn } from "../api/sign_in";
import { Button, CodeBlock, Notice, TextField } from "../components";
import { Mark } from "./Mark";
import styles from "./SignIn.module.css";

/** The form that takes a one-time link or a token. */
export function SignInForm() {
  const [given, setGiven] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [isPending, setPending] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setPending(true);
    setError(null);
    try {
      await signIn(given);
    } catch (refused) {
      setError(messageOf(refused));
    } finally {
      setPending(false);
    }
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <TextField
        label="One-time link or token"
        value={given}
        onChange={setGiven}
        type="password"
        autoComplete="off"
        autoFocus
        isRequired
      />
      {error !== null && <Notice kind="error" live title={error} />}
      <Button
        type="submit"
        variant="primary"
        isPending={isPending}
        isDisabled={given.trim() === ""}
      >
        Sign in
      </Button>
      <p className={styles.hint}>A link for yourself, on a machine that reaches the database:</p>
      <CodeBlock label="command" text="laneway principals login NAME" />
    </form>
  );
}

/** The page for people who are not signed in. */
export function SignInPage() {
  return (
    <main className={styles.page}>
      <div className={styles.card}>
        <h1 className={styles.title}>
          <Mark /> Laneway
        </h1>
        <SignInForm />
      </div>
    </main>
  );
}
