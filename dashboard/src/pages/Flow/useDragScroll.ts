import { type PointerEvent, type RefObject, useRef } from "react";

const CONTROLS = "a, button";

/** Lets a mouse drag what is inside a scrolling frame; fingers scroll it by themselves. */
export function useDragScroll(content: RefObject<HTMLElement | null>) {
  const from = useRef<{ x: number; y: number; left: number; top: number } | null>(null);
  const frameOf = () => content.current?.parentElement ?? null;
  return {
    onPointerDown: (event: PointerEvent<HTMLElement>) => {
      const frame = frameOf();
      const isOnControl = event.target instanceof Element && event.target.closest(CONTROLS);
      if (frame === null || isOnControl || event.pointerType !== "mouse" || event.button !== 0) {
        return;
      }
      const { clientX: x, clientY: y } = event;
      from.current = { x, y, left: frame.scrollLeft, top: frame.scrollTop };
      event.currentTarget.setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent<HTMLElement>) => {
      const [frame, start] = [frameOf(), from.current];
      if (frame === null || start === null) return;
      frame.scrollTo(start.left + start.x - event.clientX, start.top + start.y - event.clientY);
    },
    onPointerUp: () => {
      from.current = null;
    },
    onPointerCancel: () => {
      from.current = null;
    },
  };
}
