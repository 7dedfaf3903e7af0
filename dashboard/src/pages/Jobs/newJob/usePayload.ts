import { useState } from "react";
import { parseJson, writeJson } from "../../../api";
import { type Field, fieldsOf, payloadOf, type Texts, textsOf } from "./payloadFields";

export type PayloadMode = "form" | "json";

export type PayloadInput = {
  /** null: the job type has no schema that a form can show. */
  fields: Field[] | null;
  mode: PayloadMode;
  setMode: (mode: PayloadMode) => void;
  texts: Texts;
  setText: (name: string, text: string) => void;
  json: string;
  setJson: (json: string) => void;
  /** Why the JSON cannot be sent, or cannot be shown as a form. */
  jsonError: string | null;
  /** The payload, and what is wrong with which argument. */
  read: () => { payload: unknown; errors: Record<string, string> } | null;
};

/** What a person enters as a payload: a form, or JSON where a form cannot show it. */
export function usePayload(schema: unknown, initial: unknown): PayloadInput {
  const fields = fieldsOf(schema);
  const [json, putJson] = useState(() => writeJson(initial ?? {}, 2));
  const [texts, setTexts] = useState<Texts>({});
  const [wanted, setWanted] = useState<PayloadMode>("form");
  const [jsonError, setJsonError] = useState<string | null>(null);
  const [shownFor, setShownFor] = useState<unknown>(null);

  // Another job type has other arguments: its form keeps what fits.
  if (fields !== null && shownFor !== schema) {
    const found = parsed(json);
    const given = "value" in found ? found.value : {};
    const shown = textsOf(fields, shownFor === null ? given : fitting(fields, given));
    setShownFor(schema);
    setTexts(shown ?? {});
    setWanted(shown === null ? "json" : "form");
  }

  const mode = fields === null ? "json" : wanted;
  const setMode = (next: PayloadMode) => {
    setJsonError(null);
    if (next === "json" && fields) {
      putJson(writeJson(payloadOf(fields, texts).payload, 2));
      setWanted("json");
    } else if (next === "form" && fields) {
      const found = parsed(json);
      const shown = "value" in found ? textsOf(fields, found.value) : null;
      if (shown === null) {
        setJsonError("error" in found ? found.error : "The form cannot show these values.");
        return;
      }
      setTexts(shown);
      setWanted("form");
    }
  };
  return {
    fields,
    mode,
    setMode,
    texts,
    setText: (name, text) => {
      const next = { ...texts, [name]: text };
      setTexts(next);
      if (fields) putJson(writeJson(payloadOf(fields, next).payload, 2));
    },
    json,
    setJson: (text) => {
      putJson(text);
      setJsonError(null);
    },
    jsonError,
    read: () => {
      if (mode === "form" && fields) return payloadOf(fields, texts);
      const found = parsed(json);
      if ("value" in found) return { payload: found.value, errors: {} };
      setJsonError(found.error);
      return null;
    },
  };
}

function fitting(fields: readonly Field[], payload: unknown): object {
  if (typeof payload !== "object" || payload === null) return {};
  return Object.fromEntries(
    Object.entries(payload).filter(([name, value]) => textsOf(fields, { [name]: value }) !== null),
  );
}

function parsed(json: string): { value: unknown } | { error: string } {
  try {
    return { value: json.trim() === "" ? {} : parseJson(json) };
  } catch (error) {
    return { error: `Not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}
