"""The model window: a pure function of the log whose prefix never changes (harness-loop 12.2, 12.8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_harness.decide import growing_window
from iii_harness.decide.growing_window import GrowingWindow
from iii_harness.decide.window import Window, messages_of, window
from iii_harness.ports import Item
from iii_kit.encoding import copy


def said(entry_id, text="hi"):
    return Item(entry_id, {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1})


def replied(entry_id, *calls):
    blocks = [{"type": "function_call", "id": c, "function_id": "f", "arguments": {}} for c in calls]
    return Item(entry_id, {"role": "assistant", "content": blocks or [{"type": "text", "text": "a"}], "timestamp": 1})


def answered(call):
    fields = {"function_call_id": call, "function_id": "f", "content": [], "details": None, "is_error": False}
    return Item(f"r_{call}", {"role": "function_result", **fields, "timestamp": 1})


def noticed(entry_id, text):
    message = {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 7}
    return Item(entry_id, custom_type="model_notice", data={"kind": "hook", "text": text, "message": message})


def order(entry_id, after, *moved):
    return Item(entry_id, custom_type="message_order", data={"after": after, "moved": list(moved)})


def ids(view: Window):
    return [entry.entry_id for entry in view.entries]


def of(path, own="own", watermark=None):
    return window(path, own_reply=own, watermark=watermark)


@pytest.mark.requirement("loop.window.rows")
def test_custom_messages_and_files_are_left_out_and_notices_replayed():
    custom = Item("c", {"role": "custom", "custom_type": "x", "content": [], "timestamp": 1})
    file = {"type": "file", "attachment_id": "a", "name": "n", "mime": "m", "size": 1}
    with_file = Item("u2", {"role": "user", "content": [file, {"type": "text", "text": "t"}], "timestamp": 1})
    view = of([said("u1"), custom, noticed("n1", "note"), with_file, Item("z", custom_type="error", data={})])
    assert ids(view) == ["u1", "n1", "u2"]
    assert view.entries[1].message["timestamp"] == 7
    assert view.entries[2].message["content"] == [{"type": "text", "text": "t"}]


@pytest.mark.requirement("loop.window.own")
def test_the_steps_own_reply_is_hidden_until_one_of_its_calls_has_a_result():
    assert ids(of([said("u"), replied("own", "c1", "c2")])) == ["u"]
    assert ids(of([said("u"), replied("own", "c1", "c2"), answered("c2")])) == ["u", "own", "r_c2"]
    assert ids(of([said("u"), replied("other", "c1")])) == ["u", "other"]


@pytest.mark.requirement("loop.window.late")
def test_a_message_between_a_reply_and_its_results_moves_behind_them_once_all_are_there():
    path = [said("u"), replied("a", "c1", "c2"), answered("c1"), said("late"), answered("c2")]
    view = of(path, watermark="u")
    assert ids(view) == ["u", "a", "r_c1", "r_c2", "late"]
    assert view.move is not None
    assert view.move.to_json() == {"after": "r_c2", "moved": ["late"]}
    assert ids(of([*path, order("o", "r_c2", "late")], watermark="late")) == ids(view)
    assert of(path[:4], watermark="u").move is None


@pytest.mark.requirement("loop.window.late")
def test_the_first_message_never_moves():
    path = [said("first"), replied("a", "c1"), answered("c1")]
    assert of(path, watermark="first").move is None
    assert of([Item("w", custom_type="runtime_context", data={}), *path], watermark="w").move is None


@pytest.mark.requirement("loop.window.compaction")
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"summary": "s", "tail_start_entry_id": "u2"}, ["u2", "u3"]),
        ({"summary": "s", "tail_start_entry_id": None}, ["u3"]),
        ({"summary": "s", "tail_start_entry_id": "gone"}, ["u1", "u2", "u3"]),
        ({"summary": "s"}, ["u1", "u2", "u3"]),
        ({"tail_start_entry_id": "u2"}, ["u1", "u2", "u3"]),
    ],
)
def test_the_window_opens_at_the_latest_compaction(data, expected):
    anchor = Item("k", custom_type="compaction", data=data)
    view = of([said("u1"), said("u2"), anchor, said("u3")])
    assert ids(view) == expected
    assert view.summary == data.get("summary")


@pytest.mark.requirement("loop.window.orphans")
def test_every_call_that_goes_out_has_a_result_right_after_its_message():
    messages = messages_of(
        of([said("u"), replied("a", "c1"), said("v"), replied("b", "c2", "c3"), answered("c3")]).entries
    )
    assert [m["role"] for m in messages] == [
        "user",
        "assistant",
        "function_result",
        "user",
        "assistant",
        "function_result",
        "function_result",
    ]
    assert (messages[2]["details"], messages[2]["is_error"]) == ({"error": "elided"}, False)
    assert (messages[5]["function_call_id"], messages[5]["details"]) == ("c2", {"error": "interrupted"})
    assert {"role", "function_call_id", "function_id", "content", "details", "is_error", "timestamp"} == set(
        messages[5]
    )


@st.composite
def logs(draw):
    """A log as steps leave it: each step a request leaf, then notices, reply, results, users in any gap."""
    path, leaves, n = [said("u0")], [], 0
    for step in range(draw(st.integers(1, 4))):
        leaves.append(len(path))
        calls = [f"c{step}_{i}" for i in range(draw(st.integers(0, 2)))]
        if draw(st.booleans()):
            path.append(noticed(f"n{step}", "note"))
        path.append(replied(f"a{step}", *calls))
        for item in [answered(c) for c in calls]:
            if draw(st.booleans()):
                n += 1
                path.append(said(f"late{n}"))
            path.append(item)
        if draw(st.booleans()):
            n += 1
            path.append(said(f"next{n}"))
    leaves.append(len(path))
    return path, leaves


@pytest.mark.requirement("loop.window.prefix")
@given(logs())
def test_what_was_sent_once_stays_the_beginning_of_every_later_request(log):
    path, leaves = log
    sent: list[str] = []
    written: list[Item] = []
    watermark = None
    for step, end in enumerate(leaves):
        # The order entries of earlier steps stand where they were written: right before their step's notices.
        seen = [item for index, item in enumerate(path[:end]) for item in (*_orders(written, index), item)]
        view = window(seen, own_reply=f"a{step}", watermark=watermark)
        if view.move is not None:
            written.append(Item(f"o{end}", custom_type="message_order", data=view.move.to_json()))
        now = ids(view)
        assert now[: len(sent)] == sent, "a later request rewrote an earlier one"
        sent, watermark = now, path[end - 1].entry_id


def _orders(written, index):
    return [order for order in written if order.entry_id == f"o{index}"]


@pytest.mark.requirement("loop.window.orphans")
def test_a_call_id_of_an_earlier_turn_answers_no_later_call():
    path = [said("u"), replied("a", "c1"), answered("c1"), replied("b"), said("v"), replied("c", "c1")]
    messages = messages_of(of(path).entries)
    assert [m["role"] for m in messages][-2:] == ["assistant", "function_result"]
    assert messages[-1]["details"] == {"error": "interrupted"}
    assert ids(of([*path[:5], replied("own", "c1")])) == ["u", "a", "r_c1", "b", "v"]


odd = st.sampled_from(
    [
        said("late"),
        replied("own", "c9"),
        answered("c9"),
        replied("x", "c8"),
        noticed("n9", "note"),
        order("o9", "a0", "late"),
        Item("k9", custom_type="compaction", data={"summary": "s", "tail_start_entry_id": "a0"}),
        Item("e9", custom_type="error", data={}),
    ]
)


@pytest.mark.requirement("loop.window.grows")
@given(
    logs(),
    st.lists(st.tuples(st.integers(0, 20), odd), max_size=3, unique_by=lambda extra: extra[1].entry_id),
    st.lists(st.integers(0, 30), max_size=4),
    st.integers(0, 9),
)
def test_a_window_that_grows_equals_one_made_anew(log, extras, cuts, first):
    path = list(log[0])
    for at, item in extras:
        path.insert(min(at, len(path)), item)
    growing, seen = GrowingWindow(), []
    watermark = path[first].entry_id if first < len(path) else None
    for end in sorted({min(cut, len(path)) for cut in cuts} | {len(path)}):
        seen += path[len(seen) : end]
        anew = window(seen, own_reply="own", watermark=watermark)
        messages, move = growing.of(seen, own_reply="own", watermark=watermark)
        assert (copy(messages), move) == (messages_of(anew.entries), anew.move)
        grown = growing.view(seen, own_reply="own", watermark=watermark)
        assert copy([list(entry) for entry in grown.entries]) == [list(entry) for entry in anew.entries]
        assert (grown.summary, growing.summary, grown.move) == (anew.summary, anew.summary, anew.move)
        assert grown.head_tokens == anew.head_tokens
        watermark = seen[-1].entry_id if seen else None


@pytest.mark.requirement("loop.window.grows")
def test_after_a_move_or_a_compaction_the_window_grows_on_from_what_is_left(monkeypatch):
    made = []
    monkeypatch.setattr(growing_window, "window", lambda *a, **k: made.append(1) or window(*a, **k))
    path = [said("u0"), replied("a0", "c0"), said("late"), answered("c0"), order("o", "r_c0", "late")]
    path.append(
        Item(
            "k",
            custom_type="compaction",
            data={"summary": "s", "tail_start_entry_id": "late", "summarized_head_tokens": 4},
        )
    )
    growing = GrowingWindow()
    growing.of(path, own_reply="own", watermark=None)
    for n in range(1, 4):
        path += [replied(f"a{n}", f"c{n}"), answered(f"c{n}")]
        grown = growing.view(path, own_reply="own", watermark=path[-3].entry_id)
        assert [entry.entry_id for entry in grown.entries] == [
            "late",
            *(f"{x}{i}" for i in range(1, n + 1) for x in ("a", "r_c")),
        ]
        assert (grown.summary, grown.head_tokens) == ("s", 4)
    assert len(made) == 1
