"""FastMCP's proxy between standard input and a program."""

import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

program = StdioTransport(command=sys.argv[1], args=sys.argv[2:])
create_proxy(program).run(show_banner=False)
