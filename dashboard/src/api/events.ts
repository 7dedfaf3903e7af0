/** One server-sent event. */
export type ServerEvent = { id: string; name: string; data: unknown };

/** Splits a text stream into events; keep-alive comments are left out. */
export class EventParser {
  #rest = "";
  #id = "";
  #name = "";
  #data: string[] = [];

  /** The events that this part completes. */
  push(part: string, parse: (text: string) => unknown): ServerEvent[] {
    const lines = (this.#rest + part).split("\n");
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.#line(line.replace(/\r$/, ""), parse));
  }

  #line(line: string, parse: (text: string) => unknown): ServerEvent[] {
    if (line === "") return this.#complete(parse);
    if (line.startsWith(":")) return [];
    const [, field, value = ""] = /^([^:]*)(?:: ?([\s\S]*))?$/.exec(line) ?? [];
    if (field === "id") this.#id = value;
    else if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    return [];
  }

  #complete(parse: (text: string) => unknown): ServerEvent[] {
    const [name, data] = [this.#name, this.#data.join("\n")];
    this.#name = "";
    this.#data = [];
    return data === "" ? [] : [{ id: this.#id, name: name || "message", data: parse(data) }];
  }
}
