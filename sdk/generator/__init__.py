"""Writes the SDKs from the declared endpoints, events and errors. `make sdks` runs it."""
