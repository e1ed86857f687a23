"""The tree of a session by its children's metadata: order, circles, contradictions, pages."""

import pytest
from jsonschema import Draft7Validator

from iii_contracts.harness.metrics import SESSION_TREE, SessionTreeRequest
from iii_harness.tree import SessionTrees
from iii_kit.bus import Invocation
from iii_kit.errors import BusError, CodedError
from iii_testing.answers import Answers

pytestmark = pytest.mark.anyio
CALL = Invocation("harness::session-tree")


class Sessions(Answers):
    """A session store: session id to the id of its parent, listed in pages of `page`."""

    def __init__(self, parents: dict[str, str | None], page: int = 2) -> None:
        super().__init__()
        self.metas = {
            i: {"session_id": i, "metadata": {} if parent is None else {"parent_session_id": parent}}
            for i, parent in parents.items()
        }
        self.page = page
        self.answers = {"session::get": self.get, "session::list": self.list}

    def get(self, request):
        meta = self.metas.get(request["session_id"])
        return None if meta is None else {"meta": meta}

    def list(self, request):
        assert request["limit"] == 500
        assert request["order"] == "created_asc"
        rows = self.children(request["metadata"]["parent_session_id"])
        at = int(request.get("cursor", 0))
        more = {"next_cursor": str(at + self.page)} if at + self.page < len(rows) else {}
        return {"sessions": rows[at : at + self.page], **more}

    def children(self, parent: str):
        return [m for m in self.metas.values() if m["metadata"].get("parent_session_id") == parent]


async def tree(sessions: Sessions, root: str = "r"):
    answer = await SessionTrees(sessions).session_tree(SessionTreeRequest(root_session_id=root), CALL)
    Draft7Validator(SESSION_TREE.response_schema).validate(answer)
    return answer


@pytest.mark.requirement("prompt.tree.order")
async def test_sessions_come_by_depth_then_id_over_all_pages() -> None:
    sessions = Sessions({"r": None, "z": "r", "a": "r", "m": "r", "b": "z", "c": "a", "other": None})
    sessions.metas["z"]["metadata"]["parent_turn_id"] = "t_9"
    answer = await tree(sessions)
    assert [(s["session_id"], s["depth"], s.get("parent_session_id")) for s in answer["sessions"]] == [
        ("r", 0, None),
        ("a", 1, "r"),
        ("m", 1, "r"),
        ("z", 1, "r"),
        ("b", 2, "z"),
        ("c", 2, "a"),
    ]
    assert answer["sessions"][3]["parent_turn_id"] == "t_9"
    assert "parent_turn_id" not in answer["sessions"][1]
    assert answer["complete"] is True


@pytest.mark.requirement("prompt.tree.unknown")
async def test_an_unknown_root_is_empty_and_incomplete() -> None:
    assert await tree(Sessions({}), "x") == {"root_session_id": "x", "sessions": [], "complete": False}


@pytest.mark.requirement("prompt.tree.contradictions")
async def test_a_circle_ends_and_makes_the_tree_incomplete() -> None:
    sessions = Sessions({"r": "b", "a": "r", "b": "a", "own": "own"})
    answer = await tree(sessions)
    assert [s["session_id"] for s in answer["sessions"]] == ["r", "a", "b"]
    assert answer["complete"] is False
    assert (await tree(sessions, "own"))["complete"] is False


@pytest.mark.requirement("prompt.tree.contradictions")
async def test_a_row_that_names_another_parent_is_left_out() -> None:
    class Loose(Sessions):
        def children(self, parent):
            return [m for m in self.metas.values() if m["session_id"] != "r"] if parent == "r" else []

    answer = await tree(Loose({"r": None, "a": "r", "stray": "elsewhere"}))
    assert [s["session_id"] for s in answer["sessions"]] == ["r", "a"]
    assert answer["complete"] is False


@pytest.mark.requirement("prompt.tree.paging")
async def test_a_cursor_that_repeats_is_an_error() -> None:
    sessions = Sessions({"r": None, "a": "r"})
    sessions.answers["session::list"] = lambda _: {"sessions": [], "next_cursor": "same"}
    with pytest.raises(CodedError, match="session::list") as caught:
        await tree(sessions)
    assert caught.value.code == "harness/dependency"


@pytest.mark.requirement("prompt.tree.paging")
async def test_a_store_that_fails_is_a_dependency_error() -> None:
    for fn in ("session::get", "session::list"):
        sessions = Sessions({"r": None})
        sessions.answers[fn] = BusError("TIMEOUT", "late")
        with pytest.raises(CodedError, match=f"harness/dependency: {fn}"):
            await tree(sessions)


@pytest.mark.requirement("prompt.metrics.root")
async def test_the_root_of_any_session_is_found_and_a_circle_refused() -> None:
    trees = SessionTrees(Sessions({"r": None, "a": "r", "b": "a", "lost": "gone", "x": "y", "y": "x", "own": "own"}))
    assert [await trees.root_of(i) for i in ("r", "a", "b", "lost", "unknown")] == ["r", "r", "r", "lost", "unknown"]
    for circle in ("x", "y", "own"):
        with pytest.raises(CodedError, match="circle"):
            await trees.root_of(circle)
    deep = {f"d{n}": None if n == 0 else f"d{n - 1}" for n in range(400)}
    with pytest.raises(CodedError, match="too many levels"):
        await SessionTrees(Sessions(deep)).root_of("d399")
