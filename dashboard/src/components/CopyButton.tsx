import { useEffect, useState } from "react";
import { Button, IconButton } from "./Button";
import { copyText } from "./clipboard";

export interface CopyButtonProps {
  /** The text, or how to make it when it is big. */
  text: string | (() => string);
  /** What is copied: "Copy id". */
  label?: string;
  /** Show the label as words. */
  withWords?: boolean;
  size?: "sm" | "md";
  autoFocus?: boolean;
}

type CopyState = "idle" | "copied" | "failed";

export function CopyButton({
  text,
  label = "Copy",
  withWords,
  size = "sm",
  autoFocus = false,
}: CopyButtonProps) {
  const [state, setState] = useState<CopyState>("idle");
  useEffect(() => {
    if (state === "idle") return;
    const timer = setTimeout(() => setState("idle"), 2000);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    const copied = await copyText(typeof text === "string" ? text : text());
    setState(copied ? "copied" : "failed");
  };
  const words = { idle: label, copied: "Copied", failed: "Could not copy" }[state];
  const icon = ({ idle: "copy", copied: "check", failed: "warning" } as const)[state];
  return (
    <>
      {withWords ? (
        <Button size={size} icon={icon} onPress={copy} autoFocus={autoFocus}>
          {words}
        </Button>
      ) : (
        <IconButton size={size} icon={icon} label={words} onPress={copy} autoFocus={autoFocus} />
      )}
      <span className="visually-hidden" aria-live="polite">
        {state === "idle" ? "" : words}
      </span>
    </>
  );
}
