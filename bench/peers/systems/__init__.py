"""The job systems that are compared: one package each, with `SYSTEMS` and the program it runs."""
