"""Notices that owners get by mail."""

from msgspec import Struct


class DueNotice(Struct, frozen=True):
    company_id: int
    id: str


class OwnerNotice(Struct, frozen=True):
    """A notice with what the mail says about its endpoint. The URL is None once the endpoint is deleted."""

    environment: str
    endpoint_id: str
    message: str
    url: str | None
    auto_resume: bool | None
