"""Request and response schemas of the API, one module per resource."""
