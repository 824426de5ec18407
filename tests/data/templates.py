"""Four templates that say by tags what the assistant writes, and what is left of each without them; and one that rewrites earlier turns."""
import re

CHATML = """{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{- message.content + '<|im_end|>' -}}{%- endgeneration -%}{{- '\\n' -}}
{%- else -%}
{{- message.content + '<|im_end|>\\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"""

LLAMA3 = """{{- bos_token -}}
{%- for message in messages -%}
{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' -}}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{- message.content | trim + '<|eot_id|>' -}}{%- endgeneration -%}
{%- else -%}
{{- message.content | trim + '<|eot_id|>' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}{%- endif -%}"""

INST = """{{- '<s>' -}}
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{%- generation -%}{{- ' ' + message.content + '</s>' -}}{%- endgeneration -%}
{%- elif message.role == 'user' -%}
{{- '[INST] ' + message.content + ' [/INST]' -}}
{%- else -%}
{{- raise_exception('only user and assistant speak here, not ' + message.role) -}}
{%- endif -%}
{%- endfor -%}"""

PLAIN = """{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{{- 'Assistant:' -}}{%- generation -%}{{- ' ' + message.content + '\\n' -}}{%- endgeneration -%}
{%- else -%}
{{- message.role | capitalize + ': ' + message.content + '\\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%}"""

# Drops the thoughts of all turns but the last, as Qwen 3's does.
REWRITES = """{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{%- if message.role == 'assistant' and '</think>' in message.content -%}
{%- set thought = message.content.split('</think>')[0].split('<think>')[-1].strip('\\n') -%}
{%- set answer = message.content.split('</think>')[-1].lstrip('\\n') -%}
{%- if loop.last -%}{{- '<think>\\n' + thought + '\\n</think>\\n\\n' -}}{%- endif -%}
{{- answer -}}
{%- else -%}
{{- message.content -}}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"""

# The same of thoughts that come by themselves.
DROPS_THOUGHTS = """{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{%- if message.reasoning_content and loop.last -%}{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' -}}{%- endif -%}
{{- message.content + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"""

# Its prompt is not how its answers begin, as R1-Distill's.
PROMPTS_A_THOUGHT = CHATML.replace("'<|im_start|>assistant\\n' -}}{%- endif", "'<|im_start|>assistant\\n<think>\\n' -}}{%- endif")
# As Nemotron's: a word of the template says whether it does.
SWITCHES_A_THOUGHT = PROMPTS_A_THOUGHT.replace("'<|im_start|>assistant\\n<think>\\n'", "'<|im_start|>assistant\\n' + ('' if enable_thinking is false else '<think>\\n')")
ENDLESS = "{%- for a in range(99999) -%}{%- for b in range(99999) -%}{%- endfor -%}{%- endfor -%}x"
WRITES_THE_DAY = CHATML.replace("{%- for message in messages -%}", "{{- 'Today: ' + strftime_now('%d %b %Y') + '\\n' -}}{%- for message in messages -%}", 1)

TAGGED = {"chatml": CHATML, "llama3": LLAMA3, "inst": INST, "plain": PLAIN}


def without_tags(template):
    return re.sub(r"\{%-? *(end)?generation *-?%\}", "", template)
