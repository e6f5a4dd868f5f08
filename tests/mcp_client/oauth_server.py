"""An MCP server that wants a login by OAuth: `oauth_server.py PORT FOLDER`.

In FOLDER, `deny` refuses logins, `revoke` makes all tokens before it worthless, `no-refresh`
refuses to refresh, and `log` has a line for each refresh.
"""

import sys
import time
from pathlib import Path
from secrets import token_hex

from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizeError,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.auth import OAuthToken

PORT, FOLDER = int(sys.argv[1]), Path(sys.argv[2])


def note(text):
    with (FOLDER / "log").open("a") as log:
        log.write(f"{text}\n")


class Provider:
    """Gives tokens to everybody; a refresh token is good for one time."""

    def __init__(self):
        self.clients, self.codes, self.access, self.refresh = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        if (FOLDER / "deny").exists():
            raise AuthorizeError("access_denied")
        code = AuthorizationCode(
            code=token_hex(20),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.tokens_of(client)

    async def load_refresh_token(self, client, refresh_token):
        if refresh_token not in self.refresh:
            note("reused")
        return self.refresh.pop(refresh_token, None)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        if (FOLDER / "no-refresh").exists():
            raise TokenError("invalid_grant")
        note("refreshed")
        return self.tokens_of(client)

    async def load_access_token(self, token):
        if (FOLDER / "revoke").exists():
            (FOLDER / "revoke").unlink()
            self.access.clear()
        return self.access.get(token)

    async def revoke_token(self, token):
        self.access.pop(token.token, None)

    def tokens_of(self, client):
        access, refresh = token_hex(20), token_hex(20)
        self.access[access] = AccessToken(token=access, client_id=client.client_id, scopes=[])
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client.client_id, scopes=[])
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600)


URL = f"http://127.0.0.1:{PORT}"
app = MCPServer(
    "vault",
    auth_server_provider=Provider(),
    auth=AuthSettings(
        issuer_url=URL,
        resource_server_url=f"{URL}/mcp",
        validate_token_resource=False,
        client_registration_options=ClientRegistrationOptions(enabled=True),
    ),
)


@app.tool()
def echo(context: Context) -> str:
    """Return what the client sent as its login."""
    return str(context.request_context.request.headers["authorization"])


@app.tool()
def fail(context: Context) -> str:
    """Fail, and tell the login of the client."""
    raise ToolError(echo(context))


if __name__ == "__main__":
    app.run("streamable-http", port=PORT)
