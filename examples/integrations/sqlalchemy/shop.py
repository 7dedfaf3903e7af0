"""Orders and their receipts in one transaction: `python shop.py`, and `laneway worker shop:lw`.

Each order is placed twice: once with a commit, once with a rollback, which leaves no job.
"""

import asyncio

from sqlalchemy import create_engine, make_url
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from laneway import Laneway, SyncContext

lw = Laneway()
url = make_url(lw.database.dsn)


class Base(DeclarativeBase):
    """The tables of the shop."""


class Order(Base):
    """An order, and the receipt that a job writes for it."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    receipt: Mapped[str | None]


@lw.on_start
def connect(resources) -> None:
    """Connect once per process that runs handlers."""
    resources.engine = create_engine(url.set(drivername="postgresql+psycopg"))


@lw.on_stop
def disconnect(resources) -> None:
    """Close the connections."""
    resources.engine.dispose()


@lw.handler("send_receipt")
def send_receipt(ctx: SyncContext, order_id: int) -> None:
    """Write the receipt and complete the job in one transaction."""
    with Session(ctx.resources.engine) as session, session.begin():
        order = session.get_one(Order, order_id)
        order.receipt = f"receipt for {order.item}"
        session.flush()
        ctx.finish(conn=session)


def place_orders(item: str) -> None:
    """Place an order with a plain session."""
    engine = create_engine(url.set(drivername="postgresql+psycopg"))
    Base.metadata.create_all(engine)
    for is_wanted in (True, False):
        with Session(engine) as session:
            order = Order(item=item)
            session.add(order)
            session.flush()  # the database gives the order its id
            job = lw.sync.submit("send_receipt", {"order_id": order.id}, conn=session)
            if is_wanted:
                session.commit()
                lw.sync.wake([job])  # otherwise the worker finds it at its next poll
            else:
                session.rollback()
    engine.dispose()


async def place_orders_async(item: str, driver: str) -> None:
    """Place an order with an AsyncSession."""
    engine = create_async_engine(url.set(drivername=driver))
    for is_wanted in (True, False):
        async with AsyncSession(engine) as session:
            order = Order(item=item)
            session.add(order)
            await session.flush()
            job = await lw.submit("send_receipt", {"order_id": order.id}, conn=session)
            if is_wanted:
                await session.commit()
                lw.wake([job])
            else:
                await session.rollback()
    await engine.dispose()


async def main() -> None:
    """Place orders with both async drivers."""
    await place_orders_async("book", "postgresql+psycopg")
    await place_orders_async("lamp", "postgresql+asyncpg")
    await lw.close()


if __name__ == "__main__":
    place_orders("pen")
    asyncio.run(main())
