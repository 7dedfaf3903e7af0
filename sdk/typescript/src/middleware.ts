/** Middleware: functions around every handler, each with a `next` that runs the rest. */

import type { Context } from "./context.js";
import { Cancel, InvalidInput, Retry, Snooze, StaleAttempt, Stopped, Suspended } from "./errors.js";
import type { Handler } from "./handlers.js";

/**
 * A function around every handler; returns `await next()`, which is the handler's result. The first
 * one registered is the outermost.
 */
export type Middleware = (ctx: Context<unknown>, next: () => Promise<unknown>) => unknown;

// Thrown again if a middleware swallows one: the handler did not complete its job.
const SIGNALS = [Snooze, Cancel, Retry, Stopped, StaleAttempt, Suspended];

export function checkMiddleware(given: unknown): Middleware {
  if (typeof given !== "function") throw new InvalidInput("use", "must get a function");
  return given as Middleware;
}

/** The handler inside the middleware. */
export function around(middleware: readonly Middleware[], handler: Handler<any>): Handler<any> {
  if (middleware.length === 0) return handler;
  return async (ctx, payload) => {
    let swallowed: unknown;

    const run = async (place: number): Promise<unknown> => {
      const one = middleware[place];
      if (one !== undefined) return one(ctx, once(() => run(place + 1)));
      try {
        return await handler(ctx, payload);
      } catch (error) {
        if (isSignal(ctx, error)) swallowed = error;
        throw error;
      }
    };

    const result = await run(0);
    if (swallowed !== undefined) throw swallowed;
    return result;
  };
}

/** Whether the handler ended its attempt, or was stopped: also by a call that its signal aborted. */
function isSignal(ctx: Context<unknown>, error: unknown): boolean {
  return ctx.signal.aborted || SIGNALS.some((kind) => error instanceof kind);
}

/** A second call would run the handler twice and is refused. */
function once(next: () => Promise<unknown>): () => Promise<unknown> {
  let wasCalled = false;
  return async () => {
    if (wasCalled) throw new Error("next was called twice: a middleware runs the handler once");
    wasCalled = true;
    return next();
  };
}
