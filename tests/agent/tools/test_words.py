"""How names and texts become terms."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from beckon_agent.tools.bm25 import terms_of_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("get_order-status.v2", ["order", "status", "v2"]),
        ("findHTTPServerByName", ["find", "http", "server", "name"]),
        ("AmazonGameStore", ["amazon", "game", "store"]),
        ("ordering orders ordered", ["order", "order", "order"]),
        ("What is the weather in Paris?", ["weather", "pari"]),
        ("side1", ["side1", "side"]),
        ("EC2 s3", ["ec2", "ec", "s3"]),
        ("the user's 5 GB", ["user", "gb"]),
        ("Café naïve ﬁle", ["cafe", "naiv", "file"]),
        ("查询股票", ["查询", "询股", "股票"]),
        ("使用API查询", ["使用", "api", "查询"]),
        ("天", ["天"]),
        ("Заказ", ["заказ"]),
        ("", []),
        ("?!… — 🙂", []),
    ],
)
def test_a_text_falls_into_its_terms(text: str, expected: list[str]) -> None:
    assert terms_of_text(text) == expected


def test_encoded_data_is_no_word() -> None:
    assert terms_of_text("picture " + "a" * 5_000) == ["pictur"]


def test_a_long_sentence_without_spaces_has_all_its_terms() -> None:
    assert len(terms_of_text("查询股票价格" * 20)) == 119


def test_threads_do_not_disturb_each_other() -> None:
    texts = [f"ordering{chr(97 + n % 26)} connections{chr(97 + n // 26 % 26)}ly" for n in range(400)]
    alone = [terms_of_text(text) for text in texts]
    fresh = [f"{text} running{chr(97 + n % 26)}ings" for n, text in enumerate(texts)]

    with ThreadPoolExecutor(4) as threads:
        parallel = list(threads.map(terms_of_text, fresh))

    assert [found[:2] for found in parallel] == alone
