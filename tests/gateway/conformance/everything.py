"""A server with the fixtures of the conformance suite, on the endpoint of the gateway.

What answers is the suite's; what carries it is ours: the endpoint, its checks of Host and Origin,
both revisions of the protocol, the sealed state, and tasks that are sessions of a log. Run it as
`python -m tests.gateway.conformance.everything LOG`: it prints its URL.
"""

import asyncio
import json
import sys

import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import Server

import cueline
from cueline.gateway.mcp import Endpoint
from cueline.gateway.mcp_tasks import EXTENSION, add_tasks, require_client_extension, task_for
from cueline.gateway.mcp_wait import WaitAsked, wait_for
from tests.gateway.conformance.sessions import AGENTS, greets

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5E"
    "rkJggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
HINTS = {"ttl_ms": 60_000, "cache_scope": "public"}


def text(value):
    return types.TextContent(type="text", text=value)


def image():
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri, said, kind="text/plain"):
    held = types.TextResourceContents(uri=uri, mime_type=kind, text=said)
    return types.EmbeddedResource(type="resource", resource=held)


def form(message, **fields):
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=message, requested_schema=schema)
    )


def sampling(prompt):
    said = types.SamplingMessage(role="user", content=text(prompt))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[said], max_tokens=100)
    )


NAME = form("What is your name?", name={"type": "string"})
CONFIRM = form("Please confirm", ok={"type": "boolean"})
ASKS = {
    "test_input_required_result_elicitation": {"user_name": NAME},
    "test_input_required_result_sampling": {
        "capital_question": sampling("What is the capital of France?")
    },
    "test_input_required_result_list_roots": {"client_roots": types.ListRootsRequest()},
    "test_input_required_result_request_state": {"confirm": CONFIRM},
    "test_input_required_result_tampered_state": {"confirm": CONFIRM},
    "test_input_required_result_multiple_inputs": {
        "user_name": NAME,
        "greeting": sampling("Generate a greeting"),
        "client_roots": types.ListRootsRequest(),
    },
    "test_input_required_result_capabilities": {
        "user_name": NAME,
        "greeting": sampling("Generate a greeting"),
    },
}
STATEFUL = {name for name in ASKS if "state" in name or "multiple" in name}
CONTENT = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [image()],
    "test_audio_content": [types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [
        embedded("test://embedded-resource", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        image(),
        embedded(
            "test://mixed-content-resource", '{"test":"data","value":123}', "application/json"
        ),
    ],
}
DONE = [text("Done.")]


async def list_tools(_, __):
    anything = {"type": "object", "properties": {}}
    tools = [
        types.Tool(name=each, description=each, input_schema=anything)
        for each in (*CONTENT, *ASKS, *SPECIAL, *AGENTS)
    ]
    return types.ListToolsResult(tools=tools, **HINTS)


async def call_tool(context, params):
    name = params.name
    if name in CONTENT:
        return types.CallToolResult(content=CONTENT[name])
    if name in ASKS:
        return ask(context, name, params.input_responses or {})
    if name in AGENTS:
        if name == "failing_job":
            require_client_extension(context, EXTENSION)
        return await as_task(context, params, AGENTS[name](**(params.arguments or {})))
    if name not in SPECIAL:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name}")
    return await SPECIAL[name](context, params) or types.CallToolResult(content=DONE)


async def fail(_, __):
    failure = [text("This tool intentionally returns an error for testing")]
    return types.CallToolResult(content=failure, is_error=True)


async def report_progress(context, _):
    for each in (0, 50, 100):
        await context.session.report_progress(each, 100)


async def write_log(context, _):
    for each in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", each, related_request_id="1")


async def ask_in_a_stream(context, _):
    await context.session.report_progress(1)
    return types.InputRequiredResult(input_requests={"user_name": NAME})


async def need_sampling(context, _):
    need(context, "sampling")


async def greet(_, params):
    return types.CallToolResult(content=[text(f"Hello, {params.arguments['name']}!")])


async def ask_before_a_task(context, params):
    said = params.input_responses or {}
    if "user_name" not in said:
        return types.InputRequiredResult(input_requests={"user_name": NAME})
    return await as_task(context, params, greets(said["user_name"].content["name"]))


async def ask_twice(_, params):
    steps = {
        None: ("step1", form("Step 1: What is your name?", name={"type": "string"}), "1"),
        "1": ("step2", form("Step 2: What is your favorite color?", color={"type": "string"}), "2"),
    }
    if params.request_state not in steps:
        return None
    key, asked, state = steps[params.request_state]
    return types.InputRequiredResult(input_requests={key: asked}, request_state=state)


SPECIAL = {
    "test_error_handling": fail,
    "test_tool_with_progress": report_progress,
    "test_tool_with_logging": write_log,
    "test_logging_tool": write_log,
    "test_missing_capability": need_sampling,
    "test_streaming_elicitation": ask_in_a_stream,
    "test_tool_with_task": ask_before_a_task,
    "test_input_required_result_multi_round": ask_twice,
    "greet": greet,
}


async def as_task(context, params, agent):
    """Start a session of *agent*, and answer with its task, or with its result."""
    session = await RUNTIME[0].start(agent, "Go")
    if (task := await task_for(context, RUNTIME[0], session.id)) is not None:
        return task
    asked = WaitAsked(session=session.id, seconds=20)
    said = await wait_for(context, RUNTIME[0], params, asked)
    return types.CallToolResult(content=[text(said["text"])], is_error=said["status"] == "failed")


def can(context, capability):
    declared = context.session.client_capabilities
    return declared is not None and getattr(declared, capability) is not None


def need(context, capability):
    if not can(context, capability):
        required = {"requiredCapabilities": {capability: {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing capability", required)


NEEDS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling"}


def ask(context, name, said):
    asks = ASKS[name]
    if name == "test_input_required_result_capabilities":
        asks = {key: each for key, each in asks.items() if can(context, NEEDS[each.method])}
    if not all(getattr(said.get(key), "action", "accept") and key in said for key in asks):
        state = "asked" if name in STATEFUL else None
        return types.InputRequiredResult(input_requests=asks, request_state=state)
    told = [each.model_dump(mode="json") for each in said.values()]
    return types.CallToolResult(content=[text(f"state-ok {json.dumps(told)}")])


RESOURCES = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text",
        mime_type="text/plain",
        text="This is the content of the static text resource.",
    ),
    "test://static-binary": types.BlobResourceContents(
        uri="test://static-binary", mime_type="image/png", blob=PNG
    ),
}
PREFIX, SUFFIX = "test://template/", "/data"


async def list_resources(_, __):
    listed = [types.Resource(uri=each, name=each, description=each) for each in RESOURCES]
    return types.ListResourcesResult(resources=listed, **HINTS)


async def list_templates(_, __):
    one = types.ResourceTemplate(uri_template=f"{PREFIX}{{id}}{SUFFIX}", name="template")
    return types.ListResourceTemplatesResult(resource_templates=[one], **HINTS)


async def read_resource(_, params):
    uri = str(params.uri)
    if uri in RESOURCES:
        return types.ReadResourceResult(contents=[RESOURCES[uri]], **HINTS)
    if uri.startswith(PREFIX):
        name = uri.removeprefix(PREFIX).removesuffix(SUFFIX)
        said = json.dumps({"id": name, "templateTest": True, "data": f"Data for ID: {name}"})
        held = types.TextResourceContents(uri=uri, mime_type="application/json", text=said)
        return types.ReadResourceResult(contents=[held], **HINTS)
    raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


async def list_prompts(_, __):
    listed = [
        types.Prompt(
            name=name,
            description=name,
            arguments=[
                types.PromptArgument(name=each, description=each, required=True) for each in named
            ],
        )
        for name, named in PROMPTS.items()
    ]
    return types.ListPromptsResult(prompts=listed, **HINTS)


async def get_prompt(_, params):
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            said = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            said = [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            told = text("Please process the embedded resource above.")
            held = "Embedded resource content for testing."
            said = [embedded(given["resourceUri"], held), told]
        case "test_prompt_with_image":
            said = [image(), text("Please analyze the image above.")]
        case "test_input_required_result_prompt":
            if not params.input_responses:
                asked = form("What context should the prompt use?", context={"type": "string"})
                return types.InputRequiredResult(input_requests={"user_context": asked})
            said = DONE
        case name:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {name}")
    messages = [types.PromptMessage(role="user", content=each) for each in said]
    return types.GetPromptResult(messages=messages)


async def complete(_, __):
    return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))


async def set_level(_, __):
    return types.EmptyResult()


async def subscribe(_, __):
    return types.EmptyResult()


RUNTIME = []
"""The runtime of the sessions that are tasks, once it is open."""
SERVER = Server(
    "everything",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=subscribe,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
    on_set_logging_level=set_level,
)


SERVER.extensions[EXTENSION] = {}
add_tasks(SERVER, lambda _: RUNTIME[0])


class Announced(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        sys.stdout.write(f"http://127.0.0.1:{port}/mcp\n")
        sys.stdout.flush()


async def main(log):
    async with cueline.open_runtime(log, on="inline") as runtime:
        RUNTIME.append(runtime)
        config = uvicorn.Config(Endpoint(SERVER), port=0, log_level="error", lifespan="off")
        await Announced(config).serve()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
