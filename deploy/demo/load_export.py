"""Loads an export as transformers does; prints as JSON what it is and, where torch is there, what it says. Runs in the Python of
`motley data`.

usage: load_export.py FOLDER QUESTION
"""
import json
import sys

from transformers import AutoConfig, AutoTokenizer
from transformers.utils import is_torch_available

MOST_TOKENS = 60


def answer(folder, tokenizer, question):
    """(number of parameters, what the model answers)"""
    import torch   # late: the Python of `motley data setup` has none
    from transformers import AutoModelForCausalLM
    torch.set_num_threads(1)
    model, loading = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    if problems := {key: sorted(map(str, value)) for key, value in loading.items() if value}:
        raise SystemExit(f"transformers loads {folder} with {problems}")
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": question}], add_generation_prompt=True, return_tensors="pt",
                                           return_dict=True)
    made = model.generate(**prompt, max_new_tokens=MOST_TOKENS, do_sample=False)
    return model.num_parameters(), tokenizer.decode(made[0][prompt["input_ids"].shape[1]:], skip_special_tokens=True)


def main():
    folder, question = sys.argv[1:]
    config, tokenizer = AutoConfig.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    words = tokenizer.encode(question)
    if tokenizer.decode(words) != question or max(words) >= config.vocab_size:
        raise SystemExit(f"the tokenizer of {folder} is not the model's: {words} of {question!r}")
    result = {"class": type(config).__name__, "words": len(tokenizer), "torch": is_torch_available()}
    if result["torch"]:
        result["parameters"], result["answer"] = answer(folder, tokenizer, question)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
