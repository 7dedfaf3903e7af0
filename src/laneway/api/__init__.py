"""The HTTP door: parse, check a permission, call one control verb, render."""
