// The client of the TypeScript kit, through the launcher, in the era that is named. It declares
// roots, which the server asks for. Prints what it saw as JSON.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [launcher, url, mode] = process.argv.slice(2);
const transport = new StdioClientTransport({
  command: launcher,
  args: ['run', 'browser'],
  env: process.env,
});
const era = ['auto', 'legacy'].includes(mode) ? mode : { pin: mode };
const options = { capabilities: { roots: {} }, versionNegotiation: { mode: era } };
const client = new Client({ name: 'kit', version: '1' }, options);
let asked = 0;
client.setRequestHandler('roots/list', async () => {
  asked += 1;
  return { roots: [{ uri: 'file:///nowhere', name: 'nowhere' }] };
});
await client.connect(transport);
const { tools } = await client.listTools();
await client.callTool({ name: 'browser_navigate', arguments: { url } });
const text = (result) => result.content.map((part) => part.text ?? '').join('');
const snapshot = text(await client.callTool({ name: 'browser_snapshot', arguments: {} }));
const shot = await client.callTool({ name: 'browser_take_screenshot', arguments: {} });
const status = await client.readResource({ uri: 'sema-connector://browser/status' });
console.log(JSON.stringify({
  version: client.getNegotiatedProtocolVersion(),
  asked,
  tools: tools.length,
  snapshot,
  image: shot.content.some((part) => part.type === 'image'),
  status: JSON.parse(status.contents[0].text),
}));
await client.close();
