import { Button, Select, TextArea, TextField } from "../../../components";
import styles from "./NewJob.module.css";
import type { Field } from "./payloadFields";
import type { PayloadInput } from "./usePayload";

type Props = {
  input: PayloadInput;
  errors: Record<string, string>;
  onEdit: (name: string) => void;
};

/** The arguments of a new job: a field each, or all of them as JSON. */
export function PayloadEditor({ input, errors, onEdit }: Props) {
  return (
    <section className={styles.payload} aria-label="Payload">
      <div className={styles.payloadHead}>
        <h3>Payload</h3>
        {input.fields !== null && (
          <Button
            size="sm"
            variant="quiet"
            onPress={() => input.setMode(input.mode === "form" ? "json" : "form")}
          >
            {input.mode === "form" ? "Edit as JSON" : "Edit as a form"}
          </Button>
        )}
      </div>
      {input.mode === "json" || input.fields === null ? (
        <TextArea
          label="Payload as JSON"
          hideLabel
          mono
          rows={9}
          value={input.json}
          onChange={input.setJson}
          error={input.jsonError ?? errors[""] ?? null}
        />
      ) : (
        <div className={styles.fields}>
          {input.fields.map((field) => (
            <ArgumentField
              key={field.name}
              field={field}
              text={input.texts[field.name] ?? ""}
              onChange={(text) => {
                input.setText(field.name, text);
                onEdit(field.name);
              }}
              error={errors[field.name] ?? null}
            />
          ))}
          {input.fields.length === 0 && <p className="muted">This job type takes no arguments.</p>}
        </div>
      )}
    </section>
  );
}

type FieldProps = {
  field: Field;
  text: string;
  onChange: (text: string) => void;
  error: string | null;
};

const LEFT_OUT = "left-out";

function ArgumentField({ field, text, onChange, error }: FieldProps) {
  const common = {
    label: field.name,
    error,
    hint: field.hint ?? undefined,
    isOptional: !field.isRequired,
  };
  const placeholder = field.fallback !== null ? `Default: ${field.fallback}` : "";
  if (field.kind === "boolean" || field.kind === "choice") {
    const choices = field.kind === "boolean" ? ["true", "false"] : field.choices;
    const options = choices.map((json) => ({ id: json, label: json.replace(/^"(.*)"$/, "$1") }));
    const none = field.isNullable && field.isRequired ? "null" : placeholder || "Not set";
    const leftOut = { id: LEFT_OUT, label: none };
    return (
      <Select
        {...common}
        options={field.isRequired && !field.isNullable ? options : [leftOut, ...options]}
        value={text === "" ? (field.isRequired && !field.isNullable ? null : LEFT_OUT) : text}
        onChange={(id) => onChange(id === LEFT_OUT ? "" : id)}
      />
    );
  }
  if (field.kind === "json") {
    return (
      <TextArea
        {...common}
        hint={field.hint ?? "JSON"}
        mono
        rows={3}
        placeholder={placeholder}
        value={text}
        onChange={onChange}
      />
    );
  }
  return (
    <TextField
      {...common}
      placeholder={placeholder}
      value={text}
      onChange={onChange}
      {...(field.kind === "text" ? {} : { inputMode: "decimal" as const, mono: true })}
    />
  );
}
