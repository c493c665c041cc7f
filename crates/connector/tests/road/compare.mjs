// A client of the TypeScript kits takes the steps that are named and prints what it was answered,
// a line of JSON. PLAN: {"kit", "mode", "server", "steps"}.
const plan = JSON.parse(process.argv[2]);
const [module, transport] = plan.kit.endsWith('/sdk') ? ['/client/index.js', '/client/stdio.js'] : ['', '/stdio'];
const { Client } = await import(plan.kit + module);
const { StdioClientTransport } = await import(plan.kit + transport);

const mode = ['auto', 'legacy'].includes(plan.mode) ? plan.mode : { pin: plan.mode };
const client = new Client({ name: 'kit', version: '1' }, { versionNegotiation: { mode } });
const [command, ...args] = plan.server;
const steps = {
  'tools/list': () => client.listTools(),
  'tools/call': (params) => client.callTool(params),
  'resources/list': () => client.listResources(),
  'resources/templates/list': () => client.listResourceTemplates(),
  'resources/read': (params) => client.readResource(params),
  'prompts/list': () => client.listPrompts(),
  'prompts/get': (params) => client.getPrompt(params),
  ping: () => client.ping(),
};
const answer = async (step) => {
  try {
    return await step();
  } catch (error) {
    return { error: error.message };
  }
};
const answers = [await answer(async () => {
  await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: 'ignore' }));
  return {
    version: client.getNegotiatedProtocolVersion?.(),
    server: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
  };
})];
for (const [method, params] of answers[0].error ? [] : plan.steps) {
  answers.push(await answer(() => steps[method](params)));
}
console.log(JSON.stringify(answers));
await client.close();
