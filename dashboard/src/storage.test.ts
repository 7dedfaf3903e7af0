import { afterEach, expect, it, vi } from "vitest";
import { StoredValue } from "./storage";

afterEach(() => void vi.unstubAllGlobals());

/** A browser that stores these values; `write` is another tab that writes one. */
function browserWith(values: Record<string, string>) {
  const target = new EventTarget();
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => values[key] ?? null,
    setItem: (key: string, value: string) => {
      values[key] = value;
    },
  });
  vi.stubGlobal("addEventListener", target.addEventListener.bind(target));
  return (key: string, value: string) => {
    values[key] = value;
    target.dispatchEvent(Object.assign(new Event("storage"), { key }));
  };
}

it("keeps what was set", () => {
  browserWith({});
  const first = new StoredValue<string[]>("views", []);
  expect(first.value).toEqual([]);
  first.set(["a"]);
  expect(new StoredValue<string[]>("views", []).value).toEqual(["a"]);
});

it.each(["{", "null", "7", "{}"])("forgets the broken value %s", (text) => {
  browserWith({ views: text });
  expect(new StoredValue<string[]>("views", ["usual"]).value).toEqual(["usual"]);
});

it("follows other tabs", () => {
  const write = browserWith({});
  const value = new StoredValue<Record<string, number>>("muted", {});
  const changed = vi.fn();
  value.subscribe(changed);
  write("others", '{"a": 1}');
  expect(changed).not.toHaveBeenCalled();
  write("muted", '{"a": 1}');
  expect(value.value).toEqual({ a: 1 });
  expect(changed).toHaveBeenCalledOnce();
});

it("works in a browser that stores nothing", () => {
  vi.stubGlobal("localStorage", {
    getItem: () => {
      throw new Error("denied");
    },
    setItem: () => {
      throw new Error("denied");
    },
  });
  const value = new StoredValue("theme", { name: "light" });
  value.set({ name: "dark" });
  expect(value.value).toEqual({ name: "dark" });
});
