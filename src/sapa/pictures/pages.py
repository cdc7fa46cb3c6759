"""Serves pictures of products at their public addresses, with `?size=small` as small pictures once they are made."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sapa.context import AppContext
from sapa.http.downloads import Download
from sapa.http.errors import NotFound
from sapa.http.link_pages import parse_link
from sapa.messaging.files import actions as files
from sapa.messaging.files.types import THUMBNAIL_TYPE
from sapa.pictures import queries
from sapa.pictures.actions import PATH

HEADERS = {
    "cache-control": "public, max-age=31536000, immutable",
    "content-security-policy": "default-src 'none'; sandbox",
    "cross-origin-resource-policy": "cross-origin",
    "x-content-type-options": "nosniff",
}


def build_pages(context: AppContext) -> list[Route]:
    async def serve(request: Request) -> Response:
        link = parse_link(request)
        if link is None:
            raise NotFound
        company_id, token = link
        async with context.database.connection() as db:
            picture = await queries.find_picture(db, company_id, token)
            file = await files.find_file(db, company_id, picture.file_id) if picture else None
            is_small = file is not None and request.query_params.get("size") == "small"
            small = await files.find_thumbnail(db, company_id, file.id) if file and is_small else None
        if file is None:
            raise NotFound
        if small is not None:
            return Response(small, headers=HEADERS, media_type=THUMBNAIL_TYPE)
        headers = HEADERS | {"content-length": str(file.size)}
        return Download(files.open_content(context, company_id, file), headers, file.media_type)

    return [Route(PATH + "{token}", serve, methods=["GET"])]
