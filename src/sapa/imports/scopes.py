"""The scopes of imports: which one a call needs depends on the resource of its file."""

from sapa.access.types import Scope
from sapa.http.endpoints import OR, Call
from sapa.http.errors import InsufficientScope
from sapa.http.keys import Key
from sapa.imports.types import Resource

# Any of them admits a call; the handler then requires the resource's own.
ANY_WRITE = OR.join([Scope.CUSTOMERS_WRITE, Scope.PRODUCTS_WRITE, Scope.ORDERS_WRITE])
ANY_READ = OR.join([Scope.CUSTOMERS_READ, Scope.PRODUCTS_READ, Scope.ORDERS_READ])

RESOURCES: list[Resource] = ["customers", "products", "orders"]


def require_scope(call: Call, resource: Resource, action: str) -> None:
    require_key_scope(call.key, resource, action)


def require_key_scope(key: Key, resource: Resource, action: str) -> None:
    scope = f"{resource}:{action}"
    if scope not in key.scopes:
        raise InsufficientScope(f"The API key lacks the scope {scope}.")


def list_readable(call: Call, resource: Resource | None) -> dict[str, object]:
    """The filter of a list: the requested resource, or all that the key may read."""
    if resource is not None:
        require_scope(call, resource, "READ")
    readable = [name for name in RESOURCES if f"{name}:READ" in call.key.scopes and resource in {None, name}]
    return {} if readable == RESOURCES else {"resources": readable}
