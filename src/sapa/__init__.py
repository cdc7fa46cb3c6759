"""Sapa: a self-hosted customer-engagement platform with an open HTTP API."""

__version__ = "0.1.0"
