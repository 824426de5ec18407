"""The template that writes a chat as text: jinja2's sandbox, as transformers has it, within a limit of time."""
import contextlib
import datetime
import hashlib
import re
import signal

from .errors import DATA, BadRecord, Refused, one_line

MOST_SECONDS = 10   # of one chat
SWITCH = "enable_thinking"   # Qwen's, GLM's and Nemotron's name for it
TAGS = re.compile(r"\{%-?\s*generation\s*-?%\}")


class Endless(Exception):
    """The limit of time is over."""


@contextlib.contextmanager
def time_limit(seconds):
    def end(number, frame):
        raise Endless

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Template:
    """`text` in place of the folder's own. `arguments` are set in it; `day` is the one that it may write."""

    def __init__(self, fast, text, name, arguments, day):
        self._fast, self._text, self.name, self._arguments = fast, text, name, arguments
        self._day = datetime.date.fromisoformat(day)
        self.asked_for_day = False

    def recipe(self):
        """What another process makes it of."""
        return self._text, self.name, self._arguments, self._day.isoformat()

    def is_there(self):
        return self._text is not None or self._fast.chat_template is not None

    def digest(self):
        """None where there is none: completions need none."""
        return hashlib.sha256(self.text_for(None).encode("utf-8")).hexdigest() if self.is_there() else None

    def _today(self, pattern):
        self.asked_for_day = True
        return self._day.strftime(pattern)

    def text_for(self, tools):
        if self._text is not None:
            return self._text
        try:
            return self._fast.get_chat_template(tools=tools)
        except (ValueError, AttributeError) as error:
            raise Refused(DATA, f"{self.name} has no chat template to write chats with: {one_line(error)}; give --chat-template FILE") from error

    def has_tags(self, tools):
        return TAGS.search(self.text_for(tools)) is not None

    def switch_of_thoughts(self, tools):
        """What to try first, where the template has a word for it: with thoughts or without, its prompt is another."""
        if SWITCH not in self.text_for(tools):
            return ""
        return f"try --template-arg {SWITCH}=false for answers without thoughts, =true for answers with them; else "

    def render(self, messages, tools):
        return self._render([messages], tools, prompt=False, tags=False)[0][0]

    def render_all(self, chats, tools, prompt=False):
        """The text of each: one call for many costs less than many calls."""
        return self._render(chats, tools, prompt, tags=False)[0]

    def render_tags(self, messages, tools):
        """(text, the places of the assistant's parts)"""
        texts, places = self._render([messages], tools, prompt=False, tags=True)
        return texts[0], [tuple(place) for place in places[0]]

    def _render(self, chats, tools, prompt, tags):
        import jinja2
        from transformers.utils import chat_template_utils
        arguments = {**self._fast.special_tokens_map, **self._arguments}
        try:
            with time_limit(MOST_SECONDS):
                # Compiled once and kept there; as an argument the function would be made text of.
                chat_template_utils._compile_jinja_template(self.text_for(tools)).globals["strftime_now"] = self._today
                return chat_template_utils.render_jinja_template(
                    conversations=chats, tools=tools, chat_template=self.text_for(tools), return_assistant_tokens_mask=tags,
                    add_generation_prompt=prompt, **arguments)
        except Endless as error:
            raise Refused(DATA, f"the chat template of {self.name} had no end within {MOST_SECONDS} s; give another by "
                                "--chat-template FILE") from error
        except jinja2.TemplateSyntaxError as error:
            raise Refused(DATA, f"the chat template of {self.name} is wrong: line {error.lineno}: {one_line(error)}") from error
        except (jinja2.TemplateError, TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise BadRecord(f"the chat template of {self.name} refuses the chat: {one_line(error)}") from error
