"""What can go wrong with a tool call besides the errors of its operation."""

from sapa.http.errors import ApiError


class McpDisabled(ApiError):
    """This key may not be used with MCP. Turn it on in the console or with `sapa key update`, or use another key."""

    status = 403
    code = "MCP_DISABLED"
    fix = "Turn MCP on for the key in the console or with `sapa key update`, or use another key."


class ForeignOrigin(ApiError):
    """Browsers may not call MCP from this origin. The operator can list it in SAPA_CORS_ORIGINS."""

    status = 403
    code = "ORIGIN_NOT_ALLOWED"
    fix = "Call from a program instead of a browser, or add the origin to `SAPA_CORS_ORIGINS`."


class ToolExcluded(ApiError):
    """This connection does not offer the tool: its URL restricts it with `toolsets` or `readonly`."""

    status = 403
    code = "TOOL_EXCLUDED"
    fix = "Connect without `readonly`, or with a toolset that has the tool."
