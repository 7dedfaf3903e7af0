import { ROOT } from "../../api";

/** The command that does the same against this server. */
export const asCli = (command: string) => `laneway --server ${ROOT.replace(/\/$/, "")} ${command}`;

/** The request that does the same. */
export function asCurl(method: string, path: string, body?: object): string {
  const lines = [
    `curl -X ${method} ${ROOT}${path}`,
    '-H "Authorization: Bearer $LANEWAY_TOKEN"',
    ...(body
      ? [
          "-H 'Content-Type: application/json'",
          `-d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`,
        ]
      : []),
  ];
  return lines.join(" \\\n  ");
}
