"""The behaviour of a Broker under tool calls, tried case by case.

`suite` needs the address of a Broker and something that makes Triggers. `beckon probe broker` and the tests
under `tests/brokers` use it. Nothing here knows the class of a Broker.
"""
