import { afterAll, expect, it, vi } from "vitest";

const stored = new Map<string, string>();
let channels = 0;
let posted = 0;
let tell = () => {};
let me = { id: "ada", csrf: "first", name: "Ada", permissions: {} };
class Channel {
  constructor() {
    channels += 1;
  }
  addEventListener(_: string, listener: () => void) {
    tell = listener;
  }
  postMessage() {
    posted += 1;
  }
}
const onWindow = vi.fn();
const onDocument = vi.fn();
const reload = vi.fn();
vi.stubGlobal("location", { origin: "http://laneway.test", reload });
vi.stubGlobal("sessionStorage", {
  getItem: (key: string) => stored.get(key) ?? null,
  setItem: (key: string, value: string) => stored.set(key, value),
  removeItem: (key: string) => stored.delete(key),
});
vi.stubGlobal("window", { addEventListener: onWindow });
vi.stubGlobal("document", { addEventListener: onDocument, hidden: false });
vi.stubGlobal("BroadcastChannel", Channel);
vi.stubGlobal("fetch", async () => Response.json(me));
// Files share their modules: this one needs its own session.
vi.resetModules();
const { signIn } = await import("./sign_in");
const { session } = await import("./session");
afterAll(() => {
  vi.unstubAllGlobals();
  vi.resetModules();
});

it("watches other tabs once, however often the session ends", async () => {
  await signIn("lwl_first");
  for (let at = 0; at < 3; at += 1) {
    void session.expired();
    await signIn("lwl_again");
    expect(session.state.phase).toBe("in");
  }
  expect(channels).toBe(1);
  expect(onWindow).toHaveBeenCalledTimes(1);
  expect(onDocument).toHaveBeenCalledTimes(1);
  // Other tabs learn of every sign-in.
  expect(posted).toBe(4);
});

it("goes on when the same person signs in with another tab", async () => {
  const waiting = session.expired();
  me = { ...me, csrf: "second" };
  tell();
  await waiting;
  expect(session.state).toEqual({ phase: "in", me });
  // Before this tab noticed the end of its session.
  me = { ...me, csrf: "third" };
  tell();
  await vi.waitFor(() => expect(session.state).toEqual({ phase: "in", me }));
  expect(reload).not.toHaveBeenCalled();
});

it.each(["in", "expired"])("loads the page again for another person, phase %s", async (phase) => {
  reload.mockClear();
  if (phase === "expired") void session.expired();
  me = { ...me, id: `bob, ${phase}` };
  tell();
  await vi.waitFor(() => expect(reload).toHaveBeenCalledTimes(1));
});
