"""The Python client of Sapa.

>>> from sapa_client import Sapa
>>> sapa = Sapa("svc_test_…", base_url="https://sapa.example.com")
>>> for order in sapa.orders.list(status="active"): ...
"""

from . import errors, events, types, webhooks
from ._client import AsyncSapa, Sapa
from ._paging import AsyncPagedList, PagedList
from ._values import NOT_GIVEN, File, FileSource, NotGiven
from ._version import VERSION

__version__ = VERSION

__all__ = [
    "NOT_GIVEN",
    "AsyncPagedList",
    "AsyncSapa",
    "File",
    "FileSource",
    "NotGiven",
    "PagedList",
    "Sapa",
    "__version__",
    "errors",
    "events",
    "types",
    "webhooks",
]
