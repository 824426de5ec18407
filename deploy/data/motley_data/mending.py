"""Chats as templates take them. Templates spoil in silence what comes otherwise: contents in parts, the nulls that Parquet fills in,
arguments that are JSON as text."""
import json

from .errors import BadRecord


def mend(messages, tools, from_parquet, counts):
    """(messages, tools), new ones; what was done is counted."""
    mended = [_message(message, counts) for message in messages]
    if from_parquet:
        mended, tools = _without_nulls(mended), _without_nulls(tools)
    while mended and mended[-1]["role"] != "assistant":   # nothing of it would be trained on
        mended.pop()
        counts["turns behind the last answer, left out"] += 1
    if not mended:
        raise BadRecord("no turn is the assistant's")
    return mended, _tools(tools, counts)


def _message(message, counts):
    if not isinstance(message, dict):
        raise BadRecord(f"a message is {type(message).__name__}, where an object is wanted")
    message = {key: value for key, value in message.items() if value is not None}
    if not isinstance(message.get("role"), str):
        raise BadRecord("a message has no role")
    if isinstance(message.get("content"), list):
        message["content"] = _joined(message["content"])
        counts["contents in parts, joined"] += 1
    if not isinstance(message.get("content", ""), str):
        raise BadRecord(f"the content of a message is {type(message['content']).__name__}, where text is wanted")
    if message.get("tool_calls"):
        message["tool_calls"] = [_call(call, counts) for call in message["tool_calls"]]
    elif "tool_calls" in message:
        del message["tool_calls"]
    if "content" not in message and "tool_calls" not in message:
        raise BadRecord(f"a message of {message['role']} has no content")
    return message


def _joined(parts):
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str) and part.get("type", "text") == "text":
            texts.append(part["text"])
        else:
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise BadRecord(f"a content has a part of type {kind}; only text can be trained on")
    return "".join(texts)


def _call(call, counts):
    if not isinstance(call, dict):
        raise BadRecord(f"a tool call is {type(call).__name__}, where an object is wanted")
    call = dict(call)
    function = call.get("function")
    if isinstance(function, dict):
        call["function"] = function = dict(function)
    else:
        function = call
    if isinstance(function.get("arguments"), str):
        try:
            function["arguments"] = json.loads(function["arguments"])
        except ValueError as error:
            raise BadRecord(f"the arguments of a tool call are no JSON: {function['arguments'][:60]!r}") from error
        counts["arguments as JSON text, parsed"] += 1
    return call


def _tools(tools, counts):
    if isinstance(tools, str):
        try:
            tools = json.loads(tools) if tools.strip() else None
        except ValueError as error:
            raise BadRecord(f"the tools are no JSON: {tools[:60]!r}") from error
        counts["tools as JSON text, parsed"] += 1
    if not tools:
        return None
    if not isinstance(tools, list):
        raise BadRecord(f"the tools are {type(tools).__name__}, where a list is wanted")
    tools = [json.loads(tool) if isinstance(tool, str) else tool for tool in tools]
    if not all(isinstance(tool, dict) for tool in tools):
        raise BadRecord("a tool is no JSON object")
    return tools


def _without_nulls(value):
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
