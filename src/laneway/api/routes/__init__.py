"""The routes, one module per resource; each route is thin."""
