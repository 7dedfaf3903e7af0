import { useState } from "react";
import { type components, ROOT } from "../../api";
import { Button, CodeBlock, Dialog } from "../../components";
import styles from "./CopyAs.module.css";
import { submitSnippets } from "./snippets";

type Props = {
  job: components["schemas"]["JobDetailOut"];
  onClose: () => void;
};

/** The job as a curl request, a command and a Python program. */
export function CopyAs({ job, onClose }: Props) {
  const [chosen, setChosen] = useState("curl");
  const snippets = submitSnippets(ROOT, job);
  const shown = snippets.find(({ id }) => id === chosen);
  return (
    <Dialog title="Submit the same job elsewhere" isOpen onClose={onClose} size="lg">
      <div className={styles.body}>
        <fieldset className={styles.choice}>
          <legend className="visually-hidden">Format</legend>
          {snippets.map(({ id, name }) => (
            <Button
              key={id}
              size="sm"
              variant={id === chosen ? "primary" : "default"}
              onPress={() => setChosen(id)}
              aria-pressed={id === chosen}
              autoFocus={id === "curl"}
            >
              {name}
            </Button>
          ))}
        </fieldset>
        {shown && <CodeBlock text={shown.text} label={shown.name} wrap maxHeight="50vh" />}
        <p className={styles.note}>
          It submits a new job. Put your token into the variable <code>LANEWAY_TOKEN</code> first.
        </p>
      </div>
    </Dialog>
  );
}
