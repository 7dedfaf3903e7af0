/** Python tracebacks, split so that the frames of libraries can be folded. */

export interface TraceLine {
  kind: "text" | "error";
  text: string;
}

export interface TraceFrame {
  kind: "frame";
  file: string;
  line: number | null;
  name: string;
  /** The source lines below, without the common indent. */
  code: string[];
  isOwn: boolean;
}

export type TracePart = TraceLine | TraceFrame;

export interface FoldedFrames {
  kind: "folded";
  frames: TraceFrame[];
}

const FRAME = /^(\s*(?:[+|]\s*)*)File "(.+)", line (\d+)(?:, in (.*))?$/;
const FOREIGN = new RegExp(
  [
    String.raw`[\\/](?:site|dist)-packages[\\/]`,
    String.raw`[\\/]lib(?:64)?[\\/]python\d[\w.]*[\\/]`,
    String.raw`[\\/]Python\d+[\\/]Lib[\\/]`,
    String.raw`[\\/]python\d+\.zip[\\/]`,
    String.raw`[\\/]src[\\/]laneway[\\/]`,
    "^<frozen ",
    "^<string>$",
  ].join("|"),
);
/** The demo's handlers stand for a user's code. */
const DEMO = /[\\/]laneway[\\/]demo[\\/]/;
const CONTINUED =
  /^(Traceback \(most recent call last\):|During handling of|The above exception was)/;

/** Whether a file belongs to the user, and not to Python, a package or Laneway. */
export function isOwnFile(file: string): boolean {
  return DEMO.test(file) || !FOREIGN.test(file);
}

export function parseTraceback(text: string): TracePart[] {
  const parts: TracePart[] = [];
  let frame: TraceFrame | null = null;
  let frameIndent = 0;
  for (const line of text.replace(/\s+$/, "").split(/\r?\n/)) {
    const match = FRAME.exec(line);
    if (match) {
      const [, indent = "", file = "", number, name = ""] = match;
      frameIndent = indent.length;
      frame = {
        kind: "frame",
        file,
        line: number ? Number(number) : null,
        name,
        code: [],
        isOwn: isOwnFile(file),
      };
      parts.push(frame);
    } else if (frame && indentOf(line) > frameIndent) {
      frame.code.push(line.slice(frameIndent + 2));
    } else {
      frame = null;
      if (line.trim() === "" && parts.length === 0) continue;
      parts.push({ kind: isErrorLine(line) ? "error" : "text", text: line });
    }
  }
  return parts;
}

/** Join neighbouring foreign frames. If no frame is the user's, the last one stays visible. */
export function foldFrames(parts: readonly TracePart[]): (TracePart | FoldedFrames)[] {
  const frames = parts.filter((part) => part.kind === "frame");
  const lastFrame = frames.at(-1);
  const keeps = (frame: TraceFrame) =>
    frame.isOwn || (frame === lastFrame && !frames.some((other) => other.isOwn));
  const folded: (TracePart | FoldedFrames)[] = [];
  for (const part of parts) {
    if (part.kind !== "frame" || keeps(part)) {
      folded.push(part);
      continue;
    }
    const last = folded.at(-1);
    if (last?.kind === "folded") last.frames.push(part);
    else folded.push({ kind: "folded", frames: [part] });
  }
  return folded;
}

function indentOf(line: string): number {
  return line.trim() === "" ? Number.POSITIVE_INFINITY : (/^[\s+|]*/.exec(line)?.[0].length ?? 0);
}

function isErrorLine(line: string): boolean {
  return (
    /^[\w.]+(?:Error|Exception|Exit|Interrupt|Warning|Iteration|Group)?(?::|$)/.test(line) &&
    !CONTINUED.test(line) &&
    /^\S/.test(line)
  );
}
