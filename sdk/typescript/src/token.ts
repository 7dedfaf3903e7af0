/** The token of a worker or client: given, or from the environment. */

import { readFileSync } from "node:fs";
import { getSystemErrorMap } from "node:util";

import { InvalidInput } from "./invalid_input.js";

/** A token, or a function that returns it, called at each use. */
export type Token = string | (() => string | Promise<string>);

// Never shows the text, which may still be a secret.
const NO_TOKEN = "must be exactly the output of `laneway tokens create`";
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The token without white space around it. */
export function checkedToken(token: string, field = "token"): string {
  const text = typeof token === "string" ? token.trim() : "";
  if (!/^[\x21-\x7e]+$/.test(text)) throw new InvalidInput(field, NO_TOKEN);
  return text;
}

/** The token now; a function that throws counts as no token. */
export async function currentToken(token: Token): Promise<string> {
  if (typeof token !== "function") return token;
  try {
    return checkedToken(await token());
  } catch (error) {
    if (error instanceof InvalidInput) throw error;
    throw new InvalidInput("token", `cannot be read: ${error instanceof Error ? error.message : error}`);
  }
}

/** LANEWAY_TOKEN, or the content of the file LANEWAY_TOKEN_FILE, read at each use. */
export function tokenFromEnvironment(env = process.env): Token {
  const { LANEWAY_TOKEN: token, LANEWAY_TOKEN_FILE: file } = env;
  if (token) return token;
  if (file) return () => checkedToken(read(file), `token file ${file}`);
  throw new InvalidInput(
    "token",
    "must be given, or LANEWAY_TOKEN, or LANEWAY_TOKEN_FILE (`laneway tokens create`)",
  );
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { errno = 0, message } = error as NodeJS.ErrnoException;
    const reason = getSystemErrorMap().get(errno)?.[1] ?? message;
    const rule = "LANEWAY_TOKEN_FILE must name a file with the output of `laneway tokens create`";
    throw new InvalidInput("token file", `cannot read ${file}: ${reason}; ${rule}`);
  }
}

/** `expires in 5 days`, or in hours. */
export function expiryText(leftMs: number): string {
  if (leftMs < HOUR_MS) return "expires within the hour";
  const [unit, name] = leftMs >= DAY_MS ? [DAY_MS, "day"] : [HOUR_MS, "hour"];
  const count = Math.floor(leftMs / unit);
  return `expires in ${count} ${name}${count === 1 ? "" : "s"}`;
}
