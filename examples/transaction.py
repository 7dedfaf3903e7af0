"""Submit a job in your own transaction: both are committed, or neither.

    python examples/transaction.py

Every order gets its mail, and no mail is sent for an order that was rolled back. It prints:

    rolled back: 0 orders, 0 mails
    committed: 1 orders, 1 mails
"""

import asyncio

import psycopg

from laneway import Context, Laneway

lw = Laneway()
sent: list[int] = []


@lw.handler("send_mail")
async def send_mail(ctx: Context, order: int) -> None:
    sent.append(order)


async def place_order(conn: psycopg.AsyncConnection, order: int, is_paid: bool) -> None:
    async with conn.transaction(force_rollback=not is_paid):
        await conn.execute("INSERT INTO orders VALUES (%s)", [order])
        # wake=True notifies workers at commit, so they need not wait for their next poll.
        job = await lw.submit("send_mail", {"order": order}, conn=conn, wake=True)
    if is_paid:
        await job.wait(timeout=60)
    orders = await (await conn.execute("SELECT count(*) FROM orders")).fetchone()
    word = "committed" if is_paid else "rolled back"
    print(f"{word}: {orders[0] if orders else 0} orders, {len(sent)} mails")


async def main() -> None:
    async with lw, lw.worker():
        dsn = lw.database.dsn
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
            await conn.execute("CREATE TEMPORARY TABLE orders (id integer PRIMARY KEY)")
            await place_order(conn, 1, is_paid=False)
            await place_order(conn, 2, is_paid=True)


if __name__ == "__main__":
    asyncio.run(main())
