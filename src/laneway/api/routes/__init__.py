"""The routes, one module per resource, or `declared` where its operations are all declared."""
