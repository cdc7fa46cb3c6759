"""Health."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.db.migrations import find_mismatch, is_writable
from sapa.db.pool import Database
from sapa.http.errors import ServiceUnavailable


def health_routes(database: Database) -> list[Route]:
    async def healthz(_: Request) -> Response:
        """This process runs."""
        return Response(b'{"status":"ok"}', media_type="application/json")

    async def readyz(request: Request) -> Response:
        """The database responds, this version runs on its schema, and the process is not stopping."""
        if getattr(request.state, "is_draining", False):
            raise ServiceUnavailable("This process is stopping.")
        async with database.connection() as db:
            mismatch = await find_mismatch(db)
            if not await is_writable(db):
                # The address may lead to the primary by now: no connection of before is used again.
                database.drop_idle()
                db.terminate()
                raise ServiceUnavailable("The database is read-only. Connect to its primary.")
        if mismatch:
            raise ServiceUnavailable(mismatch)
        return Response(b'{"status":"ready"}', media_type="application/json")

    return [Route("/healthz", healthz), Route("/readyz", readyz)]
