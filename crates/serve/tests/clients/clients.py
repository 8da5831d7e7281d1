"""The official OpenAI and MCP clients, unchanged."""

import asyncio

MASCOT = "Who is the mascot of the San Francisco Giants?"


def check_openai(address, _binary):
    import openai

    client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
    names = [model.id for model in client.models.list()]
    assert "wherefore" in names and "toy/read" in names, names
    assert client.models.retrieve("toy/read").id == "toy/read"
    messages = [{"role": "user", "content": MASCOT}]
    reply = client.chat.completions.create(model="toy/read", messages=messages)
    text = reply.choices[0].message.content
    assert text.startswith("Lou Seal") and "[1]" in text, text
    assert reply.choices[0].finish_reason == "stop"
    options = {"include_usage": True}
    stream = client.chat.completions.create(model="toy/read", messages=messages, stream=True, stream_options=options)
    chunks = list(stream)
    said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert said == text, said
    assert chunks[-1].usage is not None
    try:
        client.chat.completions.create(model="no-such", messages=messages)
        raise AssertionError("an unknown model answered")
    except openai.NotFoundError as error:
        assert error.code == "model_not_found", error


def check_mcp(address, binary):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client

    async def talk(read, write):
        async with ClientSession(read, write) as session:
            greeting = await session.initialize()
            info = getattr(greeting, "serverInfo", None) or greeting.server_info
            assert info.name == "wherefore"
            names = {tool.name for tool in (await session.list_tools()).tools}
            assert names == {"ask", "retrieve", "link", "sparql", "describe_entity", "verify"}, names
            asked = (await session.call_tool("ask", {"question": MASCOT, "graph": "toy"})).model_dump(by_alias=True)
            assert asked["structuredContent"]["answers"][0]["name"] == "Lou Seal", asked
            arguments = {"answer": asked["structuredContent"], "graph": "toy"}
            verified = (await session.call_tool("verify", arguments)).model_dump(by_alias=True)
            assert verified["structuredContent"]["holds"] is True
            around = (await session.call_tool("describe_entity", {"entity": "Lou Seal", "graph": "toy"})).model_dump(by_alias=True)
            assert around["structuredContent"]["triples"][0]["relation"] == "mascot of"
            wrong = (await session.call_tool("sparql", {"query": "SELECT", "graph": "toy"})).model_dump(by_alias=True)
            assert wrong["isError"] is True
            resources = (await session.list_resources()).resources
            uri = next(r.uri for r in resources if "toy" in str(r.uri))
            read_back = await session.read_resource(uri)
            assert "located in" in read_back.contents[0].text

    async def over_lines():
        parameters = StdioServerParameters(command=binary, args=["mcp", "--graph", "@toy"])
        async with stdio_client(parameters) as (read, write):
            await talk(read, write)

    async def over_http():
        async with streamable_http_client(f"{address}/mcp") as streams:
            await talk(streams[0], streams[1])

    asyncio.run(over_lines())
    asyncio.run(over_http())
