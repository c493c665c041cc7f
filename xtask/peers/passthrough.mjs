// `@civic/passthrough-mcp-server` between standard input and a program.
import { PassthroughContext } from '@civic/passthrough-mcp-server';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

// It logs to standard output, which is the session's.
console.log = console.error;
const [command, ...args] = process.argv.slice(2);
const context = new PassthroughContext();
await context.connect(new StdioServerTransport(), new StdioClientTransport({ command, args }));
