"""Leads a command to the proxy outside: it runs as a program, in the network of the command.

Its listening socket goes through the descriptor of the first argument to the process that serves
the proxy. Then the program becomes the command, so nothing stays in between. It imports nothing of
cueline, which may not be there.
"""

import os
import socket
import sys


def main() -> None:
    """Hand the socket over, name it as the proxy, and become the command."""
    descriptor, *command = sys.argv[1:]
    with (
        socket.socket(fileno=int(descriptor)) as outside,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        socket.send_fds(outside, [b"."], [listener.fileno()])
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    named = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), address) | {"NO_PROXY": ""}
    os.environ.update(named | {name.lower(): each for name, each in named.items()})
    os.environ["NODE_USE_ENV_PROXY"] = "1"
    try:
        os.execvp(command[0], command)  # noqa: S606 - the agent's command
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        sys.exit(127)


if __name__ == "__main__":
    main()
