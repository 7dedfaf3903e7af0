"""Runs a handler and decides the outcome of its attempt.

executor.py           runs a handler on the loop, in a thread or in a child process
attempt.py            the state of one attempt
context.py, steps.py, call_retry.py      the `ctx` of a handler
inline_tasks.py, threads.py              event-loop tasks and threads for handlers
handler_channel.py, local_channel.py, handler_requests.py, handler_transaction.py
                      the connection of a context to its worker
attempt_outcomes.py, exception_text.py   from an exception to a verdict and a stored error
user_frames.py        cuts a traceback to the user's code
"""
