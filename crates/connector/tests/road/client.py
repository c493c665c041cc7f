# The client of the Python kit, through the launcher. Prints what it saw as JSON.
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

launcher, url = sys.argv[1:]

async def main():
    server = StdioServerParameters(command=launcher, args=["run", "browser"], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        await session.call_tool("browser_navigate", {"url": url})
        text = lambda result: "".join(getattr(part, "text", "") for part in result.content)
        snapshot = text(await session.call_tool("browser_snapshot", {}))
        shot = await session.call_tool("browser_take_screenshot", {})
        status = await session.read_resource("sema-connector://browser/status")
        print(json.dumps({
            "tools": len(tools),
            "snapshot": snapshot,
            "image": any(part.type == "image" for part in shot.content),
            "status": json.loads(status.contents[0].text),
        }))

asyncio.run(main())
