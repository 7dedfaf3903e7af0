"""Runs a handler and decides how its attempt ended.

executor.py           runs a handler on the loop, in a thread or in a child process
attempt.py            one attempt in the hands of a worker
context.py, steps.py, call_retry.py      the tools of a handler
inline_tasks.py, threads.py              the places where a handler runs
handler_channel.py, local_channel.py, handler_requests.py, handler_transaction.py
                      how a context reaches its worker
attempt_outcomes.py, exception_text.py   from an exception to a stored error
"""
