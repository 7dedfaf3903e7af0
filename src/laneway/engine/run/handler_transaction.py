"""ctx.guard and ctx.finish: the handler's transaction and the end of its job commit together."""

from __future__ import annotations

from laneway.engine.run.handler_channel import HandlerChannel
from laneway.errors import InvalidInput, NeedsDatabase, Refused
from laneway.store import caller_transaction
from laneway.store.caller_connection import borrow, run_now
from laneway.store.statement import Statement


class HandlerTransaction:
    """The guard and finish of one attempt in transactions of its handler."""

    __slots__ = ("_channel", "has_finished")

    def __init__(self, channel: HandlerChannel) -> None:
        if not channel.has_database:
            raise NeedsDatabase("ctx.guard and ctx.finish need a worker with a database connection")
        self._channel = channel
        # True after a finish, which the caller may still roll back.
        self.has_finished = False

    async def guard(self, conn: object) -> str:
        """Lock the lease until the transaction ends; return held, cancel_requested or fenced."""
        borrowed = borrow(conn)
        held = await borrowed.run(caller_transaction.guard(self._channel.claim))
        if held.answer == "held" and not await borrowed.run(
            caller_transaction.is_still_in(held.xid)
        ):
            raise InvalidInput(
                "conn", "must be in a transaction: outside of one a guard ends at once"
            )
        return held.answer

    def guard_blocking(self, conn: object) -> str:
        return run_now(self.guard(_sync(conn)))

    async def finish(self, conn: object, result: object) -> str:
        """End the job in the caller's transaction; return finished, cancel_requested or fenced."""
        borrowed, statement = borrow(conn), self._statement(result)
        await self._channel.ask("finishing")
        try:
            answer = await borrowed.run(statement)
        except BaseException:
            if not self.has_finished:
                await self._channel.ask("refused", answer="failed")
            raise
        return self._answered(answer)

    def finish_blocking(self, conn: object, result: object) -> str:
        borrowed, statement = borrow(_sync(conn)), self._statement(result)
        self._channel.ask_blocking("finishing")
        try:
            answer = run_now(borrowed.run(statement))
        except BaseException:
            if not self.has_finished:
                self._channel.ask_blocking("refused", answer="failed")
            raise
        return self._answered(answer)

    def _statement(self, result: object) -> Statement[str]:
        text = self._channel.results.encode(result, self._channel.limits)
        return caller_transaction.finish(self._channel.claim, text, self._channel.ran_s)

    def _answered(self, answer: str) -> str:
        if answer == "fenced" and self.has_finished:
            raise Refused("ctx.finish was called already, and was not rolled back")
        self.has_finished = self.has_finished or answer == "finished"
        return answer


def _sync(conn: object) -> object:
    if borrow(conn).is_async:
        found = f"{type(conn).__module__}.{type(conn).__qualname__}"
        raise TypeError(f"conn is async ({found}), but its handler is a plain function")
    return conn
