"""Made from proto/ by scripts/write_rpc.py."""
