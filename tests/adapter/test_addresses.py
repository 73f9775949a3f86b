"""Which addresses requests may go to, whatever form they hide in."""

import pytest

from beckon_runtime.egress import refusal_reason

PUBLIC = [
    "8.8.8.8", "1.1.1.1", "93.184.215.14", "2606:4700:4700::1111", "2a00:1450:4001:80b::200e",
    # Public IPv4 addresses that a translator of the network reaches.
    "64:ff9b::808:808", "::ffff:8.8.8.8",
]  # fmt: skip
PRIVATE = [
    "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "127.0.0.1", "127.255.255.254", "100.64.0.1",
    "198.18.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "240.0.0.1", "192.0.0.8", "192.88.99.1",
    "::1", "fc00::1", "fd12:3456::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1",
    # Private IPv4 addresses inside of IPv6: mapped, translated, compatible, 6to4, Teredo, ISATAP, RFC 8215.
    "::ffff:10.0.0.1", "::ffff:7f00:1", "64:ff9b::10.0.0.1", "64:ff9b::7f00:1", "::7f00:1", "::127.0.0.1",
    "2002:7f00:1::1", "2002:a00:1::", "2001:0:7f00:1:0:0:8080:8080", "2001:0:808:808:0:0:80ff:fffe",
    "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:127.0.0.1", "64:ff9b:1::7f00:1", "64:ff9b:1::8.8.8.8",
]  # fmt: skip
NEVER = [
    "169.254.169.254", "169.254.170.2", "169.254.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192",
    "0.0.0.0", "0.1.2.3", "255.255.255.255", "224.0.0.1", "::", "fe80::1", "fe80::1%lo", "fec0::1", "ff02::1",
    "fd00:ec2::254", "fd20:ce::254",
    "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe", "::a9fe:a9fe", "2002:a9fe:a9fe::1",
    "::ffff:0.0.0.0", "64:ff9b::6464:64c8", "2001:0:a9fe:a9fe::", "2606:4700::5efe:169.254.169.254",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_the_public_internet_is_open(address: str) -> None:
    assert refusal_reason(address, private=False) is None


@pytest.mark.parametrize("address", PRIVATE)
def test_private_networks_are_open_only_where_the_owner_says_so(address: str) -> None:
    assert "not on the public internet" in str(refusal_reason(address, private=False))
    assert refusal_reason(address, private=True) is None


@pytest.mark.parametrize("address", NEVER)
@pytest.mark.parametrize("private", [True, False])
def test_metadata_and_link_local_addresses_are_never_open(address: str, private: bool) -> None:
    assert "metadata" in str(refusal_reason(address, private=private))
