"""Makes folders of tokens from text and chats, exactly as transformers encodes them. docs/use/data-command.md"""
