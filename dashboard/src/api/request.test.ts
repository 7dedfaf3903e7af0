import { afterAll, afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Me } from "./session";

const stored = new Map<string, string>();
const reload = vi.fn();
vi.stubGlobal("location", { origin: "http://laneway.test", reload });
vi.stubGlobal("sessionStorage", {
  getItem: (key: string) => stored.get(key) ?? null,
  setItem: (key: string, value: string) => stored.set(key, value),
  removeItem: (key: string) => stored.delete(key),
});
const { fetchAsCaller } = await import("./request");
const { session } = await import("./session");

const me = (id: string, csrf: string) => ({ id, name: id, csrf, permissions: {} }) as unknown as Me;
const post = () => new Request("http://laneway.test/jobs", { method: "POST", body: "{}" });
const tick = () => new Promise((resolve) => setTimeout(resolve));

let sent: Request[] = [];
let statuses: Promise<number>[] = [];

beforeEach(() => {
  [sent, statuses] = [[], []];
  vi.stubGlobal("fetch", async (request: Request) => {
    sent.push(request);
    return new Response("", { status: await (statuses.shift() ?? 200) });
  });
  session.signedIn(me("ada", "first"));
  reload.mockClear();
});
afterEach(() => void stored.clear());
afterAll(() => void vi.unstubAllGlobals());

const status = (code: number) => Promise.resolve(code);

it("repeats with the same key after a new sign-in", async () => {
  statuses = [status(401)];
  const answer = fetchAsCaller(post());
  await tick();
  expect(session.state.phase).toBe("expired");
  session.signedIn(me("ada", "second"));
  expect((await answer).status).toBe(200);
  const [one, other] = sent.map(({ headers }) => headers);
  expect(one?.get("Idempotency-Key")).toBe(other?.get("Idempotency-Key"));
  expect(other?.get("X-CSRF-Token")).toBe("second");
});

it("repeats at once if somebody has signed in since it was sent", async () => {
  let refuse: (code: number) => void = () => {};
  statuses = [new Promise((resolve) => (refuse = resolve)), status(401)];
  const late = fetchAsCaller(post());
  const early = fetchAsCaller(post());
  await tick();
  session.signedIn(me("ada", "second"));
  await early;
  refuse(401);
  expect((await late).status).toBe(200);
  expect(session.state.phase).toBe("in");
});

it("never repeats a request for another person", async () => {
  let refuse: (code: number) => void = () => {};
  statuses = [new Promise((resolve) => (refuse = resolve)), status(401)];
  const late = fetchAsCaller(post());
  void fetchAsCaller(post());
  await tick();
  session.signedIn(me("bob", "second"));
  refuse(401);
  expect((await late).status).toBe(401);
  await tick();
  expect(sent.length).toBe(2);
  expect(reload).toHaveBeenCalledOnce();
  session.signedIn(me("bob", "second"));
});

it("loads a new page when a person signs out, also after the end of the session", async () => {
  statuses = [status(401)];
  void fetchAsCaller(post());
  await tick();
  session.signedOut();
  expect(reload).toHaveBeenCalledOnce();
  expect(sent.length).toBe(1);
});

it("loads a new page when another person has signed in with another tab", () => {
  session.signedIn(me("ada", "second"));
  expect(reload).not.toHaveBeenCalled();
  session.signedIn(me("bob", "first"));
  expect(reload).toHaveBeenCalledOnce();
});
