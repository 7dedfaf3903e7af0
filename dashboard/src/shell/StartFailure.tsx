import { messageOf } from "../api/problem";
import { Button, Notice } from "../components";
import styles from "./SignIn.module.css";

/** The page if the server does not answer at the start. */
export function StartFailure({ error }: { error: unknown }) {
  return (
    <main className={styles.page}>
      <Notice kind="error" title="The dashboard cannot start">
        <p>{messageOf(error)}</p>
        <Button onPress={() => location.reload()}>Try again</Button>
      </Notice>
    </main>
  );
}
