"""The files of the page, and what a browser is told about them."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from iii_console.assets import STATIC, Assets, NoPage

SETTINGS = {"chat_policy": {"allow": ["*"], "deny": ["</script><script>alert(1)</script>"]}}


@pytest.fixture(scope="module")
def assets() -> Assets:
    return Assets(SETTINGS)


@pytest.mark.requirement("page.settings")
def test_the_shell_carries_the_settings_and_nothing_in_them_ends_their_element(assets: Assets) -> None:
    shell = assets.find("/")
    assert shell is not None
    text = shell.body.decode()
    found = re.search(r'<script type="application/json" id="settings">(.*?)</script>', text)
    assert found is not None
    assert json.loads(found[1]) == SETTINGS
    assert "<script>alert" not in text


@pytest.mark.requirement("page.policy")
def test_the_policy_lets_this_origin_and_the_import_map_alone_run(assets: Assets) -> None:
    shell = assets.find("/index.html")
    assert shell is not None
    inline = re.findall(r'<script type="importmap">(.*?)</script>', shell.body.decode())
    digest = base64.b64encode(hashlib.sha256(inline[0].encode()).digest()).decode()
    policy = dict(part.split(" ", 1) for part in assets.policy("127.0.0.1:3113").split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == f"'self' 'sha256-{digest}'"
    assert policy["connect-src"] == "'self' ws://127.0.0.1:3113 wss://127.0.0.1:3113"
    assert policy["frame-ancestors"] == "'none'"
    assert not any("unsafe" in part or "*" in part for part in policy.values())


@pytest.mark.requirement("page.self-contained")
def test_what_the_shell_names_is_served_from_here(assets: Assets) -> None:
    shell = assets.find("/")
    assert shell is not None
    text = shell.body.decode()
    named = re.findall(r'(?:src|href)="([^"]+)"', text)
    mapped = json.loads(re.findall(r'<script type="importmap">(.*?)</script>', text)[0])["imports"]
    assert set(mapped) == {"react", "react-dom", "react-dom/client", "react/jsx-runtime"}
    for path in (*named, *mapped.values()):
        assert assets.find(path) is not None, path


@pytest.mark.requirement("page.self-contained")
def test_licences_of_what_is_built_in_are_served(assets: Assets) -> None:
    licences = assets.find("/licenses.txt")
    assert licences is not None
    assert all(name in licences.body.decode() for name in ("react-dom", "marked"))


@pytest.mark.requirement("page.files")
@pytest.mark.parametrize(
    "path", ["/../assets.py", "/..%2fassets.py", "//etc/passwd", "/vendor", "/vendor/", "/nothing.js"]
)
def test_nothing_outside_the_folder_is_served(assets: Assets, path: str) -> None:
    assert assets.find(path) is None


@pytest.mark.requirement("page.files")
def test_a_tree_whose_page_was_never_built_says_how_to_build_it(tmp_path: Path) -> None:
    with pytest.raises(NoPage, match="make page"):
        Assets({}, tmp_path)


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def themes() -> list[dict[str, str]]:
    text = (STATIC.parents[2] / "page/src/styles/tokens.css").read_text()
    blocks = re.findall(r"\{([^{}]*--color-bg[^{}]*)\}", text)
    return [dict(re.findall(r"--color-([a-z-]+): (#[0-9a-f]{6})", block)) for block in blocks]


@pytest.mark.requirement("page.contrast")
def test_text_stands_out_from_what_it_is_on_in_every_theme() -> None:
    found = themes()
    assert len(found) == 3
    assert found[1] == found[2], "the dark theme is the same, chosen or followed"
    for theme in found:
        for ground in ("bg", "panel", "raised", "sunken", "hover", "accent-soft", "error-soft", "warning-soft"):
            assert contrast(theme["text"], theme[ground]) >= 7, (ground, theme["text"])
        for ground in ("bg", "panel", "raised", "sunken", "hover"):
            assert contrast(theme["soft"], theme[ground]) >= 4.5, (ground, theme["soft"])
        assert contrast(theme["on-accent"], theme["accent"]) >= 4.5
        assert contrast(theme["accent-strong"], theme["bg"]) >= 4.5
        assert contrast(theme["accent"], theme["bg"]) >= 3
        assert contrast(theme["error"], theme["raised"]) >= 4.5
        assert contrast(theme["line-strong"], theme["raised"]) >= 3
