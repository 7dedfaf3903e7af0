import { expect, it } from "vitest";
import { linkSecret } from "./link";

it("recognizes links and their secrets, and leaves tokens alone", () => {
  expect(linkSecret("http://127.0.0.1:8420/login?link=lwl_a")).toBe("lwl_a");
  expect(linkSecret("https://shop.example/laneway/login?link=lwl_a&next=%2Fui%2Fjobs")).toBe(
    "lwl_a",
  );
  expect(linkSecret("lwl_a")).toBe("lwl_a");
  expect(linkSecret("lw_a")).toBe(null);
  expect(linkSecret("https://shop.example/")).toBe(null);
  expect(linkSecret("http://[")).toBe(null);
});
