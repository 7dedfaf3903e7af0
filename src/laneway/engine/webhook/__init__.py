"""Delivery of webhooks.

delivery.py   the handler of their jobs. Start here.
http_post.py  one POST request to a checked address
targets.py    which hosts and addresses may be sent to
"""
