/** Sizes of a drawing, in pixels. */
export type Sizes = {
  width: number;
  height: number;
  /** Between two layers, and between two boxes of one. */
  gapX: number;
  gapY: number;
};
export type Point = { x: number; y: number };
export type Layout = {
  width: number;
  height: number;
  /** The upper left corner of each box. */
  places: Point[];
  /** The points of each edge, from the right of one box to the left of another. */
  lines: Point[][];
};

type Edge = { from: number; to: number };
/** A box, or the place where an edge crosses a layer; `y` is its middle. */
type Item = { layer: number; box: number | null; before: Item[]; after: Item[]; y: number };

const SWEEPS = 8;
// The room of an edge that passes a layer.
const PASSING_PX = 8;

/**
 * Place boxes in columns, one for each layer, so that few edges cross and most are short: the order
 * in a column follows the middle of the neighbours, and so do the heights as far as there is room.
 */
export function layout(
  layers: readonly number[],
  edges: readonly Edge[],
  { width, height, gapX, gapY }: Sizes,
): Layout {
  const { columns, ways } = itemsOf(layers, edges);
  const heightOf = (item: Item) => (item.box === null ? PASSING_PX : height);
  order(columns);
  const offsets = columns.map((column) => stacked(column, heightOf, gapY));
  for (const [at, column] of columns.entries()) place(column, offsets[at] ?? []);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const isBack = sweep % 2 === 1;
    const inOrder = [...columns.entries()];
    for (const [at, column] of isBack ? inOrder.reverse() : inOrder) {
      const wanted = column.map((item) => meanY(isBack ? item.after : item.before) ?? item.y);
      settle(column, wanted, offsets[at] ?? []);
    }
  }
  const all = columns.flat();
  const top = Math.min(...all.map((item) => item.y - heightOf(item) / 2));
  const bottom = Math.max(...all.map((item) => item.y + heightOf(item) / 2));
  const places: Point[] = [];
  for (const { box, layer, y } of all) {
    if (box !== null) places[box] = { x: layer * (width + gapX), y: y - height / 2 - top };
  }
  const lines = ways.map((way) =>
    way.flatMap((item, at) => {
      const left = { x: item.layer * (width + gapX), y: item.y - top };
      const right = { x: left.x + width, y: left.y };
      return [...(at > 0 ? [left] : []), ...(at < way.length - 1 ? [right] : [])];
    }),
  );
  return { width: columns.length * (width + gapX) - gapX, height: bottom - top, places, lines };
}

function itemsOf(layers: readonly number[], edges: readonly Edge[]) {
  const columns: Item[][] = [];
  const add = (layer: number, box: number | null): Item => {
    const item: Item = { layer, box, before: [], after: [], y: 0 };
    while (columns.length <= layer) columns.push([]);
    columns[layer]?.push(item);
    return item;
  };
  const boxes = layers.map((layer, box) => add(layer, box));
  const ways = edges.map(({ from, to }) => {
    const [start, end] = [boxes[from] as Item, boxes[to] as Item];
    const way = [start];
    for (let layer = start.layer + 1; layer < end.layer; layer += 1) way.push(add(layer, null));
    way.push(end);
    for (const [at, item] of way.entries()) {
      const next = way[at + 1];
      if (next === undefined) break;
      item.after.push(next);
      next.before.push(item);
    }
    return way;
  });
  return { columns, ways };
}

/** Sort every column by the middle of its neighbours' ranks, forth and back. */
function order(columns: Item[][]): void {
  const rank = new Map<Item, number>();
  const note = (column: Item[]) => {
    for (const [at, item] of column.entries()) rank.set(item, at);
  };
  columns.forEach(note);
  const sort = (column: Item[], neighbours: (item: Item) => Item[]) => {
    const wanted = new Map(
      column.map((item, at) => [
        item,
        mean(neighbours(item).map((one) => rank.get(one) ?? 0)) ?? at,
      ]),
    );
    column.sort((one, other) => (wanted.get(one) ?? 0) - (wanted.get(other) ?? 0));
    note(column);
  };
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    if (sweep % 2 === 0) for (const column of columns) sort(column, ({ before }) => before);
    else for (const column of columns.toReversed()) sort(column, ({ after }) => after);
  }
}

/** The middle of each item of a column if they stand as close as they may. */
function stacked(column: Item[], heightOf: (item: Item) => number, gap: number): number[] {
  let end = 0;
  return column.map((item) => {
    const middle = end + heightOf(item) / 2;
    end += heightOf(item) + gap;
    return middle;
  });
}

function place(column: Item[], offsets: number[]): void {
  for (const [at, item] of column.entries()) item.y = offsets[at] ?? 0;
}

/**
 * Bring the items of a column as close to the wanted heights as their order and size allow: items
 * that would overlap form a block, which stands where its items want it on average.
 */
function settle(column: Item[], wanted: number[], offsets: number[]): void {
  const blocks: { sum: number; count: number }[] = [];
  for (const [at, y] of wanted.entries()) {
    let block = { sum: y - (offsets[at] ?? 0), count: 1 };
    for (let last = blocks.at(-1); last && middleOf(last) > middleOf(block); last = blocks.at(-1)) {
      blocks.pop();
      block = { sum: last.sum + block.sum, count: last.count + block.count };
    }
    blocks.push(block);
  }
  let at = 0;
  for (const block of blocks) {
    for (const end = at + block.count; at < end; at += 1) {
      const item = column[at];
      if (item) item.y = middleOf(block) + (offsets[at] ?? 0);
    }
  }
}

const middleOf = ({ sum, count }: { sum: number; count: number }) => sum / count;

const meanY = (items: Item[]) => mean(items.map(({ y }) => y));

function mean(values: number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, one) => sum + one, 0) / values.length;
}

/** A smooth line through the points of an edge, as the path of an SVG. */
export function pathOf(points: readonly Point[]): string {
  const round = (value: number) => Math.round(value * 10) / 10;
  return points
    .map(({ x, y }, at) => {
      const before = points[at - 1];
      if (before === undefined) return `M${round(x)} ${round(y)}`;
      const middle = round((before.x + x) / 2);
      return before.y === y
        ? `L${round(x)} ${round(y)}`
        : `C${middle} ${round(before.y)} ${middle} ${round(y)} ${round(x)} ${round(y)}`;
    })
    .join("");
}
