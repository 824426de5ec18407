"""In which of the known forms a record is, and what it says then: a text, a completion of a prompt, or a chat."""
import json

from .errors import DATA, BadRecord, Refused

SPEAKERS = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant", "model": "assistant",
            "system": "system", "tool": "tool", "observation": "tool", "function_response": "tool"}
CALL = "function_call"
ALPACA = ("Below is an instruction that describes a task{input_words}. Write a response that appropriately completes the request.\n\n"
          "### Instruction:\n{instruction}\n\n{input_part}### Response:\n")
KNOWN = "text; messages; conversations; prompt and completion; instruction and output"


def form_of(record, column, place):
    """The form by the first record of a file."""
    if column:
        if column not in record:
            raise Refused(DATA, f"{place} has no column {column}; it has {', '.join(map(str, record)) or 'none'}")
        if not isinstance(record[column], list):
            return "text"
        first = record[column][0] if record[column] else {}
        return "conversations" if isinstance(first, dict) and "from" in first else "messages"
    if "messages" in record:
        return "messages"
    if "conversations" in record:
        first = record["conversations"][0] if record["conversations"] else {}
        return "conversations" if isinstance(first, dict) and "from" in first else "messages of conversations"
    if "prompt" in record and "completion" in record:
        return "completion"
    if "instruction" in record and "output" in record:
        return "alpaca"
    if "text" in record:
        return "text"
    raise Refused(DATA, f"{place} has the columns {', '.join(map(str, record)) or 'of no name'}, and none that is known: {KNOWN}; "
                        "--column NAME names the one that holds text or messages")


def is_text(form):
    return form == "text"


def text_of(record, column):
    return _text(record, column or "text")


def _text(record, key, default=None):
    value = record.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise BadRecord(f"its {key} is {type(value).__name__ if key in record else 'not there'}, where text is wanted")
    return value


def _list(record, key):
    value = record.get(key)
    if isinstance(value, str):   # some sets hold it as JSON text
        try:
            value = json.loads(value)
        except ValueError:
            pass
    if not isinstance(value, list):
        raise BadRecord(f"its {key} is {type(value).__name__ if key in record else 'not there'}, where a list is wanted")
    return value


def chat_of(record, form, column, has_template):
    """{"messages", "tools"}, or {"prompt", "completion"} of plain texts."""
    if form == "completion":
        return _completion(record)
    if form == "alpaca":
        return _alpaca(record, has_template)
    if form == "conversations":
        return {"messages": _sharegpt(record, _list(record, column or "conversations")), "tools": record.get("tools")}
    key = column or ("conversations" if form == "messages of conversations" else "messages")
    return {"messages": _list(record, key), "tools": record.get("tools")}


def _completion(record):
    prompt, completion = record.get("prompt"), record.get("completion")
    if isinstance(prompt, list) and isinstance(completion, list):
        return {"messages": prompt + completion, "tools": record.get("tools"), "answers_from": len(prompt)}
    return {"prompt": _text(record, "prompt"), "completion": _text(record, "completion")}


def _alpaca(record, has_template):
    instruction, more, output = _text(record, "instruction"), _text(record, "input", ""), _text(record, "output")
    if has_template:
        question = f"{instruction}\n\n{more}" if more else instruction
        system = _text(record, "system", "")
        turns = [{"role": "system", "content": system}] if system else []
        return {"messages": [*turns, {"role": "user", "content": question}, {"role": "assistant", "content": output}], "tools": None}
    prompt = ALPACA.format(instruction=instruction, input_words=", paired with an input that provides further context" if more else "",
                           input_part=f"### Input:\n{more}\n\n" if more else "")
    return {"prompt": prompt, "completion": output}


def _sharegpt(record, turns):
    messages = []
    if isinstance(record.get("system"), str) and record["system"]:
        messages.append({"role": "system", "content": record["system"]})
    for turn in turns:
        if not isinstance(turn, dict):
            raise BadRecord(f"a turn is {type(turn).__name__}, where an object is wanted")
        speaker, value = turn.get("from"), _text(turn, "value")
        if speaker == CALL:
            messages.append({"role": "assistant", "tool_calls": _calls(value)})
        elif speaker in SPEAKERS:
            messages.append({"role": SPEAKERS[speaker], "content": value})
        else:
            raise BadRecord(f"a turn is from {speaker!r}; known are {', '.join(SPEAKERS)} and {CALL}")
    return messages


def _calls(value):
    try:
        calls = json.loads(value)
    except ValueError as error:
        raise BadRecord(f"a {CALL} is no JSON: {value[:60]!r}") from error
    calls = calls if isinstance(calls, list) else [calls]
    if not all(isinstance(call, dict) and "name" in call for call in calls):
        raise BadRecord(f"a {CALL} names no function: {value[:60]!r}")
    return [{"type": "function", "function": {"name": call["name"], "arguments": call.get("arguments", {})}} for call in calls]
