"""The agents beside Beckon's: each the same small HTTP service, as its library's guide shows it.

One module a library, run with the address of the model and that of the tool in an environment that
`requirements.txt` pins. What is not the library's is the same for all: `chat` serves,
and `httpx` calls the tool.
"""
