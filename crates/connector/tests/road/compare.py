# A client of the Python kits takes the steps that are named and prints what it was answered, a
# line of JSON. PLAN: {"kit", "mode", "server", "steps"}.
import asyncio, json, os, sys

plan = json.loads(sys.argv[1])
command, *args = plan["server"]
if plan["kit"] == "fastmcp":
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport
    server = StdioTransport(command, args, env=dict(os.environ))
    suffix = "_mcp"
else:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client
    server = stdio_client(StdioServerParameters(command=command, args=args, env=dict(os.environ)))
    suffix = ""

STEPS = {
    "tools/list": "list_tools",
    "tools/call": "call_tool",
    "resources/list": "list_resources",
    "resources/templates/list": "list_resource_templates",
    "resources/read": "read_resource",
    "prompts/list": "list_prompts",
    "prompts/get": "get_prompt",
}

def shown(value):
    return value.model_dump(mode="json", by_alias=True, exclude_none=True) if hasattr(value, "model_dump") else value

async def main():
    answers = []
    try:
        async with Client(server, mode=plan["mode"]) as client:
            answers.append({
                "version": client.protocol_version,
                "server": shown(client.server_info),
                "capabilities": shown(client.server_capabilities),
                "instructions": client.instructions,
            })
            for method, params in plan["steps"]:
                try:
                    if method == "ping":
                        step = client.ping if suffix else client.send_ping
                    else:
                        step = getattr(client, STEPS[method] + suffix)
                    answers.append(shown(await step(**params)))
                except Exception as error:
                    answers.append({"error": str(error)})
    except Exception as error:
        answers = answers or [{"error": str(error)}]
    print(json.dumps(answers))

asyncio.run(main())
