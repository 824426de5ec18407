"""Which part of a chat's text is trained on. docs/use/data-command.md, "What is trained on"

Of each document: its text, and the spans of characters that the assistant wrote. By the template's own {% generation %} tags; else by
the prefix rule, which needs no word of the template: the prompt for an answer, then the chat up to it, then the whole chat must begin one
another. A template that rewrites earlier turns breaks the last of these, and gives each answer a document of its own.
"""
from .errors import DATA, BadRecord, Refused

ASSISTANT, LAST, EACH, ALL = "assistant", "last", "each", "all"
TRAINS = (ASSISTANT, LAST, EACH, ALL)
THOUGHT_END = "</think>"


class Document:
    def __init__(self, text, spans, exact=False, frame=((), ())):
        self.text, self.spans = text, spans
        self.exact = exact   # to the character; else a span may end with what a template writes behind an end token
        self.frame = frame   # tokens before and behind the text


class Masks:
    def __init__(self, template, train):
        self._template, self._train = template, train

    def documents(self, messages, tools, answers_from=0):
        """(documents, how: a name to count by). Answers before `answers_from` are part of a prompt."""
        answers = [i for i, message in enumerate(messages) if message["role"] == ASSISTANT and i >= answers_from]
        if not answers:
            raise BadRecord("no turn is the assistant's")
        if self._train == ALL:
            text = self._template.render(messages, tools)
            return [Document(text, [(0, len(text))], exact=True)], "whole"
        if self._template.has_tags(tools):
            return self._by_tags(messages, tools, answers, not answers_from)
        return self._by_prefix(messages, tools, answers)

    def _by_tags(self, messages, tools, answers, all_answers):
        if self._train == ASSISTANT:
            text, spans = self._template.render_tags(messages, tools)
            spans = spans if all_answers else spans[-len(answers):]
            return [self._checked(Document(text, spans, exact=True), messages, answers)], "tags"
        documents = []
        for answer in answers[-1:] if self._train == LAST else answers:
            text, spans = self._template.render_tags(messages[:answer + 1], tools)
            documents.append(self._checked(Document(text, spans[-1:], exact=True), messages, [answer]))
        return documents, self._train

    def _by_prefix(self, messages, tools, answers):
        if self._train == LAST:
            answers = answers[-1:]
        texts = self._template.render_all([messages[:answer + 1] for answer in answers], tools)
        prompts = self._template.render_all([messages[:answer] for answer in answers], tools, prompt=True)
        turns = [self._turn(text, prompt, tools) for text, prompt in zip(texts, prompts)]
        for turn, answer in zip(turns, answers):
            self._checked(turn, messages, [answer])
        if self._train in (LAST, EACH):
            return turns, self._train
        # The chat ends with an answer, so the last turn is the whole of it.
        whole = texts[-1] if answers[-1] == len(messages) - 1 else self._template.render(messages, tools)
        if all(whole.startswith(text) for text in texts):
            return [Document(whole, [span for turn in turns for span in turn.spans])], "prefix"
        return turns, "turns"

    def _turn(self, text, prompt, tools):
        if not text.startswith(prompt):
            same = next((i for i, (a, b) in enumerate(zip(prompt, text)) if a != b), min(len(prompt), len(text)))
            raise Refused(DATA, f"the chat template of {self._template.name} asks for an answer with {prompt[same:same + 40]!r} where the "
                                f"answers in its text begin with {text[same:same + 40]!r}, so a model would be asked otherwise than it was "
                                f"taught; {self._template.switch_of_thoughts(tools)}give one that has both alike, or {{% generation %}}, by "
                                "--chat-template FILE")
        return Document(text, [(len(prompt), len(text))])

    def _checked(self, document, messages, answers):
        """The document. An answer that the template drops would be trained on as if it were empty."""
        if len(document.spans) != len(answers):
            return document   # tags that stand elsewhere than around each answer
        for (begin, end), answer in zip(document.spans, answers):
            content = messages[answer].get("content", "").split(THOUGHT_END)[-1].strip()
            if content not in document.text[begin:end]:
                raise Refused(DATA, f"the chat template of {self._template.name} leaves out an answer, {content[:60]!r}, or writes it otherwise: "
                                    f"{document.text[begin:end][:60]!r}; give another by --chat-template FILE")
        return document


def trained_tokens(document, encoding, added):
    """(of each token of the document: is it trained on?, how many answers no added token ends)"""
    offsets, ids = encoding.offsets, encoding.ids   # each makes its list anew
    trained, is_open = [False] * len(ids), 0
    at = 0
    for begin, end in document.spans:
        while at < len(ids) and max(offsets[at][1], offsets[at][0] + 1) <= begin:
            at += 1
        first = at
        while at < len(ids) and offsets[at][0] < end:
            trained[at] = True
            at += 1
        last = next((i for i in range(at - 1, first - 1, -1) if ids[i] in added), None)
        if last is None or document.text[offsets[last][1]:end].strip():
            is_open += 1
        elif not document.exact:   # the newline that a template writes behind the end of a turn is nothing that a model is to say
            for i in range(last + 1, at):
                trained[i] = False
        at = max(first, at - 1)   # a token may lie in two spans
    return trained, is_open
