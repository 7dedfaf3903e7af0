"""The gRPC server that dispatches jobs to remote workers.

listener.py, service.py, dispatch_server.py   listens, serves calls, shares resources
auth.py, handshake.py, registration.py, stream_caller.py   identify a worker
dispatcher.py, stream_loop.py, round_robin.py, stream_capacity.py, claim_size.py   claim for it
assignment_queue.py, assignments.py, ownership.py   jobs to send, and jobs assigned
result_batcher.py, writes.py   calls that become one statement (store/batcher.py)
presence.py, liveness.py, limit_holds.py, health.py   which workers are alive
"""
